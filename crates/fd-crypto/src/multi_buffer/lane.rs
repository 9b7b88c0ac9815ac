//! One message in its lane: its blocks, the last ones with their padding.

use super::{Algorithm, BLOCK};

/// What a lane is at.
pub(super) struct Lane<'m> {
    message: Option<usize>,
    /// Whole blocks that are still to come.
    rest: &'m [[u8; BLOCK]],
    /// The last bytes with their padding, one or two blocks.
    tail: [[u8; BLOCK]; 2],
    /// Which of them come next, and how many there are.
    tail_next: usize,
    tail_len: usize,
}

pub(super) const ZEROS: [u8; BLOCK] = [0; BLOCK];

/// As many blocks of zeros as there are.
pub(super) const MOST_IDLE: usize = 64;

/// For lanes without work.
static IDLE: [[u8; BLOCK]; MOST_IDLE] = [ZEROS; MOST_IDLE];

pub(super) fn idle(count: usize) -> &'static [[u8; BLOCK]] {
    IDLE.get(..count).unwrap_or(&IDLE)
}

impl Default for Lane<'_> {
    fn default() -> Self {
        Self { message: None, rest: &[], tail: [ZEROS; 2], tail_next: 0, tail_len: 0 }
    }
}

impl<'m> Lane<'m> {
    pub(super) fn new(algorithm: Algorithm, message: usize, bytes: &'m [u8]) -> Self {
        let (rest, last) = bytes.as_chunks::<BLOCK>();
        let (tail, tail_len) = padded(algorithm, last, bytes.len() as u64);
        Self { message: Some(message), rest, tail, tail_next: 0, tail_len }
    }

    /// The number of the message, once.
    pub(super) const fn take_message(&mut self) -> Option<usize> {
        self.message.take()
    }

    /// How many blocks stand one behind the other.
    pub(super) const fn at_hand(&self) -> usize {
        if self.rest.is_empty() { self.tail_len - self.tail_next } else { self.rest.len() }
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.at_hand() == 0
    }

    /// The next blocks, as many as are at hand, or zeros.
    pub(super) fn next_blocks(&mut self, count: usize) -> &[[u8; BLOCK]] {
        if let Some((first, rest)) = self.rest.split_at_checked(count).filter(|_| !self.rest.is_empty()) {
            self.rest = rest;
            return first;
        }
        if self.is_finished() {
            return idle(count);
        }
        let begin = self.tail_next;
        self.tail_next += count;
        self.tail.get(begin..self.tail_next).unwrap_or_default()
    }
}

/// The last bytes of a message of `length` bytes with their padding: one bit, zeros, and the length in bits; and how
/// many blocks that makes.
pub(super) fn padded(algorithm: Algorithm, last: &[u8], length: u64) -> ([[u8; BLOCK]; 2], usize) {
    let mut tail = [ZEROS; 2];
    let end = last.iter().chain(&[0x80]);
    tail.as_flattened_mut().iter_mut().zip(end).for_each(|(place, byte)| *place = *byte);
    let blocks = if last.len() + 1 + 8 <= BLOCK { 1 } else { 2 };
    if let Some(place) = tail.get_mut(blocks - 1).and_then(|block| block.last_chunk_mut()) {
        let bits = length.wrapping_mul(8);
        *place = match algorithm {
            Algorithm::Md5 => bits.to_le_bytes(),
            Algorithm::Sha256 => bits.to_be_bytes(),
        };
    }
    (tail, blocks)
}
