//! What a restore remembers about what it has made, in bounded memory.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

/// Words of the filter: 4 MiB. Untouched pages of it take no memory.
const FILTER_WORDS: usize = 512 * 1024;
/// Bits set per directory.
const FILTER_BITS: u64 = 4;

/// The directories whose own record was applied in this job, by device and inode.
///
/// It never forgets one, and may take another for one of them: one in 6000 with a million
/// directories, one in four with ten million. A false answer only means that a directory without a
/// record keeps its times when files are restored into it. An exact list would have no bound.
pub(super) struct RecordedDirectories {
    filter: Vec<u64>,
    keys: RandomState,
}

impl RecordedDirectories {
    pub(super) fn new() -> Self {
        Self { filter: Vec::new(), keys: RandomState::new() }
    }

    pub(super) fn insert(&mut self, device: u64, inode: u64) {
        if self.filter.is_empty() {
            // Zeros that the kernel gives, page by page, when a bit is set.
            self.filter = vec![0; FILTER_WORDS];
        }
        for (word, bit) in self.places(device, inode) {
            if let Some(word) = self.filter.get_mut(word) {
                *word |= bit;
            }
        }
    }

    /// Whether there is any, which spares the question about one.
    pub(super) fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    pub(super) fn contains(&self, device: u64, inode: u64) -> bool {
        self.places(device, inode).all(|(word, bit)| self.filter.get(word).is_some_and(|word| word & bit != 0))
    }

    /// The words and bits of one directory.
    fn places(&self, device: u64, inode: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let hash = self.keys.hash_one((device, inode));
        // Two halves make as many independent hashes as are wanted.
        let (start, stride) = (hash >> 32, hash | 1);
        (0..FILTER_BITS).map(move |turn| {
            let place = start.wrapping_add(turn.wrapping_mul(stride));
            let word = usize::try_from(place >> 6).unwrap_or_default() % FILTER_WORDS;
            (word, 1 << (place & 63))
        })
    }
}

/// How many things one generation holds.
const GENERATION: usize = 256 * 1024;

/// The last things of a kind that this job has made: directories, by path, which are no strangers
/// with replace modes that keep what exists; objects, by path and identity, which may get an update
/// of their attributes. Likewise what it could not replace, by path, which may get none.
///
/// Holds the last 262144 to 524288 of them as hashes, some 10 MiB. The directories on the way to
/// the current one are known besides, from the handles. What is older is taken for a thing that
/// existed before.
pub(super) struct Remembered {
    young: HashSet<u64>,
    old: HashSet<u64>,
    keys: RandomState,
}

impl Remembered {
    pub(super) fn new() -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), keys: RandomState::new() }
    }

    pub(super) fn insert(&mut self, thing: &impl Hash) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(self.keys.hash_one(thing));
    }

    pub(super) fn remove(&mut self, thing: &impl Hash) {
        if self.young.is_empty() && self.old.is_empty() {
            return;
        }
        let hash = self.keys.hash_one(thing);
        self.young.remove(&hash);
        self.old.remove(&hash);
    }

    pub(super) fn contains(&self, thing: &impl Hash) -> bool {
        let hash = self.keys.hash_one(thing);
        self.young.contains(&hash) || self.old.contains(&hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_directories_are_never_forgotten() {
        let mut recorded = RecordedDirectories::new();
        assert!(recorded.is_empty());
        assert!(!recorded.contains(1, 2));
        for inode in 0..100_000 {
            recorded.insert(7, inode);
        }
        assert!((0..100_000).all(|inode| recorded.contains(7, inode)));
        let strangers = (0..100_000).filter(|inode| recorded.contains(8, *inode)).count();
        assert!(strangers < 50, "{strangers} of 100000 taken for another");
    }

    #[test]
    fn the_last_things_are_known_and_the_memory_is_bounded() {
        let mut made = Remembered::new();
        let count = 3 * GENERATION;
        for number in 0..count {
            made.insert(&number.to_be_bytes());
        }
        assert!((count - GENERATION..count).all(|number| made.contains(&number.to_be_bytes())));
        assert!(!made.contains(&0_usize.to_be_bytes()));
        assert!(made.young.len() + made.old.len() <= 2 * GENERATION);
        for number in [count - GENERATION, count - 1] {
            made.remove(&number.to_be_bytes());
            assert!(!made.contains(&number.to_be_bytes()));
        }
    }
}
