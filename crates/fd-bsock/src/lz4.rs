//! Comm line compression: one raw LZ4 block per frame, no history between frames (reference 01 §4.1).

use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::FrameError;

/// Largest decompressed payload in bytes, about what the stock receiver's last try allows (reference 01 §1.3).
pub const MAX_DECOMPRESSED: usize = 4_000_000;

/// Payloads of up to this many bytes are never compressed.
const ALWAYS_PLAIN: usize = 20;
/// Compression must save this many bytes.
const LEAST_GAIN: usize = 10;
/// From this input length on the compressor needs the table with 32 bit positions.
const SMALL_TABLE_LIMIT: usize = 65_535;

/// Decompresses the payload of a compressed frame into `out`, whose old contents are lost.
///
/// # Errors
/// [`FrameError::BadBlock`] and [`FrameError::Expands`]; the contents of `out` mean nothing then.
pub fn decompress(payload: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    let end = decompress_behind(payload, out, 0)?;
    out.truncate(end);
    Ok(())
}

/// Decompresses the payload of a compressed frame to behind the first `at` bytes of `out`, and tells where it ends. What
/// stands behind that means nothing: it is room for the next one, so that a buffer is filled with zeros only once.
///
/// Reserves memory only after the block itself has told the size of its output, which is asked only where the room does
/// not do: that costs almost as much as to decompress.
///
/// # Errors
/// [`FrameError::BadBlock`] and [`FrameError::Expands`]; what stands behind `at` means nothing then.
pub fn decompress_behind(payload: &[u8], out: &mut Vec<u8>, at: usize) -> Result<usize, FrameError> {
    let len = payload.len();
    let most = at.saturating_add(MAX_DECOMPRESSED).min(out.len());
    let room = out.get_mut(at..most).unwrap_or_default();
    let written = match decompress_into(payload, room) {
        Err(DecompressError::OutputTooSmall { .. }) => {
            let size = decompressed_len(payload).ok_or(FrameError::BadBlock { len })?;
            if size > MAX_DECOMPRESSED {
                return Err(FrameError::Expands { len });
            }
            let end = at.saturating_add(size);
            out.resize(end.max(out.len()), 0);
            decompress_into(payload, out.get_mut(at..end).unwrap_or_default())
        }
        tried => tried,
    };
    written.map(|written| at + written).map_err(|_| FrameError::BadBlock { len })
}

/// Adds up what the tokens of a block will produce; `None` if the block ends in the middle of something.
fn decompressed_len(block: &[u8]) -> Option<usize> {
    let mut rest = block;
    let mut total = 0_usize;
    loop {
        let (&token, after_token) = rest.split_first()?;
        let (literals, after_length) = sequence_len(token >> 4, after_token)?;
        let after_literals = after_length.get(literals..)?;
        total = total.checked_add(literals)?;
        if after_literals.is_empty() {
            return Some(total);
        }
        let (copied, after_match) = sequence_len(token & 0x0f, after_literals.get(2..)?)?;
        total = total.checked_add(copied)?.checked_add(4)?;
        rest = after_match;
    }
}

/// A length of a token's half byte, continued in the following bytes if it is 15.
fn sequence_len(half: u8, mut rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = usize::from(half);
    if half == 15 {
        loop {
            let (&more, behind) = rest.split_first()?;
            rest = behind;
            len = len.checked_add(usize::from(more))?;
            if more != 255 {
                break;
            }
        }
    }
    Some((len, rest))
}

/// Tables and output of the compressor, made when they are needed first and kept from frame to frame.
#[derive(Default)]
pub(crate) struct Compressor {
    small: Option<CompressTable>,
    large: Option<CompressTable>,
    output: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The LZ4 block of `payload`, if the frame is to go out compressed.
    pub(crate) fn compress(&mut self, payload: &[u8]) -> Option<&[u8]> {
        if payload.len() <= ALWAYS_PLAIN {
            return None;
        }
        let worst = get_maximum_output_size(payload.len());
        if self.output.len() < worst {
            self.output.resize(worst, 0);
        }
        let table = if payload.len() < SMALL_TABLE_LIMIT {
            self.small.get_or_insert_with(CompressTable::small)
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        let len = compress_into_with_table(payload, &mut self.output, table).ok()?;
        if len + LEAST_GAIN <= payload.len() { self.output.get(..len) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capability line of a real Storage Daemon, reference 01 §4.1.
    const SDCAPS_BLOCK: &[u8] = b"\xf2\x07\x73\x64\x63\x61\x70\x73\x3a\x20\x64\x65\x64\x75\x70\x3d\x30\x20\x68\x61\
        \x73\x68\x3d\x31\x0f\x00\xf1\x02\x5f\x62\x6c\x6f\x63\x6b\x3d\x36\x35\x35\x33\x36\x20\x6d\x69\x6e\x5f\x25\x00\
        \x03\x16\x00\x89\x31\x30\x32\x34\x20\x6d\x61\x78\x15\x00\x60\x36\x36\x35\x35\x36\x0a";
    const SDCAPS: &[u8] = b"sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n";

    #[test]
    fn the_block_of_a_real_storage_daemon() {
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
    fn a_block_that_explodes_is_refused_before_memory_is_reserved() {
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
        let texts: Vec<Vec<u8>> =
            [30, 500, 64, 70_000, 100].map(|len| vec![len.to_string().as_bytes()[0]; len]).to_vec();
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
}
