//! The order of the stock daemon's table.

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
fn records_have_the_order_of_the_stock_table() {
    let paths: Vec<Vec<u8>> = (0..1100_usize)
        .map(|n| {
            let [low, ..] = n.to_le_bytes();
            [format!("/srv/d/file{n}").as_bytes(), &[0xC3, low | 1], b"/".repeat(n % 2).as_slice()].concat()
        })
        .collect();
    for (announced, count) in [(0, 10), (31, 31), (31, 32), (5, 200), (200, 200), (1000, 40), (40, 1100), (3, 513)] {
        let mut table = Table::new(announced);
        (0..count).for_each(|n| table.insert(&paths, n));
        let order = TableOrder::new(announced, count as u64);
        let mut computed: Vec<usize> = (0..count).collect();
        let place = |n: usize| order.place(&paths[n], u32::try_from(n).unwrap());
        computed.sort_by(|one, other| order.compare(place(*one), place(*other)));
        assert_eq!(computed, table.walk(), "{announced} announced, {count} came");
    }
}

#[test]
fn an_absurd_announced_count_does_not_panic() {
    let order = TableOrder::new(u64::MAX, 1);
    assert_eq!(order.compare(order.place(b"a", 0), order.place(b"a", 0)), Ordering::Equal);
}
