//! Frames as they are made, with and without compression, and what is counted.

use super::*;
use crate::{Parsed, decompress, parse};

#[test]
fn frames_and_signals_have_the_bytes_of_the_reference() {
    let mut encoder = Encoder::new(false);
    let mut out = Vec::new();
    encoder.data(&mut out, b"Hello Director w-dir calling 10002 tlspsk=0\n").unwrap();
    encoder.signal(&mut out, Signal::Eod);
    encoder.signal(&mut out, Signal::Terminate);
    encoder.data(&mut out, b"").unwrap();
    let expected = b"\0\0\0\x2cHello Director w-dir calling 10002 tlspsk=0\n\xff\xff\xff\xff\xff\xff\xff\xfc\0\0\0\0";
    assert_eq!(out, expected);
    assert_eq!(encoder.take_count(), CommCount { plain: 44 - 1 - 4, sent: 44 - 1 - 4 });
    assert_eq!(encoder.take_count(), CommCount::default());
}

/// The payloads that the client sends in reference 01 §21.2, which make `CommBytes=494`.
#[test]
fn the_count_of_a_real_backup_is_that_of_its_end_job_line() {
    let mut encoder = Encoder::new(false);
    let mut out = Vec::new();
    let texts: [&[u8]; 18] = [
        b"Hello Bacula SD: Start Job b1.2026-11-21_02.56.53_03 15 tlspsk=0\n",
        b"fdcaps: dedup=0 rehydration=0 proxy=0\n",
        b"fT+/0n/5m44FRC+tP40wsA\0",
        b"auth cram-md5 <1293260559.1795229815@w-fd> ssl=0\n",
        b"1000 OK auth\n",
        b"append open session\n",
        b"append data 1\n",
        b"1 1 0",
        b"1 3 /etc/debian_version\0P4A mEJC IGk B A A A F BAA I BrAPTI BqWmC8 BrAPTB A A C\0\0\x000\0",
        b"1 2 5",
        b"13.7\n",
        b"1 3 0",
        &[0; 16],
        b"2 1 0",
        b"2 3 /etc/host.conf\0P4A mEJG IGk B A A A J BAA I BrAPTI BqWmC8 BrAPTB A A C\0\0\x000\0",
        b"2 2 9",
        b"multi on\n",
        b"2 3 0",
    ];
    for text in texts {
        encoder.data(&mut out, text).unwrap();
    }
    encoder.data(&mut out, &[0; 16]).unwrap();
    encoder.data(&mut out, b"append end session 1\n").unwrap();
    encoder.data(&mut out, b"append close session 1\n").unwrap();
    (0..7).for_each(|_| encoder.signal(&mut out, Signal::Eod));
    encoder.signal(&mut out, Signal::Terminate);
    assert_eq!(encoder.take_count(), CommCount { plain: 494, sent: 494 });
}

#[test]
fn a_hello_of_64_bytes_and_terminate_count_60() {
    let mut encoder = Encoder::new(true);
    let mut out = Vec::new();
    encoder.data(&mut out, &[b'x'; 64]).unwrap();
    encoder.signal(&mut out, Signal::Terminate);
    assert_eq!(encoder.take_count().plain, 60);
}

#[test]
fn compressed_frames_carry_bit_30_and_count_both_sizes() {
    let mut encoder = Encoder::new(true);
    let mut out = Vec::new();
    let text = vec![b'z'; 65_536];
    encoder.data(&mut out, &text).unwrap();
    let Parsed::Data { payload, compressed: true, consumed } = parse(&out).unwrap() else {
        panic!("not compressed");
    };
    assert_eq!(consumed, out.len());
    let mut plain = Vec::new();
    decompress(payload, &mut plain).unwrap();
    assert_eq!(plain, text);
    let count = encoder.take_count();
    assert_eq!(count.plain, 65_536);
    assert_eq!(usize::try_from(count.sent).unwrap(), out.len() - 4);
}

#[test]
fn parts_make_the_same_frame_as_the_whole() {
    for compress in [false, true] {
        let mut encoder = Encoder::new(compress);
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        encoder.data(&mut whole, &[b'q'; 108]).unwrap();
        let count = encoder.take_count();
        encoder.data_parts(&mut parts, &[&[b'q'; 8], b"", &[b'q'; 100]]).unwrap();
        assert_eq!(whole, parts);
        assert_eq!(encoder.take_count(), count);
    }
}

#[test]
fn text_between_noise_is_compressed_every_time() {
    let mut encoder = Encoder::new(true);
    encoder.spare_effort();
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..4096)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let mut sent = |payload: &[u8]| {
        let mut out = Vec::new();
        encoder.data(&mut out, payload).unwrap();
        out.len()
    };
    let text = vec![b'x'; 4096];
    assert!((0..100).all(|_| sent(&noise) == 4100 && sent(&text) < 100));
    // Small files, too.
    assert!((0..100).all(|_| sent(&noise[..400]) == 404 && sent(&noise[..15]) == 19 && sent(&text[..400]) < 50));
}

#[test]
fn a_reserved_frame_is_that_of_its_payload() {
    let mut encoder = Encoder::new(true);
    let (mut plain, mut reserved) = (b"before".to_vec(), b"before".to_vec());
    encoder.data(&mut plain, b"sixteen bytes...").unwrap();
    let count = encoder.take_count();
    let place = encoder.reserve(&mut reserved, 16).unwrap();
    reserved[place].copy_from_slice(b"sixteen bytes...");
    assert_eq!((reserved, encoder.take_count()), (plain, count));
    assert!(encoder.reserve(&mut Vec::new(), MAX_PAYLOAD + 1).is_err());
}

#[test]
fn a_frame_that_was_begun_is_that_of_its_payload() {
    let noise: Vec<u8> = (0..3000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    for compress in [false, true] {
        for payload in [b"".as_slice(), b"short", &vec![b'z'; 70_000], &noise] {
            let mut encoder = Encoder::new(compress);
            let (mut whole, mut begun) = (b"before".to_vec(), b"before".to_vec());
            encoder.data(&mut whole, payload).unwrap();
            let count = encoder.take_count();
            let start = Encoder::begin(&mut begun);
            begun.extend_from_slice(payload);
            encoder.finish(&mut begun, start).unwrap();
            assert!(begun == whole, "{compress} {}", payload.len());
            assert_eq!(encoder.take_count(), count);
        }
    }
    let mut out = b"before".to_vec();
    let start = Encoder::begin(&mut out);
    out.resize(start + 4 + MAX_PAYLOAD + 1, 0);
    let mut encoder = Encoder::new(true);
    assert_eq!(encoder.finish(&mut out, start), Err(FrameError::TooBig { len: MAX_PAYLOAD + 1 }));
    assert_eq!((out.as_slice(), encoder.take_count()), (b"before".as_slice(), CommCount::default()));
}

#[test]
fn a_payload_above_the_limit_is_refused() {
    let mut encoder = Encoder::new(true);
    let mut out = Vec::new();
    let big = vec![0; MAX_PAYLOAD + 1];
    assert_eq!(encoder.data(&mut out, &big), Err(FrameError::TooBig { len: MAX_PAYLOAD + 1 }));
    assert_eq!(encoder.data_parts(&mut out, &[&big, b"x"]), Err(FrameError::TooBig { len: MAX_PAYLOAD + 2 }));
    assert!(out.is_empty());
    assert_eq!(encoder.take_count(), CommCount::default());
    encoder.data(&mut out, &big[..MAX_PAYLOAD]).unwrap();
}
