//! One message in memory: its blocks, the last ones with their padding, and its state.

use super::algorithm::{Algorithm, BLOCK, Run, Words, ZEROS};

/// A message and how far it is.
pub(super) struct Message<'m> {
    number: Option<usize>,
    words: Words,
    /// Whole blocks that are still to come.
    rest: Run<'m>,
    /// The last bytes with their padding, one or two blocks.
    tail: [[u8; BLOCK]; 2],
    /// Which of them comes next, and how many there are.
    tail_next: usize,
    tail_len: usize,
}

impl Default for Message<'_> {
    /// No message.
    fn default() -> Self {
        Self { number: None, words: [0; 8], rest: &[], tail: [ZEROS; 2], tail_next: 0, tail_len: 0 }
    }
}

impl<'m> Message<'m> {
    /// The message of this number.
    pub(super) fn new(algorithm: Algorithm, number: usize, bytes: &'m [u8]) -> Self {
        let (rest, last) = bytes.as_chunks::<BLOCK>();
        let (tail, tail_len) = algorithm.padded(last, bytes.len() as u64);
        Self { number: Some(number), words: algorithm.start(), rest, tail, tail_next: 0, tail_len }
    }

    /// The number and the last state of a message that is finished, once.
    pub(super) fn take_finished(&mut self) -> Option<(usize, Words)> {
        if self.is_finished() { self.number.take().map(|number| (number, self.words)) } else { None }
    }

    /// How many blocks stand one behind the other.
    pub(super) const fn at_hand(&self) -> usize {
        if self.rest.is_empty() { self.tail_len - self.tail_next } else { self.rest.len() }
    }

    /// Whether there are no more blocks.
    pub(super) const fn is_finished(&self) -> bool {
        self.at_hand() == 0
    }

    /// The state, and the next blocks for it: at most as many as are at hand.
    pub(super) fn next(&mut self, count: usize) -> (&mut Words, Run<'_>) {
        let blocks = if let Some((first, rest)) = self.rest.split_at_checked(count).filter(|_| !self.rest.is_empty()) {
            self.rest = rest;
            first
        } else {
            let begin = self.tail_next;
            self.tail_next += count;
            self.tail.get(begin..self.tail_next).unwrap_or_default()
        };
        (&mut self.words, blocks)
    }
}
