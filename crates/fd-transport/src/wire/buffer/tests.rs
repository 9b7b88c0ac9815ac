//! Unit tests of `buffer`.

use super::*;

fn put(buffer: &mut ReadBuffer, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let space = buffer.space();
        let n = space.len().min(bytes.len()).min(1000);
        assert_ne!(n, 0, "no room");
        space[..n].copy_from_slice(&bytes[..n]);
        buffer.advance(n);
        bytes = &bytes[n..];
    }
}

#[test]
fn bytes_come_out_in_order_across_compaction_and_growth() {
    let text: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    let mut buffer = ReadBuffer::default();
    let mut out = Vec::new();
    for piece in text.chunks(7777) {
        put(&mut buffer, piece);
        let n = buffer.filled().len() / 2;
        out.extend_from_slice(&buffer.filled()[..n]);
        buffer.consume(n);
    }
    out.extend_from_slice(buffer.filled());
    assert!(out == text);
}

#[test]
fn a_largest_frame_fits_and_memory_stays_bounded() {
    let mut buffer = ReadBuffer::default();
    put(&mut buffer, &vec![7; 1_000_008]);
    assert_eq!(buffer.filled().len(), 1_000_008);
    while !buffer.space().is_empty() {
        let n = buffer.space().len();
        buffer.advance(n);
    }
    assert_eq!(buffer.bytes.len(), MAX);
}

#[test]
fn kept_bytes_stay_in_place_until_they_are_traded() {
    let mut buffer = ReadBuffer::default();
    let mut memory = vec![9; 10];
    for turn in 0..3_u8 {
        let mut places = Vec::new();
        for piece in 0..40_u8 {
            put(&mut buffer, &vec![piece ^ turn; 7000]);
            places.push(buffer.start()..buffer.start() + 7000);
            buffer.keep(true);
            buffer.consume(7000);
        }
        put(&mut buffer, &[turn; 5000]);
        buffer.trade(&mut memory);
        for (piece, place) in (0..40_u8).zip(places) {
            assert!(memory[place].iter().all(|byte| *byte == piece ^ turn), "{piece}");
        }
        assert_eq!(buffer.filled(), [turn; 5000]);
        buffer.consume(5000);
        assert_eq!(buffer.start(), 0);
    }
    // A largest frame behind as much as callers let come together.
    buffer.keep(true);
    put(&mut buffer, &vec![1; EAGER_MAX]);
    buffer.consume(EAGER_MAX);
    put(&mut buffer, &vec![2; 1_000_004]);
    while !buffer.space().is_empty() {
        let n = buffer.space().len();
        buffer.advance(n);
    }
    assert_eq!(buffer.bytes.len(), KEPT_MAX);
}

#[test]
fn a_quiet_connection_costs_little() {
    let mut buffer = ReadBuffer::default();
    for _ in 0..10_000 {
        put(&mut buffer, &[1; 100]);
        buffer.consume(100);
    }
    assert_eq!(buffer.bytes.len(), FIRST);
}
