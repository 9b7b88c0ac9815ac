//! Reading frames: what stands at the front of a buffer.

use crate::{FrameError, Signal};

/// Bytes of a frame header.
pub const HEADER_LEN: usize = 4;
/// Largest payload of a frame, in bytes; a peer that gets more ends the connection (reference 01 §1.3).
pub const MAX_PAYLOAD: usize = 1_000_000;

/// Header bit 30: the payload is one LZ4 block.
pub(crate) const COMPRESSED: u32 = 0x4000_0000;
/// Header bit 29: a word of flags stands between header and payload.
const EXTENDED: u32 = 0x2000_0000;
/// Flag of the extension word: a dedup command.
const IS_COMMAND: u32 = 0x1000_0000;
/// Flag of the extension word: the payload is compressed from an offset on, and is passed on as it is.
const OFFSET: u32 = 0x0800_0000;

/// What stands at the front of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// Not yet a whole frame. It cannot be one before this many bytes are there, counted from the start of the buffer;
    /// more may be needed then.
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

/// The same, but a payload of more than `largest` bytes, and of more than [`MAX_PAYLOAD`], is too big.
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
mod tests {
    use super::*;

    /// The Hello of reference 01 §1.1.
    const HELLO: &[u8] = b"\0\0\0\x2cHello Director w-dir calling 10002 tlspsk=0\n";

    #[test]
    fn the_hello_of_the_reference() {
        let expected = Parsed::Data { payload: &HELLO[4..], compressed: false, consumed: 48 };
        assert_eq!(parse(HELLO), Ok(expected));
        let followed = [HELLO, b"\xff\xff\xff\xff"].concat();
        assert_eq!(parse(&followed), Ok(expected));
    }

    #[test]
    fn the_header_alone_refuses_what_is_larger_than_wanted() {
        let header = |flags: u32, len: u32| (flags | len).to_be_bytes();
        for flags in [0, COMPRESSED, EXTENDED, COMPRESSED | EXTENDED] {
            assert_eq!(parse_up_to(&header(flags, 501), 500), Err(FrameError::TooBig { len: 501 }));
            assert!(matches!(parse_up_to(&header(flags, 500), 500), Ok(Parsed::Need(_))));
            let most = u32::try_from(MAX_PAYLOAD).unwrap();
            assert!(matches!(parse_up_to(&header(flags, most + 1), usize::MAX), Err(FrameError::TooBig { .. })));
        }
        assert!(matches!(parse_up_to(&(-1_i32).to_be_bytes(), 0), Ok(Parsed::Signal { .. })), "a signal has no length");
    }

    #[test]
    fn every_beginning_of_a_frame_says_how_much_is_needed() {
        for n in 0..4 {
            assert_eq!(parse(&HELLO[..n]), Ok(Parsed::Need(4)));
        }
        for n in 4..48 {
            assert_eq!(parse(&HELLO[..n]), Ok(Parsed::Need(48)));
        }
    }

    #[test]
    fn negative_headers_are_signals_and_zero_is_an_empty_frame() {
        assert_eq!(parse(b"\xff\xff\xff\xffabc"), Ok(Parsed::Signal { signal: Signal::Eod, consumed: 4 }));
        assert_eq!(parse(b"\xff\xff\xff\xfc"), Ok(Parsed::Signal { signal: Signal::Terminate, consumed: 4 }));
        assert_eq!(parse(b"\x80\0\0\0"), Ok(Parsed::Signal { signal: Signal::Other(i32::MIN), consumed: 4 }));
        assert_eq!(parse(b"\0\0\0\0\0\0\0\x01"), Ok(Parsed::Empty { consumed: 4 }));
        assert_eq!(parse(b"\x40\0\0\0"), Ok(Parsed::Empty { consumed: 4 }));
    }

    #[test]
    fn one_million_bytes_is_the_limit_and_the_header_alone_tells() {
        let mut frame = 1_000_000_u32.to_be_bytes().to_vec();
        assert_eq!(parse(&frame), Ok(Parsed::Need(1_000_004)));
        frame.resize(1_000_004, b'x');
        assert!(matches!(parse(&frame), Ok(Parsed::Data { consumed: 1_000_004, .. })));
        assert_eq!(parse(&1_000_001_u32.to_be_bytes()), Err(FrameError::TooBig { len: 1_000_001 }));
        assert_eq!(parse(b"\x40\x0f\x42\x41"), Err(FrameError::TooBig { len: 1_000_001 }));
        assert_eq!(parse(b"\x7f\xff\xff\xff"), Err(FrameError::TooBig { len: 0x1fff_ffff }));
    }

    #[test]
    fn the_extension_word_is_read_and_not_counted() {
        let frame = b"\x60\0\0\x03\x02\0\0\0abc";
        assert_eq!(parse(&frame[..4]), Ok(Parsed::Need(8)));
        assert_eq!(parse(&frame[..8]), Ok(Parsed::Need(11)));
        assert_eq!(parse(frame), Ok(Parsed::Data { payload: b"abc", compressed: true, consumed: 11 }));
        assert_eq!(parse(b"\x20\0\0\0\0\0\0\0"), Ok(Parsed::Empty { consumed: 8 }));
        let with_offset = b"\x60\0\0\x03\x08\0\0\x01abc";
        assert_eq!(parse(with_offset), Ok(Parsed::Data { payload: b"abc", compressed: false, consumed: 11 }));
        assert_eq!(parse(b"\x20\0\0\x03\x10\0\0\0abc"), Err(FrameError::DedupCommand { len: 3 }));
    }
}
