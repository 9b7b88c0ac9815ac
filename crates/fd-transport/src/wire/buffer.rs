//! Bytes received and not yet used.

/// First size of a buffer in bytes; most connections never need more.
const FIRST: usize = 16 * 1024;
/// Up to this size the buffer grows to make reads larger, in bytes.
const EAGER_MAX: usize = 256 * 1024;
/// Up to this size it grows to hold one frame, in bytes. More than the largest frame.
const MAX: usize = 1024 * 1024;
/// And so far as it keeps what was used, which is for callers who stop at [`EAGER_MAX`] bytes.
const KEPT_MAX: usize = MAX + EAGER_MAX + EAGER_MAX;

/// A queue of bytes in one piece: filled at the back, used at the front.
///
/// It grows only when it is full of bytes that really came, never because a peer announced some.
#[derive(Default, Debug)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether what was used stays where it is.
    keeps: bool,
}

impl ReadBuffer {
    /// What is there.
    pub(crate) fn filled(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Forgets the first `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
        if self.is_empty() && !self.keeps {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Where in the memory [`Self::filled`] begins.
    pub(crate) const fn start(&self) -> usize {
        self.start
    }

    /// From now on, what is used stays where it is, or need not any more.
    pub(crate) const fn keep(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Trades its memory, with what was kept in it, for this; what is not used yet comes along.
    pub(crate) fn trade(&mut self, memory: &mut Vec<u8>) {
        let rest = self.bytes.get(self.start..self.end).unwrap_or_default();
        if memory.len() < rest.len() {
            memory.resize(rest.len(), 0);
        }
        if let Some(room) = memory.get_mut(..rest.len()) {
            room.copy_from_slice(rest);
        }
        (self.start, self.end, self.keeps) = (0, rest.len(), false);
        std::mem::swap(&mut self.bytes, memory);
    }

    /// Room for the next read: never empty, as long as no more than a largest frame is waiting.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.keeps {
            if self.end == self.bytes.len() && self.end < KEPT_MAX {
                self.bytes.resize((self.end + self.end / 2).clamp(FIRST, KEPT_MAX), 0);
            }
            return self.bytes.get_mut(self.end..).unwrap_or_default();
        }
        if self.start > 0 && self.bytes.len() - self.end < self.bytes.len() / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() && self.end < MAX {
            self.bytes.resize((self.end * 2).clamp(FIRST, MAX), 0);
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// `n` bytes were put into the front of [`ReadBuffer::space`].
    pub(crate) fn advance(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.bytes.len());
        if self.end == self.bytes.len() && self.end < EAGER_MAX {
            self.bytes.resize((self.end * 2).clamp(FIRST, EAGER_MAX), 0);
        }
    }

    /// Moves as much as fits to `to`.
    pub(crate) fn take(&mut self, to: &mut [u8]) -> usize {
        let n = self.filled().len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..n), self.filled().get(..n)) {
            to.copy_from_slice(from);
        }
        self.consume(n);
        n
    }
}

#[cfg(test)]
mod tests {
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
    fn what_is_kept_stays_where_it_is_until_it_is_traded() {
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
}
