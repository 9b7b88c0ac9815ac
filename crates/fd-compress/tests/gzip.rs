//! GZIP records compared with zlib: each side inflates the other's records, and ours are at most 2
//! % longer at any level (reference 04 §8.5).

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use fd_compress::{Compressor, DecompressError, Decompressor};
use fd_records::Compression;

const BLOCK: usize = 65536;

fn zlib_compress(level: u8, block: &[u8]) -> Vec<u8> {
    let mut deflate = flate2::Compress::new(flate2::Compression::new(level.into()), true);
    let mut out = Vec::with_capacity(block.len() + block.len() / 100 + 100);
    assert_eq!(
        deflate.compress_vec(block, &mut out, flate2::FlushCompress::Finish).unwrap(),
        flate2::Status::StreamEnd
    );
    out
}

fn zlib_decompress(record: &[u8], len: usize) -> Vec<u8> {
    let mut inflate = flate2::Decompress::new(true);
    let mut out = Vec::with_capacity(len + 1);
    assert_eq!(
        inflate.decompress_vec(record, &mut out, flate2::FlushDecompress::Finish).unwrap(),
        flate2::Status::StreamEnd
    );
    assert_eq!(inflate.total_in(), record.len() as u64, "bytes behind the stream");
    out
}

fn source() -> Vec<u8> {
    [
        include_str!("lzo1x.rs"),
        include_str!("../src/lzo1x/decode.rs"),
        include_str!("../src/lzo1x/encode.rs"),
        include_str!("../src/lzo1x/tests.rs"),
        include_str!("../benches/codecs.rs"),
    ]
    .concat()
    .into_bytes()
}

/// A part of this program: code, tables and debug information.
fn program() -> Vec<u8> {
    let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    program.truncate(1 << 20);
    program
}

fn log() -> Vec<u8> {
    (0..8000_u32)
        .flat_map(|i| {
            let x = i.wrapping_mul(2_654_435_761);
            format!(
                "10.0.{}.{} - - [21/Nov/2025:07:{:02}:{:02} +0000] \"GET /item/{} HTTP/1.1\" 200 {}\n",
                x >> 28,
                (x >> 20) & 0xff,
                i / 240 % 60,
                i / 4 % 60,
                (x >> 8) & 0xffff,
                x % 50_000
            )
            .into_bytes()
        })
        .collect()
}

#[test]
fn records_of_all_levels_are_read_by_zlib_and_at_most_two_percent_longer() {
    for (name, data) in [("source", source()), ("program", program()), ("log", log())] {
        let mut levels = Vec::new();
        for level in 1..=9 {
            let (mut ours, mut zlib) = (0, 0);
            let mut compressor = Compressor::new(Compression::Gzip(level)).unwrap();
            for block in data.chunks(BLOCK) {
                let mut record = Vec::new();
                compressor.compress(block, &mut record).unwrap();
                assert!(zlib_decompress(&record, block.len()) == block, "{name}, level {level}");
                let theirs = zlib_compress(level, block);
                assert_eq!(record.first_chunk::<2>(), theirs.first_chunk::<2>(), "the header of level {level}");
                ours += record.len();
                zlib += theirs.len();
            }
            println!("{name}, level {level}: ours {ours}, zlib {zlib}");
            assert!(ours * 100 <= zlib * 102, "{name}, level {level}: {ours} bytes, zlib needs {zlib}");
            levels.push(ours);
        }
        assert!(levels.is_sorted_by(|a, b| a >= b), "{name}: a higher level is no longer: {levels:?}");
    }
}

#[test]
fn records_of_zlib_are_read_and_damaged_ones_are_refused() {
    let data = source();
    let mut decompressor = Decompressor::default();
    for level in 0..=9 {
        for block in data.chunks(BLOCK).chain([&data[..1], &[]]) {
            let record = zlib_compress(level, block);
            let mut out = b"before".to_vec();
            decompressor.zlib(&record, &mut out).unwrap();
            assert!(out.strip_prefix(b"before") == Some(block));
            // The checksum at the end covers every bit of the data.
            for cut in [0, 1, record.len() / 2, record.len() - 1] {
                assert_eq!(decompressor.zlib(&record[..cut], &mut out), Err(DecompressError::ZlibData));
            }
            let mut damaged = record.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert_eq!(decompressor.zlib(&damaged, &mut out), Err(DecompressError::ZlibData));
            assert_eq!(out.len(), 6 + block.len(), "an error leaves the output as it was");
        }
    }
}

#[test]
fn records_of_noise_are_little_longer_than_the_noise() {
    let noise: Vec<u8> =
        (0..65536_u32).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(i % 31).to_le_bytes()[2]).collect();
    for level in 0..=9 {
        let mut record = Vec::new();
        Compressor::new(Compression::Gzip(level)).unwrap().compress(&noise, &mut record).unwrap();
        assert!(record.len() < noise.len() + 400, "level {level}: {}", record.len());
        assert!(zlib_decompress(&record, noise.len()) == noise);
    }
    assert!(Compressor::new(Compression::Gzip(10)).is_err());
}
