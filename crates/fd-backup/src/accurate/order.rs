//! In which order the stock daemon walks its hash table of the accurate list (reference 04 §13.8).
//!
//! The order gives the records at the end of the job their FileIndex, so it is kept, though the table is not: for
//! each record it can be computed where it would stand.

use std::cmp::Ordering;

/// The table as it is after the whole list was put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOrder {
    /// The table began with two to the power of this many buckets.
    first_bits: u32,
    /// How often it was doubled.
    doublings: u32,
}

/// Where a record stands in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    bucket: u64,
    /// How many different records came before.
    sequence: u64,
}

impl TableOrder {
    /// The table for a list that was announced with `announced` files and brought `count` different ones.
    pub(super) fn new(announced: u64, count: u64) -> Self {
        let first_bits = u64::BITS - (announced.max(31) >> 2).leading_zeros();
        let mut order = Self { first_bits, doublings: 0 };
        order.doublings = order.doublings_until(count);
        order
    }

    /// Where the record with this path stands that came after `sequence` others.
    pub(super) fn place(self, path: &[u8], sequence: u64) -> Place {
        let bits = self.first_bits + self.doublings;
        let mixed = hash(path).wrapping_mul(1_103_515_249) >> 30_u32.saturating_sub(bits);
        let mask = 1_u64.checked_shl(bits).unwrap_or_default().wrapping_sub(1);
        Place { bucket: mixed & mask, sequence }
    }

    /// Which of two records the walk meets first.
    pub(super) fn compare(self, one: Place, other: Place) -> Ordering {
        one.bucket.cmp(&other.bucket).then_with(|| {
            // A new record is put in front of its bucket's chain. Each doubling takes the records from the front and
            // puts them in front of their new chain, which turns the order round.
            let met = self.doublings_until(one.sequence.max(other.sequence));
            let latest_first = other.sequence.cmp(&one.sequence);
            if (self.doublings - met).is_multiple_of(2) { latest_first } else { latest_first.reverse() }
        })
    }

    /// How often the table was doubled until it held `count` records: whenever a chain's average length reaches four.
    fn doublings_until(self, count: u64) -> u32 {
        let mut doublings = 0;
        while 4_u64.checked_shl(self.first_bits + doublings).is_some_and(|limit| limit != 0 && limit <= count) {
            doublings += 1;
        }
        doublings
    }
}

/// The stock daemon's hash of a path. Bytes from 0x80 on count as the large unsigned numbers that they become there.
fn hash(path: &[u8]) -> u64 {
    path.iter().fold(0_u64, |hash, byte| {
        let value = u64::from(i32::from(byte.cast_signed()).cast_unsigned());
        hash.wrapping_add(hash.rotate_left(5)).wrapping_add(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table itself, as the reference describes it.
    struct Table {
        bits: u32,
        buckets: Vec<Vec<usize>>,
        count: usize,
    }

    impl Table {
        fn new(announced: u64) -> Self {
            let mut t = announced.max(31) >> 2;
            let mut bits = 0;
            while t > 0 {
                t >>= 1;
                bits += 1;
            }
            Self { bits, buckets: vec![Vec::new(); 1 << bits], count: 0 }
        }

        fn bucket(&self, path: &[u8]) -> usize {
            let mixed = hash(path).wrapping_mul(1_103_515_249) >> (30 - self.bits);
            usize::try_from(mixed & ((1 << self.bits) - 1)).unwrap()
        }

        fn insert(&mut self, paths: &[Vec<u8>], n: usize) {
            let bucket = self.bucket(&paths[n]);
            self.buckets[bucket].insert(0, n);
            self.count += 1;
            if self.count >= 4 << self.bits {
                let old = self.walk();
                self.bits += 1;
                self.buckets = vec![Vec::new(); 1 << self.bits];
                for n in old {
                    let bucket = self.bucket(&paths[n]);
                    self.buckets[bucket].insert(0, n);
                }
            }
        }

        fn walk(&self) -> Vec<usize> {
            self.buckets.iter().flatten().copied().collect()
        }
    }

    #[test]
    fn the_order_is_that_of_the_table() {
        let paths: Vec<Vec<u8>> = (0..1100_usize)
            .map(|n| {
                let [low, ..] = n.to_le_bytes();
                [format!("/srv/d/file{n}").as_bytes(), &[0xC3, low | 1], b"/".repeat(n % 2).as_slice()].concat()
            })
            .collect();
        for (announced, count) in [(0, 10), (31, 31), (31, 32), (5, 200), (200, 200), (1000, 40), (40, 1100), (3, 513)]
        {
            let mut table = Table::new(announced);
            (0..count).for_each(|n| table.insert(&paths, n));
            let order = TableOrder::new(announced, count as u64);
            let mut computed: Vec<usize> = (0..count).collect();
            computed.sort_by(|one, other| {
                order.compare(order.place(&paths[*one], *one as u64), order.place(&paths[*other], *other as u64))
            });
            assert_eq!(computed, table.walk(), "{announced} announced, {count} came");
        }
    }

    #[test]
    fn absurd_announcements_do_no_harm() {
        let order = TableOrder::new(u64::MAX, 1);
        assert_eq!(order.compare(order.place(b"a", 0), order.place(b"a", 0)), Ordering::Equal);
    }
}
