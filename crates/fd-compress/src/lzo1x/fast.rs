//! The decoder's fast path: executes instructions as long as one comparison shows that they are
//! valid, and stops before the first for which it does not. It returns no errors.
//!
//! Copies are made in steps of 8 or 16 bytes and may overwrite up to [`SLACK`] bytes behind the
//! data.

use std::hint::select_unpredictable;

/// The decoder's position.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Position in the input.
    pub(super) at: usize,
    /// Position in the buffer.
    pub(super) w: usize,
    /// The only context of the format: how many literals came last (§3.4).
    pub(super) state: u8,
}

/// Bytes behind the data that a wide store can overwrite.
pub(super) const SLACK: usize = 32;
/// Bytes that one instruction can write or overwrite: the longest match, its literals, and the
/// slack.
pub(super) const REACH: usize = M3_LENGTH as usize + 255 + 3 + SLACK;
/// The input that one instruction can need: a literal run of 18 bytes, read as 1 + 16 + 4; or the
/// opcode, the extension and the operand of a match, and four bytes of literals.
const AHEAD: usize = 22;

/// Longest M3 and M4 without a length extension.
const M3_LENGTH: u32 = 33;
const M4_LENGTH: u32 = 9;
/// Distance 0 of an M4: the end marker.
const M4_BASE: u32 = 16384;

const IS_M2: u32 = 1 << 31;
const IS_EXTENDED: u32 = 1 << 30;
const LENGTH_SHIFT: u32 = 16;

/// The match of an opcode: flags, the length, and in the low 16 bits the distance for operand 0.
/// 0: no match in any state.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const MATCHES: [u32; 256] = {
    let mut table = [0; 256];
    let mut op = 0x10;
    while op < 0x100 {
        let m4_distance = M4_BASE + 2048 * (op & 8);
        table[op as usize] = match op {
            0x40.. => IS_M2 | ((op >> 5) + 1) << LENGTH_SHIFT | (((op >> 2) & 7) + 1),
            0x20 => IS_EXTENDED | M3_LENGTH << LENGTH_SHIFT | 1,
            0x21.. => ((op & 31) + 2) << LENGTH_SHIFT | 1,
            0x10 | 0x18 => IS_EXTENDED | M4_LENGTH << LENGTH_SHIFT | m4_distance,
            _ => ((op & 7) + 2) << LENGTH_SHIFT | m4_distance,
        };
        op += 1;
    }
    table
};

/// Executes instructions from `place` on and returns the place of the first that needs all checks.
/// Writes only below `end`, the limit, and matches reach back only to `start`.
pub(super) fn advance(src: &[u8], buffer: &mut [u8], start: usize, end: usize, mut place: Place) -> Place {
    let stop = end.min(buffer.len().saturating_sub(SLACK)).saturating_sub(REACH - SLACK);
    while place.w < stop {
        match instruction(src, buffer, start, place) {
            Some(next) => place = next,
            None => break,
        }
    }
    place
}

/// One instruction; `None` if it is not one for the fast path. `place` is unchanged then, and what
/// was stored behind it will be overwritten.
#[inline]
fn instruction(src: &[u8], buffer: &mut [u8], start: usize, place: Place) -> Option<Place> {
    let Place { at, w, state } = place;
    let input: &[u8; AHEAD] = src.get(at..)?.first_chunk()?;
    let &[op, x, y, z, ..] = input;
    let entry = *MATCHES.get(usize::from(op))?;
    if entry == 0 {
        if state != 0 || op == 0 {
            return None;
        }
        let count = usize::from(op) + 3;
        store::<16>(buffer, w, load(input, 1)?)?;
        store::<4>(buffer, w + 16, load(input, 17)?)?;
        return Some(Place { at: at + 1 + count, w: w + count, state: 4 });
    }
    let is_m2 = entry & IS_M2 != 0;
    let mut size = 3 - usize::from(is_m2);
    let [low, high, length, _] = entry.to_le_bytes();
    let mut length = usize::from(length);
    let mut word = u16::from_le_bytes([x, y]);
    if entry & IS_EXTENDED != 0 {
        if x == 0 {
            return None;
        }
        length += usize::from(x);
        word = u16::from_le_bytes([y, z]);
        size = 4;
    }
    let [word_low, _] = word.to_le_bytes();
    let operand = select_unpredictable(is_m2, u16::from(word_low) << 3, word >> 2);
    let trailing = select_unpredictable(is_m2, op, word_low) & 3;
    let distance = usize::from(u16::from_le_bytes([low, high])) + usize::from(operand);
    let is_end = distance == M4_BASE as usize && op < 0x20;
    if distance > w - start || is_end {
        return None;
    }
    copy(buffer, w, distance, length)?;
    store::<4>(buffer, w + length, load(input, size)?)?;
    let trailing_len = usize::from(trailing);
    Some(Place { at: at + size + trailing_len, w: w + length + trailing_len, state: trailing })
}

/// Copies a match in steps that are no longer than its distance; None for distances that are too
/// small for that.
#[inline]
fn copy(buffer: &mut [u8], w: usize, distance: usize, length: usize) -> Option<()> {
    let from = w - distance;
    if distance >= 16 {
        step::<16>(buffer, from, w)?;
        step::<16>(buffer, from + 16, w + 16)?;
        let mut done = 32;
        while done < length {
            step::<16>(buffer, from + done, w + done)?;
            done += 16;
        }
    } else if distance >= 8 {
        let mut done = 0;
        while done < length {
            step::<8>(buffer, from + done, w + done)?;
            done += 8;
        }
    } else {
        return None;
    }
    Some(())
}

#[inline]
fn step<const N: usize>(buffer: &mut [u8], from: usize, to: usize) -> Option<()> {
    let bytes = load::<N>(buffer, from)?;
    store(buffer, to, bytes)
}

#[inline]
fn load<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[inline]
fn store<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value;
    Some(())
}
