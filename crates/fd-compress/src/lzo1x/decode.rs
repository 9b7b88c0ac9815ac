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
        if input.0.len() < 3 {
            return Err(Error::InputOverrun);
        }
        let op = input.byte()?;
        let (length, distance, trailing) = match op {
            0x40.. => {
                let high = usize::from(input.byte()?);
                (usize::from(op >> 5) + 1, 8 * high + usize::from((op >> 2) & 7) + 1, op & 3)
            }
            0x10.. => {
                let m3 = op >= 0x20;
                let length = if m3 { input.length(op, 31, 2)? } else { input.length(op, 7, 2)? };
                let low = input.byte()?;
                let word = usize::from(u16::from_le_bytes([low, input.byte()?]) >> 2);
                if m3 {
                    (length, word + 1, low & 3)
                } else {
                    let distance = 16384 + 2048 * usize::from(op & 8) + word;
                    if distance == 16384 {
                        return if input.0.is_empty() { Ok(()) } else { Err(Error::InputNotConsumed) };
                    }
                    (length, distance, low & 3)
                }
            }
            _ if state == 0 => {
                let len = input.length(op, 15, 3)?;
                room(out, len)?;
                out.extend_from_slice(input.take(len)?);
                state = 4;
                continue;
            }
            _ => {
                let high = usize::from(input.byte()?);
                let low = 4 * high + usize::from(op >> 2);
                if state == 4 { (3, low + 2049, op & 3) } else { (2, low + 1, op & 3) }
            }
        };
        if distance > out.len() - start {
            return Err(Error::LookBehindOverrun);
        }
        room(out, length)?;
        for _ in 0..length {
            let byte = out.get(out.len() - distance).copied().unwrap_or_default();
            out.push(byte);
        }
        let trailing = usize::from(trailing);
        if trailing > 0 {
            room(out, trailing)?;
            out.extend_from_slice(input.take(trailing)?);
        }
        state = trailing;
    }
}
