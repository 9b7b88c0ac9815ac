//! Writing LZO1X instructions: the cheapest coding of each element (§6.2), with as few branches as can be.

use std::hint::select_unpredictable;

/// Farthest distance of an M2.
const M2_DISTANCE: usize = 0x800;
/// Longest match of an M2.
const M2_LENGTH: usize = 8;
/// Farthest distance of an M3.
const M3_DISTANCE: usize = 0x4000;

/// How far [`Writer::sequence`] stores behind what is written so far; it stores more than it means.
pub(super) const SLACK: usize = 48;

/// Most literals that [`Writer::sequence`] takes.
pub(super) const SHORT_RUN: usize = 16;

/// A stream in the making. Every method gives None if the buffer is too small; the stream is lost then.
pub(super) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    /// All the literals between two matches, or before the first, or after the last.
    pub(super) fn literals(mut self, run: &[u8]) -> Option<Self> {
        let [count, ..] = run.len().to_le_bytes();
        match run.len() {
            0 => return Some(self),
            1..=238 if self.at == 0 => self.bytes(&[17 + count])?,
            1..=3 => *self.out.get_mut(self.at.checked_sub(2)?)? |= count,
            4..=18 => self.bytes(&[count - 3])?,
            more => {
                self.bytes(&[0])?;
                self.extension(more - 18)?;
            }
        }
        self.bytes(run)?;
        Some(self)
    }

    /// A match of any length from 3 (from distance 2049 on: 4) and any distance that can be coded.
    pub(super) fn any_match(mut self, length: usize, distance: usize) -> Option<Self> {
        let operand = Operand::of(distance);
        if let Some((instruction, size)) = short_match(length, distance, &operand) {
            self.bytes(instruction.to_le_bytes().get(..size)?)?;
            return Some(self);
        }
        let [op, ..] = operand.op.to_le_bytes();
        let [low, high, ..] = operand.word.to_le_bytes();
        self.bytes(&[op])?;
        self.extension(length.checked_sub(operand.longest)?)?;
        self.bytes(&[low, high])?;
        Some(self)
    }

    /// At most [`SHORT_RUN`] literals, the first `count` bytes of `literals`, and the match after them. There must
    /// have been a match before.
    #[inline]
    pub(super) fn sequence(
        mut self,
        literals: [u8; SHORT_RUN],
        count: usize,
        length: usize,
        distance: usize,
    ) -> Option<Self> {
        // From here on all places are relative to the byte that takes a count of trailing literals (§3.5).
        let room: &mut [u8; SLACK] = self.out.get_mut(self.at.checked_sub(2)?..)?.first_chunk_mut()?;
        let [count_byte, ..] = count.to_le_bytes();
        // Up to 3 literals go into the match before. More have an opcode of their own; it is stored anyway, and
        // overwritten if it is not wanted.
        let trailing = count < 4;
        *room.get_mut(0)? |= select_unpredictable(trailing, count_byte, 0);
        *room.get_mut(2)? = count_byte.wrapping_sub(3);
        let literals_at = 2 + usize::from(!trailing);
        *room.get_mut(literals_at..)?.first_chunk_mut()? = literals;
        let match_at = literals_at + count;
        self.at += match_at - 2;
        let Some((instruction, size)) = short_match(length, distance, &Operand::of(distance)) else {
            return self.any_match(length, distance);
        };
        // The mask changes nothing. It shows the compiler that the place is within the room.
        *room.get_mut(match_at & 31..)?.first_chunk_mut()? = instruction.to_le_bytes();
        self.at += size;
        Some(self)
    }

    /// The end marker. Gives the length of the stream.
    pub(super) fn end(mut self) -> Option<usize> {
        self.bytes(&[0x11, 0, 0])?;
        Some(self.at)
    }

    /// The bytes that say a length above what the opcode can say, by `excess`, at least one (§3.2).
    fn extension(&mut self, excess: usize) -> Option<()> {
        let zeros = excess.checked_sub(1)? / 255;
        let [rest, ..] = (excess - 255 * zeros).to_le_bytes();
        self.out.get_mut(self.at..self.at + zeros)?.fill(0);
        self.at += zeros;
        self.bytes(&[rest])
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }
}

/// What a distance means to an M3 or M4.
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
        // Class 0 is M3, 1 is M4, 2 is M4 with G; the constants hold a byte for each.
        let offset = distance - usize::from(distance <= M3_DISTANCE);
        let class = 8 * (offset >> 14);
        Self {
            op: (0x18_10_20 >> class) & 0xff,
            word: low_u32((offset & 0x3fff) << 2),
            longest: (0x09_09_21 >> class) & 0xff,
        }
    }
}

/// The instruction of at most four bytes for a match, the first byte lowest, and its size; None if it takes more.
#[inline]
fn short_match(length: usize, distance: usize, operand: &Operand) -> Option<(u32, usize)> {
    let Operand { op, word, longest } = *operand;
    if length > longest {
        let excess = length - longest;
        return (excess <= 255).then(|| (op | (low_u32(excess) << 8) | (word << 16), 4));
    }
    let is_m2 = length <= M2_LENGTH && distance <= M2_DISTANCE;
    let (length, distance) = (low_u32(length), low_u32(distance - 1));
    let m2 = ((length - 1) << 5) | ((distance & 7) << 2) | ((distance >> 3) << 8);
    let m3_or_m4 = op | (length - 2) | (word << 8);
    Some((select_unpredictable(is_m2, m2, m3_or_m4), 3 - usize::from(is_m2)))
}

#[inline]
const fn low_u32(value: usize) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
