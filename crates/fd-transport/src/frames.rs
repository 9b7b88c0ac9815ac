//! Frames that were received together.

use fd_bsock::{FrameError, decompress_behind};

/// The payloads of frames, one behind the other, in memory that serves for the next ones too.
#[derive(Default, Debug)]
pub struct Frames {
    /// The payloads, and behind them what earlier ones left.
    bytes: Vec<u8>,
    /// Where each payload ends.
    ends: Vec<usize>,
}

impl Frames {
    /// Forgets all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Number of frames.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all payloads together.
    pub fn total(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// The payload of the frame with this number, counted from 0.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.bytes.get(begin..end)
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        let begin = self.total();
        let end = begin.saturating_add(payload.len());
        if self.bytes.len() < end {
            self.bytes.truncate(begin);
            self.bytes.extend_from_slice(payload);
        } else if let Some(room) = self.bytes.get_mut(begin..end) {
            room.copy_from_slice(payload);
        }
        self.ends.push(end);
    }

    /// Appends a frame whose payload is compressed.
    pub(crate) fn push_compressed(&mut self, payload: &[u8]) -> Result<(), FrameError> {
        let begin = self.total();
        self.ends.push(decompress_behind(payload, &mut self.bytes, begin)?);
        Ok(())
    }
}

impl AsRef<[u8]> for Frames {
    /// The memory of all payloads.
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_and_memory_is_kept() {
        let mut frames = Frames::default();
        let payloads: Vec<Vec<u8>> = [3, 0, 250, 64, 0, 5].map(|len: u8| vec![len; usize::from(len) * 7]).to_vec();
        // One literal and its match, made by hand: ten times the same letter.
        let compressed = [0x15, b'z', 1, 0, 0];
        let capacity = |frames: &Frames| frames.bytes.len();
        let mut room = 0;
        for turn in 0..3 {
            frames.clear();
            assert!(frames.is_empty());
            for payload in &payloads {
                frames.push(payload);
                frames.push_compressed(&compressed).unwrap();
            }
            assert_eq!(frames.len(), payloads.len() * 2);
            for (number, payload) in payloads.iter().enumerate() {
                assert_eq!(frames.get(number * 2), Some(payload.as_slice()));
                assert_eq!(frames.get(number * 2 + 1), Some(&b"zzzzzzzzzz"[..]));
            }
            assert_eq!(frames.get(payloads.len() * 2), None);
            assert_eq!(frames.total(), payloads.concat().len() + payloads.len() * 10);
            if turn == 0 {
                room = capacity(&frames);
            }
            assert_eq!(capacity(&frames), room);
        }
    }
}
