//! The encoder's search: greedy, one table of positions, one candidate per position (§6, §10).
//!
//! What costs time is the mispredicted branch, not the arithmetic. So four positions are tried at once, with one
//! branch for "any of the four"; and the block is copied into a window of fixed size first, in which a 16-bit
//! position needs no bounds check. How a match and its literals are written stands in `write`.

use std::hint::select_unpredictable;

use super::decode::Error;
use super::write::{SHORT_RUN, SLACK, Writer};

/// Positions that a table entry can name. Longer blocks are searched in pieces of this size, each for itself; only
/// the literals between two matches run on over the border, as the format wants (§6.1).
const PIECE: usize = 1 << 16;
const WINDOW_LEN: usize = PIECE + 32;
/// A piece, and room for wide loads behind its end. What stands there is of no account: lengths are cut to the data.
type Window = [u8; WINDOW_LEN];

/// 4096 positions in 8 KiB. Twice as many make streams 2 % shorter and the search 3 % slower; with these the streams
/// are already 2 to 6 % shorter than the C library's.
const HASH_BITS: u32 = 12;
const TABLE_LEN: usize = 1 << HASH_BITS;
type Table = [u16; TABLE_LEN];

/// The farthest distance that can be coded (§3.1).
const MAX_DISTANCE: usize = 0xbfff;
/// Shortest match that is looked for. Three bytes would pay up to distance 2048 only (§6.3).
const MIN_MATCH: usize = 4;
/// Positions that are tried at once.
const GROUP: usize = 4;
/// Bytes that [`common`] compares before it looks where the data end.
const FIRST_LOOK: usize = 8;
/// No group starts in so many last bytes: the match at its last position, and the first look behind that match,
/// must lie within the data.
const END_GUARD: usize = (GROUP - 1) + MIN_MATCH + FIRST_LOOK;
/// After 32 bytes without a match one group is left out after each, after 64 bytes two, and so on: data that do not
/// shrink should at least not take long.
const SKIP_SHIFT: u32 = 5;

/// Compresses blocks, each on its own; keeps its table and buffers, some 150 KiB for blocks of 64 KiB.
#[derive(Debug)]
pub struct Encoder {
    table: Box<Table>,
    window: Box<Window>,
    buffer: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder that has seen nothing.
    #[expect(clippy::large_stack_arrays, reason = "64 KiB, on their way to the heap")]
    pub fn new() -> Self {
        Self { table: Box::new([0; TABLE_LEN]), window: Box::new([0; WINDOW_LEN]), buffer: Vec::new() }
    }

    /// The LZO1X stream of `src`: at most n + n/22 + 6 bytes (§5). It depends on `src` alone, not on what was
    /// compressed before.
    ///
    /// The only error is [`Error::OutputOverrun`]. It would mean that the bound does not hold; no input is known to
    /// cause it.
    pub fn compress(&mut self, src: &[u8]) -> Result<&[u8], Error> {
        let room = src.len() + src.len() / 16 + 67 + SLACK;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let len = self.stream(src).ok_or(Error::OutputOverrun)?;
        self.buffer.get(..len).ok_or(Error::OutputOverrun)
    }

    /// Writes the stream into the buffer; gives its length, or None if the buffer is too small.
    fn stream(&mut self, src: &[u8]) -> Option<usize> {
        let mut writer = Writer::new(&mut self.buffer);
        let mut literals_from = 0;
        for (piece, base) in src.chunks(PIECE).zip((0..).step_by(PIECE)) {
            self.window.get_mut(..piece.len())?.copy_from_slice(piece);
            self.table.fill(0);
            let mut search = Search { window: &self.window, table: &mut self.table, len: piece.len() };
            if let Some(Match { at, length, distance }) = search.next(1, 0) {
                writer = writer.literals(src.get(literals_from..base + at)?)?.any_match(length, distance)?;
                let from;
                (from, writer) = search.write_all(at + length, writer)?;
                literals_from = base + from;
            }
        }
        writer.literals(src.get(literals_from..)?)?.end()
    }
}

/// The search through one piece.
struct Search<'a> {
    window: &'a Window,
    table: &'a mut Table,
    /// Number of bytes in the window.
    len: usize,
}

/// The `length` bytes at `at` also stand `distance` before it.
struct Match {
    at: usize,
    length: usize,
    distance: usize,
}

