//! The decoder.

/// Why a stream is not valid (§4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The stream ends inside an instruction, its literals, or before an end marker.
    #[error("the stream is cut")]
    InputOverrun,
    /// The data do not fit into the limit.
    #[error("the data are longer than the limit")]
    OutputOverrun,
    /// A match reaches back before the first byte.
    #[error("a match reaches back before the first byte")]
    LookBehindOverrun,
    /// Bytes stand after the end marker.
    #[error("bytes follow the end of the stream")]
    InputNotConsumed,
}

impl Error {
    /// The number that the C library returns for it, and that stands in the stock daemon's message.
    pub const fn code(self) -> i32 {
        match self {
            Self::InputOverrun => -4,
            Self::OutputOverrun => -5,
            Self::LookBehindOverrun => -6,
            Self::InputNotConsumed => -8,
        }
    }
}

/// Appends the data of the stream `src`, at most `limit` bytes, to `out`. On an error `out` is as it was.
pub fn decompress(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let result = run(src, limit, start, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.0.split_first().ok_or(Error::InputOverrun)?;
        self.0 = rest;
        Ok(first)
    }
    fn length(&mut self, field: u8, mask: u8, base: usize) -> Result<usize, Error> {
        let field = usize::from(field & mask);
        if field != 0 {
            return Ok(field + base);
        }
        let mut sum = usize::from(mask) + base;
        loop {
            match self.byte()? {
                0 => sum = sum.saturating_add(255),
                last => return Ok(sum.saturating_add(usize::from(last))),
            }
        }
    }
    /// Two bytes: the upper fourteen bits, and the number of literals behind.
    fn word(&mut self) -> Result<(usize, u8), Error> {
        let low = self.byte()?;
        let word = u16::from_le_bytes([low, self.byte()?]);
        Ok((usize::from(word >> 2), low & 3))
    }
    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        if self.0.len() < len.saturating_add(3) {
            return Err(Error::InputOverrun);
        }
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Error::InputOverrun)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn run(src: &[u8], limit: usize, start: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut input = Input(src);
    let room = |out: &Vec<u8>, len: usize| {
        if len > limit - (out.len() - start) { Err(Error::OutputOverrun) } else { Ok(()) }
    };
    let mut state = 0;
    match src.first() {
        Some(&first @ 18..) => {
            input.byte()?;
            let len = usize::from(first) - 17;
            room(out, len)?;
            out.extend_from_slice(input.take(len)?);
            state = len.min(4);
        }
        Some(_) => {}
        None => return Err(Error::InputOverrun),
    }
    loop {
        match step(&mut input, state)? {
            Step::End => return if input.0.is_empty() { Ok(()) } else { Err(Error::InputNotConsumed) },
            Step::Literals(len) => {
                room(out, len)?;
                out.extend_from_slice(input.take(len)?);
                state = 4;
            }
            Step::Match { length, distance, trailing } => {
                if distance > out.len() - start {
                    return Err(Error::LookBehindOverrun);
                }
                room(out, length)?;
                copy_back(out, distance, length);
                state = usize::from(trailing);
                if state > 0 {
                    room(out, state)?;
                    out.extend_from_slice(input.take(state)?);
                }
            }
        }
    }
}

/// What one instruction says.
enum Step {
    /// So many bytes follow as they are.
    Literals(usize),
    /// Bytes that were there before, and up to three that follow as they are.
    Match { length: usize, distance: usize, trailing: u8 },
    /// The end mark.
    End,
}

/// Reads one instruction; `state` is the number of literals before it, 4 for four and more.
fn step(input: &mut Input<'_>, state: usize) -> Result<Step, Error> {
    if input.0.len() < 3 {
        return Err(Error::InputOverrun);
    }
    let op = input.byte()?;
    Ok(match op {
        0x40.. => {
            let distance = 8 * usize::from(input.byte()?) + usize::from((op >> 2) & 7) + 1;
            Step::Match { length: usize::from(op >> 5) + 1, distance, trailing: op & 3 }
        }
        0x20.. => {
            let length = input.length(op, 31, 2)?;
            let (word, trailing) = input.word()?;
            Step::Match { length, distance: word + 1, trailing }
        }
        0x10.. => {
            let length = input.length(op, 7, 2)?;
            let (word, trailing) = input.word()?;
            match 2048 * usize::from(op & 8) + word {
                0 => Step::End,
                far => Step::Match { length, distance: 16384 + far, trailing },
            }
        }
        _ if state == 0 => Step::Literals(input.length(op, 15, 3)?),
        _ => {
            let low = 4 * usize::from(input.byte()?) + usize::from(op >> 2);
            let (length, distance) = if state == 4 { (3, low + 2049) } else { (2, low + 1) };
            Step::Match { length, distance, trailing: op & 3 }
        }
    })
}

/// Repeats what stands `distance` bytes back, which may overlap what it writes.
fn copy_back(out: &mut Vec<u8>, distance: usize, length: usize) {
    for _ in 0..length {
        let byte = out.get(out.len() - distance).copied().unwrap_or_default();
        out.push(byte);
    }
}
