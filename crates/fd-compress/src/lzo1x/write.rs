//! Writing LZO1X instructions: the cheapest coding of each element (§6.2), with as few branches as
//! can be.
//!
//! Every function writes to place `at` of `out` and returns the place behind the written bytes, or
//! `None` if `out` is too small; the stream is lost then.

use std::hint::select_unpredictable;

/// Farthest distance of an M2.
const M2_DISTANCE: usize = 0x800;
/// Longest match of an M2.
const M2_LENGTH: usize = 8;
/// Farthest distance of an M3.
const M3_DISTANCE: usize = 0x4000;
/// Longest match of an M3 without a length extension.
const M3_LENGTH: usize = 33;
/// Longest match of an M4 without a length extension.
const M4_LENGTH: usize = 9;

/// How far [`sequence`] stores behind the written bytes; its wide stores reach beyond them.
pub(super) const SLACK: usize = 48;

/// Most literals that [`sequence`] takes.
pub(super) const SHORT_RUN: usize = 16;

/// All the literals between two matches, or before the first, or after the last.
pub(super) fn literals(out: &mut [u8], at: usize, run: &[u8]) -> Option<usize> {
    let at = literals_head(out, at, run.len())?;
    bytes(out, at, run)
}

/// What comes before so many literals.
pub(super) fn literals_head(out: &mut [u8], mut at: usize, len: usize) -> Option<usize> {
    let [count, ..] = len.to_le_bytes();
    match len {
        0 => return Some(at),
        1..=238 if at == 0 => at = bytes(out, at, &[17 + count])?,
        1..=3 => *out.get_mut(at.checked_sub(2)?)? |= count,
        4..=18 => at = bytes(out, at, &[count - 3])?,
        more => {
            at = bytes(out, at, &[0])?;
            at = extension(out, at, more - 18)?;
        }
    }
    Some(at)
}

/// A match of any length from 3 (from distance 2049 on: 4) and any distance that can be coded.
pub(super) fn any_match(out: &mut [u8], mut at: usize, length: usize, distance: usize) -> Option<usize> {
    if let Some((instruction, size)) = short_match(length, distance) {
        return bytes(out, at, instruction.to_le_bytes().get(..size)?);
    }
    let operand = Operand::of(distance);
    let [op, ..] = operand.op.to_le_bytes();
    let [low, high, ..] = operand.word.to_le_bytes();
    at = bytes(out, at, &[op])?;
    at = extension(out, at, length.checked_sub(operand.longest)?)?;
    bytes(out, at, &[low, high])
}

/// At most [`SHORT_RUN`] literals, the first `count` bytes of `literals`, and the match after them.
/// A match must precede them.
#[inline]
pub(super) fn sequence(
    out: &mut [u8],
    at: usize,
    literals: [u8; SHORT_RUN],
    count: usize,
    length: usize,
    distance: usize,
) -> Option<usize> {
    // From here on all places are relative to the byte that takes a count of trailing literals
    // (§3.5).
    let room: &mut [u8; SLACK] = out.get_mut(at.checked_sub(2)?..)?.first_chunk_mut()?;
    let [count_byte, ..] = count.to_le_bytes();
    // Up to 3 literals go into the match before. More have an opcode of their own; it is stored
    // anyway, and overwritten if it is not needed.
    let trailing = count < 4;
    *room.get_mut(0)? |= select_unpredictable(trailing, count_byte, 0);
    *room.get_mut(2)? = count_byte.wrapping_sub(3);
    let literals_at = 2 + usize::from(!trailing);
    *room.get_mut(literals_at..)?.first_chunk_mut()? = literals;
    let match_at = literals_at + count;
    let at = at + match_at - 2;
    let Some((instruction, size)) = short_match(length, distance) else {
        return any_match(out, at, length, distance);
    };
    // The mask changes nothing: it proves to the compiler that the place is within bounds.
    *room.get_mut(match_at & 31..)?.first_chunk_mut()? = instruction.to_le_bytes();
    Some(at + size)
}

/// The end marker.
pub(super) const END: [u8; 3] = [0x11, 0, 0];

/// The bytes of a length that exceeds the opcode's by `excess`, at least one (§3.2).
fn extension(out: &mut [u8], at: usize, excess: usize) -> Option<usize> {
    let zeros = excess.checked_sub(1)? / 255;
    let [rest, ..] = (excess - 255 * zeros).to_le_bytes();
    out.get_mut(at..at + zeros)?.fill(0);
    bytes(out, at + zeros, &[rest])
}

fn bytes(out: &mut [u8], at: usize, bytes: &[u8]) -> Option<usize> {
    out.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(at + bytes.len())
}

/// A distance as an M3 or M4 codes it.
struct Operand {
    /// The opcode without a length.
    op: u32,
    /// The two bytes after the opcode.
    word: u32,
    /// Longest match without a length extension.
    longest: usize,
}

impl Operand {
    #[inline]
    fn of(distance: usize) -> Self {
        let low = low_u32(distance);
        if distance <= M3_DISTANCE {
            return Self { op: 0x20, word: (low - 1) << 2, longest: M3_LENGTH };
        }
        Self { op: 0x10 | ((low >> 12) & 8), word: (low & 0x3fff) << 2, longest: M4_LENGTH }
    }
}

/// The instruction of at most four bytes for a match, the first byte lowest, and its size; None if
/// it takes more.
#[inline]
fn short_match(length: usize, distance: usize) -> Option<(u32, usize)> {
    if distance > M3_DISTANCE || length > M3_LENGTH {
        return far_or_long_match(length, distance);
    }
    let is_m2 = ((length - 1) / M2_LENGTH) | ((distance - 1) / M2_DISTANCE) == 0;
    let (length, distance) = (low_u32(length), low_u32(distance - 1));
    let m2 = ((length - 1) << 5) + ((distance & 7) << 2) + ((distance & !7) << 5);
    let m3 = (0x20 + length - 2) + (distance << 10);
    Some((select_unpredictable(is_m2, m2, m3), 3 - usize::from(is_m2)))
}

/// The same for a match that is none of the usual ones.
#[inline]
fn far_or_long_match(length: usize, distance: usize) -> Option<(u32, usize)> {
    let Operand { op, word, longest } = Operand::of(distance);
    if length <= longest {
        return Some((op | (low_u32(length) - 2) | (word << 8), 3));
    }
    let excess = length - longest;
    (excess <= 255).then(|| (op | (low_u32(excess) << 8) | (word << 16), 4))
}

#[inline]
const fn low_u32(value: usize) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
