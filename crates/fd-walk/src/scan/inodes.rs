//! The inodes that a scan has found to be old.

/// Inodes of one piece: bits of one number.
const PIECE: u64 = 64;
/// More pieces are not held: 16 MiB, for 64 million inodes that are side by side.
const MOST_PIECES: usize = 1 << 20;

/// A set of numbers, by pieces of 64: the number of each piece, and a bit for each number in it.
#[derive(Default, Debug)]
pub(crate) struct Inodes(Vec<(u64, u64)>);

impl Inodes {
    /// Adds a number; most are greater than those before. `false`: there is no room for it.
    pub(super) fn add(&mut self, ino: u64) -> bool {
        let (piece, bit) = (ino / PIECE, 1 << (ino % PIECE));
        if let Some((last, bits)) = self.0.last_mut()
            && *last == piece
        {
            *bits |= bit;
            return true;
        }
        self.0.push((piece, bit));
        self.0.len() <= MOST_PIECES
    }

    /// Makes [`Self::find`] work.
    pub(super) fn finish(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 |= later.1;
            }
            is_same
        });
        self.0.shrink_to_fit();
    }

    /// How many pieces there are.
    pub(super) const fn pieces(&self) -> usize {
        self.0.len()
    }

    /// The place of the piece of this number, and its bit, if it is in the set.
    pub(super) fn find(&self, ino: u64) -> Option<(usize, u64)> {
        let bit = 1 << (ino % PIECE);
        let place = self.0.binary_search_by_key(&(ino / PIECE), |(piece, _)| *piece).ok()?;
        self.0.get(place).filter(|(_, bits)| bits & bit != 0)?;
        Some((place, bit))
    }

    /// How many numbers each piece has.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(_, bits)| bits.count_ones())
    }

    /// How many numbers of its piece are less than one that [`Self::find`] has found.
    pub(super) fn before(&self, (place, bit): (usize, u64)) -> u32 {
        self.0.get(place).map_or(0, |(_, bits)| (bits & (bit - 1)).count_ones())
    }

    /// Whether it is in the set.
    pub(crate) fn has(&self, ino: u64) -> bool {
        self.find(ino).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added_in_any_order() {
        let mut set = Inodes::default();
        for ino in [700, 701, 64, 63, 0, u64::MAX, 702, 65] {
            assert!(set.add(ino));
        }
        set.finish();
        assert_eq!(set.pieces(), 4);
        for ino in [700, 701, 64, 63, 0, u64::MAX, 702, 65] {
            assert!(set.has(ino), "{ino}");
        }
        assert!(![1, 62, 66, 699, 703, u64::MAX - 1, 1 << 40].into_iter().any(|ino| set.has(ino)));
        assert!(!Inodes::default().has(0));
    }

    #[test]
    fn a_set_has_a_bound() {
        let mut set = Inodes::default();
        let most = MOST_PIECES as u64 * PIECE;
        assert!((0..most).step_by(64).all(|ino| set.add(ino)));
        assert!(set.add(most - 1));
        assert!(!set.add(most));
    }
}
