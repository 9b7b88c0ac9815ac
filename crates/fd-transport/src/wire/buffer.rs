//! Bytes received and not yet used.

/// First size of a buffer in bytes; most connections never need more.
const FIRST: usize = 16 * 1024;
/// Up to this size the buffer grows to make reads larger, in bytes.
const EAGER_MAX: usize = 256 * 1024;
/// Up to this size it grows to hold one frame, in bytes. More than the largest frame.
const MAX: usize = 1024 * 1024;
/// Up to this size it grows while it keeps what was used, for callers that stop at [`EAGER_MAX`]
/// bytes.
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
mod tests;
