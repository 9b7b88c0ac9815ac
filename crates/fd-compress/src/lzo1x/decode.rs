//! The decoder: executes one instruction after the other with all checks, in the order of the C
//! library (§4.2, §4.3), so that result and number of bytes are those of the stock daemon for every
//! input.
//!
//! The fast path is in `fast`: it executes the common instructions as long as none of those checks
//! can fail, and leaves every other one to this file.

use super::fast::{self, Place};

/// Why a stream is not valid (§4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The stream ends inside an instruction, its literals, or before an end marker.
    #[error("the stream is cut")]
    InputOverrun,
    /// The data does not fit into the limit.
    #[error("the data are longer than the limit")]
    OutputOverrun,
    /// A match reaches back before the first byte.
    #[error("a match reaches back before the first byte")]
    LookBehindOverrun,
    /// There are bytes after the end marker.
    #[error("bytes follow the end of the stream")]
    InputNotConsumed,
}

impl Error {
    /// The number that the C library returns for it, and that the stock daemon's message contains.
    pub const fn code(self) -> i32 {
        match self {
            Self::InputOverrun => -4,
            Self::OutputOverrun => -5,
            Self::LookBehindOverrun => -6,
            Self::InputNotConsumed => -8,
        }
    }
}

/// Appends the data of the stream `src`, at most `limit` bytes, to `out`. On an error `out` is as
/// it was.
///
/// Memory grows with the decoded data, never with the announced length.
pub fn decompress(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let (written, verdict) = decode(src, limit, out, start);
    out.truncate(if verdict.is_ok() { start + written } else { start });
    verdict
}

/// Decodes into `buffer` from `start` on. The bytes of the buffer after that are room; more is
/// added as needed. Returns the number of bytes written, also on an error, and the result.
pub(super) fn decode(src: &[u8], limit: usize, buffer: &mut Vec<u8>, start: usize) -> (usize, Result<(), Error>) {
    let mut decoder =
        Decoder { src, buffer, start, end: start.saturating_add(limit), place: Place { at: 0, w: start, state: 0 } };
    let verdict = decoder.run();
    (decoder.place.w - start, verdict)
}

/// The block of a stock writer: the first guess at the length of the data.
const USUAL_BLOCK: usize = 65536;

struct Decoder<'a> {
    src: &'a [u8],
    buffer: &'a mut Vec<u8>,
    /// Place of the first byte; no match may reach before it.
    start: usize,
    /// Where the limit ends.
    end: usize,
    place: Place,
}

/// A decoded instruction.
enum Instruction {
    Literals(usize),
    Match { distance: usize, length: usize, trailing: u8 },
    End,
}

