//! LZ4 blocks of real daemons, and blocks that are damaged.

use super::*;

/// The capability line of a real Storage Daemon, reference 01 §4.1.
const SDCAPS_BLOCK: &[u8] = b"\xf2\x07\x73\x64\x63\x61\x70\x73\x3a\x20\x64\x65\x64\x75\x70\x3d\x30\x20\x68\x61\
    \x73\x68\x3d\x31\x0f\x00\xf1\x02\x5f\x62\x6c\x6f\x63\x6b\x3d\x36\x35\x35\x33\x36\x20\x6d\x69\x6e\x5f\x25\x00\
    \x03\x16\x00\x89\x31\x30\x32\x34\x20\x6d\x61\x78\x15\x00\x60\x36\x36\x35\x35\x36\x0a";
const SDCAPS: &[u8] = b"sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n";

#[test]
fn a_block_of_a_real_storage_daemon_is_decompressed() {
    let mut out = b"old contents".to_vec();
    assert_eq!(SDCAPS_BLOCK.len(), 68);
    assert_eq!(decompress(SDCAPS_BLOCK, &mut out), Ok(()));
    assert_eq!(out, SDCAPS);
}

#[test]
fn every_cut_of_a_block_is_an_error_or_a_shorter_text() {
    let mut out = Vec::new();
    for n in 0..SDCAPS_BLOCK.len() {
        if decompress(&SDCAPS_BLOCK[..n], &mut out).is_ok() {
            assert!(SDCAPS.starts_with(&out) && out.len() < SDCAPS.len(), "cut at {n}");
        }
    }
}

#[test]
fn a_block_that_grows_too_large_is_refused_before_memory_is_reserved() {
    // One literal, then a match of 255 * 900 000 bytes.
    let mut block = vec![0x1f, b'x', 1, 0];
    block.resize(900_000, 255);
    block.extend_from_slice(&[0, 0x50, 1, 2, 3, 4, 5]);
    let mut out = Vec::new();
    assert_eq!(decompress(&block, &mut out), Err(FrameError::Expands { len: block.len() }));
    assert_eq!(out.capacity(), 0);
    // The largest frame of good compression stays below the limit.
    let mut compressor = Compressor::new();
    let zeros = vec![0; 4_000_000];
    let block = compressor.compress(&zeros).unwrap().to_vec();
    assert_eq!(decompress(&block, &mut out), Ok(()));
    assert_eq!(out, zeros);
}

#[test]
fn blocks_stand_one_behind_the_other_whatever_room_there_was() {
    let mut compressor = Compressor::new();
    let texts: Vec<Vec<u8>> = [30, 500, 64, 70_000, 100].map(|len| vec![len.to_string().as_bytes()[0]; len]).to_vec();
    let blocks: Vec<Vec<u8>> = texts.iter().map(|text| compressor.compress(text).unwrap().to_vec()).collect();
    for room in [0, 29, 30, 31, 530, 600, 100_000] {
        let mut out = vec![7; room];
        for _ in 0..2 {
            let mut end = 0;
            for block in &blocks {
                end = decompress_behind(block, &mut out, end).unwrap();
            }
            assert_eq!(out[..end], texts.concat());
        }
        assert_eq!(out.len(), room.max(texts.concat().len()), "it grows once and only as far as needed");
    }
    // More room than one block may take does not let it take more.
    let mut block = vec![0x1f, b'x', 1, 0];
    block.resize(20_000, 255);
    block.extend_from_slice(&[0, 0x50, 1, 2, 3, 4, 5]);
    let mut out = vec![0; MAX_DECOMPRESSED + 3_000_000];
    assert_eq!(decompress_behind(&block, &mut out, 10), Err(FrameError::Expands { len: block.len() }));
}

#[test]
fn offsets_before_the_start_are_refused() {
    let mut out = Vec::new();
    let block = [0x10, b'x', 9, 0, 0x50, 1, 2, 3, 4, 5];
    assert_eq!(decompress(&block, &mut out), Err(FrameError::BadBlock { len: 10 }));
    assert_eq!(decompress(&[], &mut out), Err(FrameError::BadBlock { len: 0 }));
}

#[test]
fn round_trip_on_both_sides_of_the_small_table() {
    let mut compressor = Compressor::new();
    let mut out = Vec::new();
    for len in [64, 65_534, 65_535, 65_536, 100_000, 1_000_000, 64] {
        let text: Vec<u8> =
            (0..len).map(|i: u32| if i.is_multiple_of(7) { (i / 7).to_le_bytes()[1] } else { b'a' }).collect();
        let block = compressor.compress(&text).unwrap();
        decompress(block, &mut out).unwrap();
        assert_eq!(out, text);
    }
}

#[test]
fn short_or_incompressible_payloads_go_plain() {
    let mut compressor = Compressor::new();
    assert!(compressor.compress(&[b'a'; 20]).is_none());
    assert!(compressor.compress(&[b'a'; 21]).is_some());
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..65_536)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    assert!(compressor.compress(&noise).is_none());
}
