//! Records of the reference, byte by byte (04 §17.4, 05 §7.2).

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::BTreeSet;

use fd_compress::{Compressor, Decompressor};
use fd_records::Compression;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn record(mut compressor: Compressor, block: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compressor.compress(block, &mut out).unwrap();
    out
}

#[test]
fn an_lzo_record_is_that_of_the_reference() {
    let expected = hex("4c5a4f58 00000013 0000 0001 2048656c6c6f2c20426163756c61210a110000");
    assert_eq!(record(Compressor::new(Compression::Lzo).unwrap(), b"Hello, Bacula!\n"), expected);
    let mut out = Vec::new();
    Decompressor::default().with_header(&expected, &mut out).unwrap();
    assert_eq!(out, b"Hello, Bacula!\n");
}

#[test]
fn a_zstd_record_is_that_of_the_reference() {
    let expected = hex("4c5a4f59 00000018 0000 0001 28b52ffd200f79000048656c6c6f2c20426163756c61210a");
    assert_eq!(record(Compressor::new(Compression::Zstd(3)).unwrap(), b"Hello, Bacula!\n"), expected);
}

#[test]
fn each_level_of_zstd_is_another_one() {
    // Numbers as text repeat themselves at distances of all kinds.
    let data = (0..20_000_u32).map(|number| format!("{}\n", number * number % 65_521)).collect::<Vec<_>>().concat();
    let lengths = [1, 3, 10, 19].map(|level| {
        let record = record(Compressor::new(Compression::Zstd(level)).unwrap(), data.as_bytes());
        let mut out = Vec::new();
        Decompressor::default().with_header(&record, &mut out).unwrap();
        assert!(out == data.as_bytes(), "level {level}");
        record.len()
    });
    assert_eq!(BTreeSet::from(lengths).len(), lengths.len(), "{lengths:?}");
}

#[test]
fn the_gzip_record_of_the_reference_is_decompressed() {
    let stock = hex("789cf348cdc9c9d751704a4c2ecd4954e40200286704b4");
    let mut out = Vec::new();
    Decompressor::default().zlib(&stock, &mut out).unwrap();
    assert_eq!(out, b"Hello, Bacula!\n");
}
