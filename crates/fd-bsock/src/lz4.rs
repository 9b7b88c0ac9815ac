//! Comm line compression: one raw LZ4 block per frame, no history between frames
//! (reference 01 §4.1).

use lz4_flex::block::{
    CompressTable, DecompressError, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::FrameError;

/// Largest decompressed payload in bytes, about what the stock receiver's last try allows
/// (reference 01 §1.3).
pub const MAX_DECOMPRESSED: usize = 4_000_000;

/// Payloads of up to this many bytes are never compressed.
pub(crate) const ALWAYS_PLAIN: usize = 20;
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

/// Decompresses the payload of a compressed frame to behind the first `at` bytes of `out`, and
/// returns where it ends. What stands behind that means nothing: it is room for the next one, so
/// that a buffer is filled with zeros only once.
///
/// Reserves memory only after the size of the output has been read from the block. That is done
/// only where the room is too small, for it costs almost as much as decompressing.
///
/// # Errors
/// [`FrameError::BadBlock`] and [`FrameError::Expands`]; what stands behind `at` means nothing
/// then.
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

/// Adds up what the tokens of a block will produce; `None` if the block ends in the middle of
/// something.
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

/// Tables and output of the compressor, made when they are needed first and kept from frame to
/// frame.
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
mod tests;