impl Search<'_> {
    /// Writes the matches from `from` on, each with the literals before it. Gives the end of the last match.
    fn write_all<'w>(&mut self, mut from: usize, mut writer: Writer<'w>) -> Option<(usize, Writer<'w>)> {
        while let Some(Match { at, length, distance }) = self.next(from, from) {
            let run = at - from;
            if run <= SHORT_RUN {
                writer = writer.sequence(peek(self.window, from), run, length, distance)?;
            } else {
                writer = writer.literals(self.window.get(from..at)?)?.any_match(length, distance)?;
            }
            from = at + length;
            // One position near the end of a match is worth its while; all of them would not be.
            self.enter(from - 2);
        }
        Some((from, writer))
    }

    /// The next match from position `at` on, when the last one ended at `from`.
    #[expect(clippy::inline_always, reason = "as a call the whole encoder is slower by a fifth; see the bench")]
    #[inline(always)]
    fn next(&mut self, mut at: usize, from: usize) -> Option<Match> {
        let end = self.len.saturating_sub(END_GUARD);
        while at < end {
            if let Some((start, candidate)) = self.group(at) {
                let length = MIN_MATCH + common(self.window, start + MIN_MATCH, candidate + MIN_MATCH, self.len);
                return Some(Match { at: start, length, distance: start - candidate });
            }
            at += GROUP + GROUP * ((at - from) >> SKIP_SHIFT);
        }
        None
    }

    /// Tries the four positions from `at` on and enters them into the table. Gives the first of them at which a
    /// match starts, and where that was seen before.
    #[inline]
    fn group(&mut self, at: usize) -> Option<(usize, usize)> {
        let words = u64::from_le_bytes(peek(self.window, at));
        let (seen0, diff0) = self.probe(words, at);
        let (seen1, diff1) = self.probe(words >> 8, at + 1);
        let (seen2, diff2) = self.probe(words >> 16, at + 2);
        let (seen3, diff3) = self.probe(words >> 24, at + 3);
        // A product is 0 if one of its factors is. Unlike `||` it makes no branch.
        let first_pair = u64::from(diff0) * u64::from(diff1);
        let second_pair = u64::from(diff2) * u64::from(diff3);
        if first_pair.min(second_pair) != 0 {
            return None;
        }
        let from_first = select_unpredictable(diff0 == 0, seen0, seen1);
        let from_second = select_unpredictable(diff2 == 0, seen2, seen3);
        let candidate = usize::from(select_unpredictable(first_pair == 0, from_first, from_second));
        let skipped = select_unpredictable(first_pair == 0, usize::from(diff0 != 0), 2 + usize::from(diff2 != 0));
        let start = at + skipped;
        (start - candidate <= MAX_DISTANCE).then_some((start, candidate))
    }

    /// Where the hash of the low four bytes of `word` was seen last, and the difference between the four bytes there
    /// and these: 0 is a match. `at` takes the entry. An entry that was never taken names position 0, which is as
    /// good a candidate as any: the search begins at 1.
    #[inline]
    fn probe(&mut self, word: u64, at: usize) -> (u16, u32) {
        let word = low_u32(word);
        let Some(entry) = self.table.get_mut(hash(word)) else { return (0, 1) };
        let seen = std::mem::replace(entry, low_u16(at));
        (seen, u32::from_le_bytes(peek(self.window, usize::from(seen))) ^ word)
    }

    /// Enters one position into the table.
    #[inline]
    fn enter(&mut self, at: usize) {
        let word = u32::from_le_bytes(peek(self.window, at));
        if let Some(entry) = self.table.get_mut(hash(word)) {
            *entry = low_u16(at);
        }
    }
}

/// Number of equal bytes from `at` and from `back` on, within the first `len` bytes of the window.
#[inline]
fn common(window: &Window, at: usize, back: usize, len: usize) -> usize {
    let diff = u64::from_le_bytes(peek(window, at)) ^ u64::from_le_bytes(peek(window, back));
    if diff != 0 {
        return equal_bytes(diff.trailing_zeros());
    }
    let most = len - at;
    let mut count = FIRST_LOOK;
    while count < most {
        let diff = u128::from_le_bytes(peek(window, at + count)) ^ u128::from_le_bytes(peek(window, back + count));
        if diff != 0 {
            return most.min(count + equal_bytes(diff.trailing_zeros()));
        }
        count += 16;
    }
    most
}

/// How many bytes are equal when the lowest bit of their difference is number `bit`.
#[inline]
fn equal_bytes(bit: u32) -> usize {
    (bit / 8) as usize
}

/// The `N` bytes of the window from position `at` (modulo [`PIECE`]) on. The window's type shows that they exist, so
/// this compiles to a load.
#[inline]
fn peek<const N: usize>(window: &Window, at: usize) -> [u8; N] {
    let at = usize::from(low_u16(at));
    window.get(at..at + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

/// Multiplicative hash of four bytes: a table index.
#[inline]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)) as usize
}

#[inline]
const fn low_u32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[inline]
const fn low_u16(value: usize) -> u16 {
    let [a, b, ..] = value.to_le_bytes();
    u16::from_le_bytes([a, b])
}
