//! The encoder's search: greedy, one table of positions, one candidate per position (§6, §10).
//!
//! The time goes into instructions and mispredicted branches, not into memory. So three positions
//! are tried at once, with one branch for "any of the three"; the first sixteen bytes behind a
//! match are compared without a branch; and the block is copied into a window of fixed size first,
//! in which a 16-bit position needs no bounds check. Matches and literals are written by `write`.

use std::hint::select_unpredictable;

use super::decode::Error;
use super::write::{self, SHORT_RUN, SLACK};

/// Positions that a table entry can name. Longer blocks are searched in pieces of this size, each
/// for itself; only the literals between two matches run on over the border, as the format requires
/// (§6.1).
const PIECE: usize = 1 << 16;
const WINDOW_LEN: usize = PIECE + 32;
/// A piece, and room for wide loads behind its end. The bytes there do not matter: lengths are cut
/// to the data.
type Window = [u8; WINDOW_LEN];

/// 8192 positions in 16 KiB. The streams are 1 to 8 % shorter than the C library's. With half as
/// many they are 2 % longer, so that some programs' are longer than the C library's; twice as many
/// make them 1 % shorter and the search slower.
const HASH_BITS: u32 = 13;
const TABLE_LEN: usize = 1 << HASH_BITS;
type Table = [u16; TABLE_LEN];

/// The farthest distance that can be coded (§3.1).
const MAX_DISTANCE: usize = 0xbfff;
/// Shortest match that is searched for. Three bytes would pay up to distance 2048 only (§6.3).
const MIN_MATCH: usize = 4;
/// Positions that are tried at once. With four the search needs more instructions and finds hardly
/// more.
const GROUP: usize = 3;
/// Bytes behind the first four that are compared before the end of the data is checked.
const FIRST_LOOK: usize = 16;
/// No group starts in this many last bytes: the match at its last position, and the first
/// comparison behind that match, must lie within the data.
const END_GUARD: usize = (GROUP - 1) + MIN_MATCH + FIRST_LOOK;
/// After 32 bytes without a match one group is left out after each, after 64 bytes two, and so on:
/// data that does not shrink should at least not take long.
const SKIP_SHIFT: u32 = 5;

/// Compresses blocks, each on its own; keeps its table and buffers, some 160 KiB for blocks of 64
/// KiB.
#[derive(Debug)]
pub struct LzoEncoder {
    table: Box<Table>,
    window: Box<Window>,
    buffer: Vec<u8>,
}

impl Default for LzoEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl LzoEncoder {
    /// A new encoder.
    #[expect(clippy::large_stack_arrays, reason = "64 KiB, on their way to the heap")]
    pub fn new() -> Self {
        Self { table: Box::new([0; TABLE_LEN]), window: Box::new([0; WINDOW_LEN]), buffer: Vec::new() }
    }

    /// Appends the LZO1X stream of `src` to `out`: at most n + n/22 + 6 bytes (§5). It depends on
    /// `src` alone, not on what was compressed before. The literals after the last match, which in
    /// a block that does not shrink are all of it, are copied only once.
    ///
    /// The only error is [`Error::OutputOverrun`], on which `out` is as it was. It would mean that
    /// the bound does not hold; no input is known to cause it.
    pub fn append(&mut self, src: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let (len, literals_from) = self.begin(src).ok_or(Error::OutputOverrun)?;
        let rest = src.get(literals_from..).unwrap_or_default();
        let len = write::literals_head(&mut self.buffer, len, rest.len()).ok_or(Error::OutputOverrun)?;
        out.extend_from_slice(self.buffer.get(..len).ok_or(Error::OutputOverrun)?);
        out.extend_from_slice(rest);
        out.extend_from_slice(&write::END);
        Ok(())
    }

