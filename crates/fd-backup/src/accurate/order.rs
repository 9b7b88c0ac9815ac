//! The order of the records in the stock daemon's hash table of the accurate list (reference 04
//! §13.8).
//!
//! The records after the last file get their FileIndex in that order. The table itself is not
//! needed: the position of each record in it can be computed.

use std::cmp::Ordering;

/// The table after the whole list was inserted.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOrder {
    /// The table began with two to the power of this many buckets.
    first_bits: u32,
    /// How often it was doubled.
    doublings: u32,
}

/// The position of a record in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    bucket: u32,
    /// How many different records were inserted before.
    sequence: u32,
}

impl TableOrder {
    /// The table of a list that was announced with `announced` files and has `count` different
    /// ones.
    pub(super) fn new(announced: u64, count: u64) -> Self {
        let first_bits = u64::BITS - (announced.max(31) >> 2).leading_zeros();
        let mut order = Self { first_bits, doublings: 0 };
        order.doublings = order.doublings_until(count);
        order
    }

    /// The position of the record with this path, inserted after `sequence` others.
    pub(super) fn place(self, path: &[u8], sequence: u32) -> Place {
        let bits = self.first_bits + self.doublings;
        let mixed = hash(path).wrapping_mul(1_103_515_249) >> 30_u32.saturating_sub(bits);
        let mask = 1_u64.checked_shl(bits).unwrap_or_default().wrapping_sub(1);
        // No table in memory has more than 32 bits can number.
        Place { bucket: (mixed & mask & 0xFFFF_FFFF) as u32, sequence }
    }

    /// Which of two records comes first.
    pub(super) fn compare(self, one: Place, other: Place) -> Ordering {
        one.bucket.cmp(&other.bucket).then_with(|| {
            // A new record becomes the first of its bucket's chain. Each doubling takes the records
            // of a chain from its front and inserts them at the front of their new chains, which
            // reverses the order.
            let met = self.doublings_until(one.sequence.max(other.sequence).into());
            let latest_first = other.sequence.cmp(&one.sequence);
            if (self.doublings - met).is_multiple_of(2) { latest_first } else { latest_first.reverse() }
        })
    }

    /// How often the table was doubled until it held `count` records: it is doubled when the
    /// average length of a chain reaches four.
    fn doublings_until(self, count: u64) -> u32 {
        let mut doublings = 0;
        while 4_u64.checked_shl(self.first_bits + doublings).is_some_and(|limit| limit != 0 && limit <= count) {
            doublings += 1;
        }
        doublings
    }
}

/// The stock daemon's hash of a path. Bytes from 0x80 on are sign-extended to 32 bits.
fn hash(path: &[u8]) -> u64 {
    path.iter().fold(0_u64, |hash, byte| {
        let value = u64::from(i32::from(byte.cast_signed()).cast_unsigned());
        hash.wrapping_add(hash.rotate_left(5)).wrapping_add(value)
    })
}

#[cfg(test)]
mod tests;
