//! Frames as they are read: whole, cut off, too large.

use super::*;

/// The Hello of reference 01 §1.1.
const HELLO: &[u8] = b"\0\0\0\x2cHello Director w-dir calling 10002 tlspsk=0\n";

#[test]
fn a_whole_frame_is_read_and_what_follows_is_left() {
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
fn each_beginning_of_a_frame_says_how_much_is_needed() {
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
fn a_header_of_more_than_one_million_bytes_is_refused() {
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
