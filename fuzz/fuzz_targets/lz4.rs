#![no_main]
//! Compressed frames: any block decompresses within the bound or is refused, and what we compress
//! comes back.

use fd_bsock::{Encoder, Parsed, decompress, lz4, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    if decompress(data, &mut out).is_ok() {
        assert!(out.len() <= lz4::MAX_DECOMPRESSED);
    }
    let mut frame = Vec::new();
    if data.is_empty() || Encoder::new(true).data(&mut frame, data).is_err() {
        return;
    }
    let Ok(Parsed::Data { payload, compressed, .. }) = parse(&frame) else { panic!("our own frame") };
    if compressed {
        decompress(payload, &mut out).expect("our own block");
        assert_eq!(out, data);
    } else {
        assert_eq!(payload, data);
    }
});