impl Decoder<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let n = self.src.len();
        self.make_room(n.saturating_mul(4).min(USUAL_BLOCK).max(n));
        if let first @ 18.. = *self.src.first().ok_or(Error::InputOverrun)? {
            self.place.at = 1;
            let count = first - 17;
            self.literals(usize::from(count))?;
            self.place.state = count.min(4);
        }
        loop {
            self.place = fast::advance(self.src, self.buffer, self.start, self.end, self.place);
            match self.instruction()? {
                Instruction::Literals(count) => {
                    self.literals(count)?;
                    self.place.state = 4;
                }
                Instruction::Match { distance, length, trailing } => {
                    self.copy(distance, length)?;
                    if trailing > 0 {
                        self.literals(usize::from(trailing))?;
                    }
                    self.place.state = trailing;
                }
                Instruction::End if self.place.at == n => return Ok(()),
                Instruction::End => return Err(Error::InputNotConsumed),
            }
        }
    }

    /// Reads an instruction without its literals (§3.1).
    fn instruction(&mut self) -> Result<Instruction, Error> {
        if self.src.len() - self.place.at < 3 {
            return Err(Error::InputOverrun);
        }
        let op = self.byte()?;
        Ok(match op {
            0x40.. => {
                let high = usize::from(self.byte()?);
                let distance = 8 * high + usize::from((op >> 2) & 7) + 1;
                Instruction::Match { distance, length: usize::from(op >> 5) + 1, trailing: op & 3 }
            }
            0x20.. => {
                let length = self.length(op & 31, 31, 2)?;
                let (word, trailing) = self.word()?;
                Instruction::Match { distance: word + 1, length, trailing }
            }
            0x10.. => {
                let length = self.length(op & 7, 7, 2)?;
                let (word, trailing) = self.word()?;
                match 16384 + 2048 * usize::from(op & 8) + word {
                    16384 => Instruction::End,
                    distance => Instruction::Match { distance, length, trailing },
                }
            }
            _ if self.place.state == 0 => Instruction::Literals(self.length(op, 15, 3)?),
            _ => {
                let high = usize::from(self.byte()?);
                let near = 4 * high + usize::from(op >> 2) + 1;
                let after_run = self.place.state == 4;
                let (distance, length) = if after_run { (near + 2048, 3) } else { (near, 2) };
                Instruction::Match { distance, length, trailing: op & 3 }
            }
        })
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.src.get(self.place.at).ok_or(Error::InputOverrun)?;
        self.place.at += 1;
        Ok(byte)
    }

    /// The operand of an M3 or M4: the upper 14 bits, and the number of trailing literals.
    fn word(&mut self) -> Result<(usize, u8), Error> {
        let low = self.byte()?;
        let word = u16::from_le_bytes([low, self.byte()?]);
        Ok((usize::from(word >> 2), low & 3))
    }

    /// A length of which `field`, at most `longest`, is the opcode's part; 0 means that more bytes
    /// follow (§3.2).
    fn length(&mut self, field: u8, longest: usize, base: usize) -> Result<usize, Error> {
        if field != 0 {
            return Ok(base + usize::from(field));
        }
        let mut length = base + longest;
        loop {
            match self.byte()? {
                0 => length = length.saturating_add(255),
                last => return Ok(length.saturating_add(usize::from(last))),
            }
        }
    }

    /// Copies literals. There must be room for them and three more bytes of input behind them: an
    /// end marker.
    fn literals(&mut self, count: usize) -> Result<(), Error> {
        let Place { at, w, .. } = self.place;
        if count > self.end - w {
            return Err(Error::OutputOverrun);
        }
        if self.src.len() - at < count.saturating_add(3) {
            return Err(Error::InputOverrun);
        }
        self.make_room(count);
        let literals = self.src.get(at..at + count).ok_or(Error::InputOverrun)?;
        self.buffer.get_mut(w..w + count).ok_or(Error::OutputOverrun)?.copy_from_slice(literals);
        self.place.at += count;
        self.place.w += count;
        Ok(())
    }

    /// Copies a match, as if byte by byte (§4.4).
    fn copy(&mut self, distance: usize, length: usize) -> Result<(), Error> {
        let w = self.place.w;
        if distance > w - self.start {
            return Err(Error::LookBehindOverrun);
        }
        if length > self.end - w {
            return Err(Error::OutputOverrun);
        }
        self.make_room(length);
        // The data repeats with period `distance`: copy it, then both copies, and so on.
        let pattern = self.buffer.get_mut(w - distance..w + length).ok_or(Error::OutputOverrun)?;
        let mut done = distance;
        while done < pattern.len() {
            let count = done.min(pattern.len() - done);
            pattern.copy_within(..count, done);
            done += count;
        }
        self.place.w += length;
        Ok(())
    }

    /// Makes the buffer long enough for `count` bytes more and for the slack of the fast path,
    /// within the limit. It grows by doubling.
    fn make_room(&mut self, count: usize) {
        let most = self.end.saturating_add(fast::SLACK);
        let needed = self.place.w.saturating_add(count).saturating_add(fast::REACH).min(most);
        if self.buffer.len() < needed {
            self.buffer.resize(self.buffer.len().saturating_mul(2).min(most).max(needed), 0);
        }
    }
}
