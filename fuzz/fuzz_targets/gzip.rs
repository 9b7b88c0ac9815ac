#![no_main]
//! GZIP records: any record inflates within the limit or is refused, and what we compress comes
//! back.

use fd_compress::{Compressor, Decompressor};
use fd_records::Compression;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let mut decompressor = Decompressor::new(LIMIT);
    let mut out = b"before".to_vec();
    if decompressor.zlib(data, &mut out).is_ok() {
        assert!(out.starts_with(b"before") && out.len() <= LIMIT + 6);
    }
    let level = data.first().map_or(6, |byte| 1 + byte % 9);
    let mut record = Vec::new();
    Compressor::new(Compression::Gzip(level)).expect("a level").compress(data, &mut record).expect("memory");
    out.clear();
    decompressor.zlib(&record, &mut out).expect("our own record");
    assert_eq!(out, data);
});
