//! Making frames.

use std::ops::Range;

use crate::effort::{Effort, Look};
use crate::frame::{COMPRESSED, HEADER_LEN, MAX_PAYLOAD};
use crate::lz4::{ALWAYS_PLAIN, Compressor, MAX_DECOMPRESSED};
use crate::{CommCount, FrameError, Signal};

/// Writes frames to the end of a buffer and counts them. One per thread: it keeps what LZ4 needs
/// from frame to frame, so that a frame costs no allocation beside the growth of the buffer.
pub struct Encoder {
    compressor: Option<Compressor>,
    /// Says what is worth trying; without, everything is.
    effort: Option<Effort>,
    /// Where the parts of a payload come together for the compressor.
    joined: Vec<u8>,
    count: CommCount,
}

impl Encoder {
    /// An encoder; with `compress`, payloads are compressed where that pays (reference 01 §4.1).
    pub fn new(compress: bool) -> Self {
        let mut encoder = Self { compressor: None, effort: None, joined: Vec::new(), count: CommCount::default() };
        encoder.set_compress(compress);
        encoder
    }

    /// Switches compression for the frames to come.
    pub fn set_compress(&mut self, on: bool) {
        if on != self.compressor.is_some() {
            self.compressor = on.then(Compressor::new);
            self.joined = Vec::new();
        }
    }

    /// From now on payloads that look like those that did not compress lately are left out, and
    /// tried again now and then. Whatever was found out before is forgotten.
    pub fn spare_effort(&mut self) {
        self.effort = Some(Effort::default());
    }

    /// Whether compression is on.
    pub const fn compresses(&self) -> bool {
        self.compressor.is_some()
    }

    /// Appends one frame with this payload. An empty payload makes an empty frame.
    ///
    /// # Errors
    /// [`FrameError::TooBig`] above [`MAX_PAYLOAD`] bytes; nothing is appended then.
    pub fn data(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), FrameError> {
        self.frame(out, payload, Look::of_data)
    }

    /// The same for what stands round a file's data: the header of a record, attributes, a digest.
    /// Whether it compresses says nothing about data of the same length.
    ///
    /// # Errors
    /// As [`Encoder::data`].
    pub fn record(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), FrameError> {
        self.frame(out, payload, Look::of_record)
    }