    /// Writes the stream up to the last match into the buffer; returns its length and where the
    /// literals after that match begin, or `None` if the buffer is too small.
    fn begin(&mut self, src: &[u8]) -> Option<(usize, usize)> {
        let room = src.len() + src.len() / 16 + 67 + SLACK;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let out = self.buffer.as_mut_slice();
        let (mut at, mut literals_from) = (0, 0);
        for (piece, base) in src.chunks(PIECE).zip((0..).step_by(PIECE)) {
            self.table.fill(0);
            let Some((start, candidate)) = first_match(piece, &mut self.table) else { continue };
            self.window.get_mut(..piece.len())?.copy_from_slice(piece);
            let mut search = Search { window: &self.window, table: &mut self.table, len: piece.len() };
            let length = search.length(start, candidate);
            at = write::literals(out, at, src.get(literals_from..base + start)?)?;
            at = write::any_match(out, at, length, start - candidate)?;
            let from;
            (from, at) = search.write_all(start + length, out, at)?;
            literals_from = base + from;
        }
        Some((at, literals_from))
    }
}

/// What [`Search::next`] would find from position 1 on, where no match has ended yet: the position
/// and its earlier place. It reads few places of data that does not shrink, so copying all of that
/// to the window would take longer than the search.
fn first_match(piece: &[u8], table: &mut Table) -> Option<(usize, usize)> {
    let word = |at: usize| piece.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes);
    let end = piece.len().saturating_sub(END_GUARD);
    let mut at = 1;
    while at < end {
        let mut found = None;
        // All of a group take their entries, the first that matches counts.
        for place in at..at + GROUP {
            let here = word(place);
            let seen = usize::from(std::mem::replace(table.get_mut(hash(here))?, low_u16(place)));
            if found.is_none() && word(seen) == here {
                found = Some((place, seen));
            }
        }
        match found {
            Some((start, candidate)) if start - candidate <= MAX_DISTANCE => return found,
            _ => at += GROUP + GROUP * (at >> SKIP_SHIFT),
        }
    }
    None
}

/// The search through one piece.
struct Search<'a> {
    window: &'a Window,
    table: &'a mut Table,
    /// Number of bytes in the window.
    len: usize,
}

/// The `length` bytes at `start` also stand `distance` before it.
struct Match {
    start: usize,
    length: usize,
    distance: usize,
}

