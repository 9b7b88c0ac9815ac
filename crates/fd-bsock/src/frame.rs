//! Reading frames: what stands at the front of a buffer.

use crate::{FrameError, Signal};

/// Bytes of a frame header.
pub const HEADER_LEN: usize = 4;
/// Largest payload of a frame, in bytes; a peer that gets more ends the connection
/// (reference 01 §1.3).
pub const MAX_PAYLOAD: usize = 1_000_000;

/// Header bit 30: the payload is one LZ4 block.
pub(crate) const COMPRESSED: u32 = 0x4000_0000;
/// Header bit 29: a word of flags stands between header and payload.
const EXTENDED: u32 = 0x2000_0000;
/// Flag of the extension word: a dedup command.
const IS_COMMAND: u32 = 0x1000_0000;
/// Flag of the extension word: the payload is compressed from an offset on, and is passed on as it
/// is.
const OFFSET: u32 = 0x0800_0000;

/// What stands at the front of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// Not yet a whole frame. It cannot be one before this many bytes are there, counted from the
    /// start of the buffer; more may be needed then.
    Need(usize),
    /// A frame with a payload.
    Data {
        /// The bytes behind the header, 1 to [`MAX_PAYLOAD`].
        payload: &'a [u8],
        /// The payload is an LZ4 block: see [`crate::decompress`].
        compressed: bool,
        /// Bytes of the buffer that the frame takes.
        consumed: usize,
    },
    /// A frame without payload.
    Empty {
        /// Bytes of the buffer that the frame takes.
        consumed: usize,
    },
    /// A signal.
    Signal {
        /// Which one.
        signal: Signal,
        /// Bytes of the buffer that the frame takes.
        consumed: usize,
    },
}

/// Looks at the front of `buf` (reference 01 §1.5). Copies nothing, reserves nothing.
///
/// # Errors
/// [`FrameError::TooBig`] as soon as the header is there; [`FrameError::DedupCommand`].
pub fn parse(buf: &[u8]) -> Result<Parsed<'_>, FrameError> {
    parse_up_to(buf, MAX_PAYLOAD)
}

/// The same, but a payload of more than `largest` bytes, and of more than [`MAX_PAYLOAD`], is too
/// big.
///
/// # Errors
/// As [`parse`].
pub fn parse_up_to(buf: &[u8], largest: usize) -> Result<Parsed<'_>, FrameError> {
    let Some((header, mut rest)) = buf.split_first_chunk::<HEADER_LEN>() else {
        return Ok(Parsed::Need(HEADER_LEN));
    };
    let mut head_len = HEADER_LEN;
    let code = i32::from_be_bytes(*header);
    if code < 0 {
        return Ok(Parsed::Signal { signal: Signal::from_code(code), consumed: head_len });
    }
    let word = u32::from_be_bytes(*header);
    let len = payload_len(word, largest.min(MAX_PAYLOAD))?;
    let mut flags = 0;
    if word & EXTENDED != 0 {
        let Some((extension, behind)) = rest.split_first_chunk::<4>() else {
            return Ok(Parsed::Need(HEADER_LEN + 4));
        };
        flags = u32::from_be_bytes(*extension);
        rest = behind;
        head_len += 4;
    }
    let consumed = head_len + len;
    let Some(payload) = rest.get(..len) else {
        return Ok(Parsed::Need(consumed));
    };
    if len == 0 {
        return Ok(Parsed::Empty { consumed });
    }
    if flags & IS_COMMAND != 0 {
        return Err(FrameError::DedupCommand { len });
    }
    Ok(Parsed::Data { payload, compressed: word & COMPRESSED != 0 && flags & OFFSET == 0, consumed })
}

/// The length in a header word without its flags.
fn payload_len(word: u32, largest: usize) -> Result<usize, FrameError> {
    let len = usize::try_from(word & !(COMPRESSED | EXTENDED)).unwrap_or(usize::MAX);
    if len > largest { Err(FrameError::TooBig { len }) } else { Ok(len) }
}

#[cfg(test)]
mod tests;
