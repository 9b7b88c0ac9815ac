#![no_main]
//! ZSTD records with their header: any record decompresses within the limit or is refused, and what
//! we compress comes back.

use fd_compress::{Compressor, Decompressor};
use fd_records::{Compression, CompressionHeader};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let mut decompressor = Decompressor::new(LIMIT);
    // With a good header before it, so that the fuzzer need not find one.
    let size = u32::try_from(data.len()).expect("short");
    let mut record = CompressionHeader::new(CompressionHeader::ZSTD, size).to_bytes().to_vec();
    record.extend(data);
    for record in [data, &record] {
        let mut out = b"before".to_vec();
        if decompressor.with_header(record, &mut out).is_ok() {
            assert!(out.starts_with(b"before") && out.len() <= LIMIT + 6);
        }
    }
    let (mut record, mut out) = (Vec::new(), Vec::new());
    Compressor::new(Compression::Zstd(1)).expect("a level").compress(data, &mut record).expect("memory");
    decompressor.with_header(&record, &mut out).expect("our own record");
    assert_eq!(out, data);
});