impl Search<'_> {
    /// Writes the matches from `from` on, each with the literals before it, to place `at` of `out`.
    /// Returns the end of the last match and the place behind it. Not inlined: code that runs once
    /// for a piece would take registers from it, and 2 % of the speed.
    #[inline(never)]
    fn write_all(&mut self, mut from: usize, out: &mut [u8], mut at: usize) -> Option<(usize, usize)> {
        while let Some(Match { start, length, distance }) = self.next(from, from) {
            let run = start - from;
            if run <= SHORT_RUN {
                at = write::sequence(out, at, load::<0, SHORT_RUN>(self.window, low_u16(from)), run, length, distance)?;
            } else {
                at = write::literals(out, at, self.window.get(from..start)?)?;
                at = write::any_match(out, at, length, distance)?;
            }
            from = start + length;
            // One position near the end of a match pays; all of them would not.
            let near_end = low_u16(from - 2);
            if let Some(entry) = self.table.get_mut(hash(u32::from_le_bytes(load::<0, 4>(self.window, near_end)))) {
                *entry = near_end;
            }
        }
        Some((from, at))
    }

    /// The next match from position `at` on, when the last one ended at `from`.
    #[expect(clippy::inline_always, reason = "as a call the whole encoder is slower by a fifth; see the bench")]
    #[inline(always)]
    fn next(&mut self, mut at: usize, from: usize) -> Option<Match> {
        let end = self.len.saturating_sub(END_GUARD);
        while at < end {
            if let Some((start, candidate)) = self.group(low_u16(at)) {
                let length = self.length(start, candidate);
                return Some(Match { start, length, distance: start - candidate });
            }
            at += GROUP + GROUP * ((at - from) >> SKIP_SHIFT);
        }
        None
    }

    /// Tries the three positions from `at` on and enters them into the table. Returns the first of
    /// them at which a match starts, and its earlier place.
    #[inline]
    fn group(&mut self, at: u16) -> Option<(usize, usize)> {
        let (seen0, diff0) = self.probe::<0>(at);
        let (seen1, diff1) = self.probe::<1>(at);
        let (seen2, diff2) = self.probe::<2>(at);
        // The highest bit is set if there was nothing to take 1 from. Unlike `||` this makes no
        // branch.
        let is_zero = |diff: u32| u64::from(diff).wrapping_sub(1);
        if (is_zero(diff0) | is_zero(diff1) | is_zero(diff2)) >> 63 == 0 {
            return None;
        }
        // Position and candidate are chosen as one number.
        let pair = |offset: u32, seen: u16| offset << 16 | u32::from(seen);
        let later = select_unpredictable(diff1 == 0, pair(1, seen1), pair(2, seen2));
        let first = select_unpredictable(diff0 == 0, pair(0, seen0), later);
        let (start, candidate) = (usize::from(at) + (first >> 16) as usize, usize::from(low_u16(first as usize)));
        (start - candidate <= MAX_DISTANCE).then_some((start, candidate))
    }

    /// Where the hash of the four bytes `OFFSET` behind `at` was seen last, and the difference
    /// between the four bytes there and these: 0 is a match. The position takes the entry. An entry
    /// that was never taken names position 0, which is as good a candidate as any: the search
    /// begins at 1.
    #[inline]
    fn probe<const OFFSET: u16>(&mut self, at: u16) -> (u16, u32) {
        let word = u32::from_le_bytes(load::<OFFSET, 4>(self.window, at));
        let Some(entry) = self.table.get_mut(hash(word)) else { return (0, 1) };
        let seen = std::mem::replace(entry, at.wrapping_add(OFFSET));
        (seen, u32::from_le_bytes(load::<0, 4>(self.window, seen)) ^ word)
    }

    /// The length of a match: the first four bytes are equal, and the first comparison is within
    /// the data.
    #[inline]
    fn length(&self, start: usize, candidate: usize) -> usize {
        let diff = |offset| word(self.window, start + offset) ^ word(self.window, candidate + offset);
        let (near, far) = (diff(MIN_MATCH), diff(MIN_MATCH + 8));
        if near | far == 0 {
            return self.long(start, candidate);
        }
        let bit = select_unpredictable(near != 0, near.trailing_zeros(), 64 + far.trailing_zeros());
        MIN_MATCH + equal_bytes(bit)
    }

    /// The length of a match that goes on after the first comparison. Not inlined: it would take
    /// registers that the search needs for every match.
    #[inline(never)]
    fn long(&self, start: usize, candidate: usize) -> usize {
        let mut length = MIN_MATCH + FIRST_LOOK;
        let rest = |at: usize, end| {
            let bytes = self.window.get(at + MIN_MATCH + FIRST_LOOK..end).unwrap_or_default();
            bytes.as_chunks::<16>().0.iter().map(|chunk| u128::from_le_bytes(*chunk))
        };
        for (here, there) in rest(start, self.len + 16).zip(rest(candidate, WINDOW_LEN)) {
            let diff = here ^ there;
            if diff != 0 {
                length += equal_bytes(diff.trailing_zeros());
                break;
            }
            length += 16;
        }
        length.min(self.len - start)
    }
}

/// How many bytes are equal when the lowest bit of their difference is number `bit`.
#[inline]
fn equal_bytes(bit: u32) -> usize {
    (bit / 8) as usize
}

/// The eight bytes of the window at `at`.
#[inline]
fn word(window: &Window, at: usize) -> u64 {
    window.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).copied().map_or(0, u64::from_le_bytes)
}

/// The `N` bytes of the window that stand `OFFSET` behind `at`. The types prove the bounds, so this
/// compiles to a load.
#[inline]
fn load<const OFFSET: u16, const N: usize>(window: &Window, at: u16) -> [u8; N] {
    let at = usize::from(at) + usize::from(OFFSET);
    window.get(at..at + N).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

/// Multiplicative hash of four bytes: a table index.
#[inline]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)) as usize
}

#[inline]
const fn low_u16(value: usize) -> u16 {
    let [a, b, ..] = value.to_le_bytes();
    u16::from_le_bytes([a, b])
}