    fn frame(&mut self, out: &mut Vec<u8>, payload: &[u8], look: fn(&[u8]) -> Look) -> Result<(), FrameError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(FrameError::TooBig { len: payload.len() });
        }
        let (flag, body) = match self.compressed(payload, look) {
            Some(block) => (COMPRESSED, block),
            None => (0, payload),
        };
        let body_len = body.len();
        out.reserve(HEADER_LEN + body_len);
        out.extend_from_slice(&header(flag, body_len));
        out.extend_from_slice(body);
        self.count += CommCount::data(payload.len(), body_len);
        Ok(())
    }

    /// The same for a payload that may be longer than [`MAX_PAYLOAD`], if it is not longer once it
    /// is compressed: a peer looks at the length of what comes.
    ///
    /// # Errors
    /// As [`Encoder::data`], for what is too long without compression or with it.
    pub fn large(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<(), FrameError> {
        let len = payload.len();
        if len <= MAX_PAYLOAD {
            return self.data(out, payload);
        }
        let too_big = FrameError::TooBig { len };
        let Some(compressor) = self.compressor.as_mut().filter(|_| len <= MAX_DECOMPRESSED) else {
            return Err(too_big);
        };
        let block = compressor.compress(payload).filter(|block| block.len() <= MAX_PAYLOAD).ok_or(too_big)?;
        out.extend_from_slice(&header(COMPRESSED, block.len()));
        out.extend_from_slice(block);
        self.count += CommCount::data(len, block.len());
        Ok(())
    }

    /// Begins a frame whose payload the caller writes behind it, so that it need not be copied
    /// there; says where the frame begins. [`Encoder::finish`] makes a frame of it; cutting `out`
    /// off there takes it back.
    pub fn begin(out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(&header(0, 0));
        start
    }

    /// The frame that begins at `start` is all that stands behind it: compresses it where that
    /// pays.
    ///
    /// # Errors
    /// As [`Encoder::data`]; the frame is taken back then.
    pub fn finish(&mut self, out: &mut Vec<u8>, start: usize) -> Result<(), FrameError> {
        let payload = out.get(start.saturating_add(HEADER_LEN)..).unwrap_or_default();
        let len = payload.len();
        if len > MAX_PAYLOAD {
            out.truncate(start);
            return Err(FrameError::TooBig { len });
        }
        let sent = if let Some(block) = self.compressed(payload, Look::of_data) {
            out.truncate(start);
            out.extend_from_slice(&header(COMPRESSED, block.len()));
            out.extend_from_slice(block);
            block.len()
        } else {
            if let Some(place) = out.get_mut(start..start.saturating_add(HEADER_LEN)) {
                place.copy_from_slice(&header(0, len));
            }
            len
        };
        self.count += CommCount::data(len, sent);
        Ok(())
    }

    /// The payload compressed, if the frame is to go out so.
    fn compressed(&mut self, payload: &[u8], look: fn(&[u8]) -> Look) -> Option<&[u8]> {
        // What is never compressed is no try, and says nothing about others.
        let compressor = self.compressor.as_mut().filter(|_| payload.len() > ALWAYS_PLAIN)?;
        let Some(effort) = &mut self.effort else { return compressor.compress(payload) };
        let look = look(payload);
        if !effort.is_worth(look) {
            return None;
        }
        let block = compressor.compress(payload);
        effort.tried(look, payload.len(), block.map(<[u8]>::len));
        block
    }

    /// Appends one frame whose payload is these parts one after the other, for example an address
    /// and a block. Without compression the parts are not joined first.
    ///
    /// # Errors
    /// As [`Encoder::data`].
    pub fn data_parts(&mut self, out: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), FrameError> {
        let len = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        if len > MAX_PAYLOAD {
            return Err(FrameError::TooBig { len });
        }
        if let Some((only, [])) = parts.split_first() {
            return self.data(out, only);
        }
        if self.compressor.is_some() {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            for part in parts {
                joined.extend_from_slice(part);
            }
            let result = self.data(out, &joined);
            self.joined = joined;
            return result;
        }
        out.reserve(4 + len);
        out.extend_from_slice(&header(0, len));
        for part in parts {
            out.extend_from_slice(part);
        }
        self.count += CommCount::data(len, len);
        Ok(())
    }

    /// Appends a frame whose payload of `len` bytes, zeros for now, is filled in later; says where
    /// it stands. Such a frame is never compressed.
    ///
    /// # Errors
    /// As [`Encoder::data`].
    pub fn reserve(&mut self, out: &mut Vec<u8>, len: usize) -> Result<Range<usize>, FrameError> {
        if len > MAX_PAYLOAD {
            return Err(FrameError::TooBig { len });
        }
        out.extend_from_slice(&header(0, len));
        let start = out.len();
        out.resize(start + len, 0);
        self.count += CommCount::data(len, len);
        Ok(start..start + len)
    }

    /// Appends a signal.
    pub fn signal(&mut self, out: &mut Vec<u8>, signal: Signal) {
        out.extend_from_slice(&signal.code().to_be_bytes());
        self.count += CommCount::signal(signal);
    }

    /// What was encoded since the last call.
    pub fn take_count(&mut self) -> CommCount {
        std::mem::take(&mut self.count)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("compresses", &self.compresses())
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// The header word; `len` is at most [`MAX_PAYLOAD`].
fn header(flag: u32, len: usize) -> [u8; 4] {
    (flag | u32::try_from(len).unwrap_or(u32::MAX >> 3)).to_be_bytes()
}

#[cfg(test)]
mod tests;
