//! Frames that were received together.

use std::ops::Range;

use fd_bsock::{FrameError, decompress_behind};

use crate::wire::ReadBuffer;

/// The payloads of frames, where they came in: the memory is that of the connection, which gets
/// another one for it. It serves again when the frames are forgotten.
#[derive(Default, Debug)]
pub struct Frames {
    /// What came, or what may be traded for it.
    came: Vec<u8>,
    /// What compressed frames hold, one behind the other, and behind them what earlier ones left.
    unpacked: Vec<u8>,
    unpacked_end: usize,
    places: Vec<Place>,
    total: usize,
}

/// Where a payload is.
#[derive(Debug)]
struct Place {
    range: Range<usize>,
    is_unpacked: bool,
}

impl Frames {
    /// Forgets all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.places.clear();
        self.unpacked_end = 0;
        self.total = 0;
    }

    /// Number of frames.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of all payloads together.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// The payload of the frame with this number, counted from 0, once [`Channel::deliver`] was
    /// called.
    ///
    /// [`Channel::deliver`]: crate::Channel::deliver
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let Place { range, is_unpacked } = self.places.get(number)?;
        let memory = if *is_unpacked { &self.unpacked } else { &self.came };
        memory.get(range.clone())
    }

    /// Appends a frame that is at this place in the memory of the connection.
    pub(crate) fn push(&mut self, range: Range<usize>) {
        self.total = self.total.saturating_add(range.len());
        self.places.push(Place { range, is_unpacked: false });
    }

    /// Appends a frame whose payload is compressed.
    pub(crate) fn push_compressed(&mut self, payload: &[u8]) -> Result<(), FrameError> {
        let begin = self.unpacked_end;
        self.unpacked_end = decompress_behind(payload, &mut self.unpacked, begin)?;
        let range = begin..self.unpacked_end;
        self.total = self.total.saturating_add(range.len());
        self.places.push(Place { range, is_unpacked: true });
        Ok(())
    }

    /// Takes the memory that the frames came into.
    pub(crate) fn take_over(&mut self, buffer: &mut ReadBuffer) {
        if self.is_empty() {
            buffer.keep(false);
        } else {
            buffer.trade(&mut self.came);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_and_memory_is_kept() {
        let mut frames = Frames::default();
        let mut buffer = ReadBuffer::default();
        let payloads: Vec<Vec<u8>> = [3, 0, 250, 64, 0, 5].map(|len: u8| vec![len; usize::from(len) * 7]).to_vec();
        // One literal and its match, made by hand: ten times the same letter.
        let compressed = [0x15, b'z', 1, 0, 0];
        let rooms = |frames: &Frames| [frames.came.len(), frames.unpacked.len()];
        let mut room = [0, 0];
        for turn in 0..4 {
            frames.clear();
            assert!(frames.is_empty());
            for payload in &payloads {
                buffer.keep(!frames.is_empty());
                while buffer.filled().len() < payload.len() {
                    let missing = payload.len() - buffer.filled().len();
                    let count = buffer.space().len().min(missing);
                    buffer.space()[..count].copy_from_slice(&payload[..count]);
                    buffer.advance(count);
                }
                frames.push(buffer.start()..buffer.start() + payload.len());
                buffer.keep(true);
                buffer.consume(payload.len());
                frames.push_compressed(&compressed).unwrap();
            }
            frames.take_over(&mut buffer);
            assert_eq!(frames.len(), payloads.len() * 2);
            for (number, payload) in payloads.iter().enumerate() {
                assert_eq!(frames.get(number * 2), Some(payload.as_slice()));
                assert_eq!(frames.get(number * 2 + 1), Some(&b"zzzzzzzzzz"[..]));
            }
            assert_eq!(frames.get(payloads.len() * 2), None);
            assert_eq!(frames.total(), payloads.concat().len() + payloads.len() * 10);
            if turn == 1 {
                room = rooms(&frames);
            }
            assert!(turn < 1 || rooms(&frames) == room);
        }
    }
}
