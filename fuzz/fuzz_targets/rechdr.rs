#![no_main]
//! Record headers as the Storage Daemon sends them, compression headers, and digests as text.

use fd_records::{CompressionHeader, RecordHeader, digest_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if RecordHeader::parse(data).is_some() {
        assert!(data.starts_with(b"rechdr"));
    }
    if let Some((header, rest)) = CompressionHeader::split(data) {
        assert_eq!(header.to_bytes(), data[..CompressionHeader::LENGTH]);
        assert_eq!(rest.len(), data.len() - CompressionHeader::LENGTH);
    }
    let _ = digest_text::parse(data);
    if data.len() <= 64 {
        assert_eq!(digest_text::parse(&digest_text::of(data)).as_deref(), Some(data));
    }
});
