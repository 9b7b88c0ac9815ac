//! Fingerprints of the inodes that a scan has found to be old, for a job with an accurate list.

use std::hash::{BuildHasher as _, RandomState};

use fd_records::Stat;

use super::inodes::Inodes;
use super::table::Inode;
use crate::settings::Compared;

/// More are not held: 64 MiB, for 8 million inodes.
const MOST: usize = 8 << 20;
/// They are held in pieces of so many, so that none is copied.
const PIECE: usize = 1 << 16;

/// For each inode of a set a number made of the attributes that the list compares. Its key is
/// random: no user can make two that are equal.
#[derive(Debug)]
pub(super) struct Prints {
    compared: Compared,
    key: RandomState,
    last: u64,
    pieces: Vec<Vec<u64>>,
    /// For each piece of the set, how many inodes are before it.
    starts: Vec<u32>,
}

impl Prints {
    pub(super) fn new(compared: Compared) -> Self {
        Self { compared, key: RandomState::new(), last: 0, pieces: Vec::new(), starts: Vec::new() }
    }

    fn of(&self, stat: &Stat) -> u64 {
        let Compared { inode, size, class } = self.compared;
        let class = class.then_some((stat.mode, stat.nlink, stat.uid, stat.gid));
        let more = (inode.then_some(stat.ino), size.then_some(stat.size), class);
        self.key.hash_one((stat.mtime, stat.ctime, more))
    }

    /// Adds the next one. `false`: there is no room for it, or they are not in order.
    pub(super) fn add(&mut self, inode: &Inode) -> bool {
        let is_next = inode.ino > std::mem::replace(&mut self.last, inode.ino);
        let print = self.of(&inode.stat());
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(print);
        }
        is_next && self.pieces.len() <= MOST / PIECE
    }

    /// Makes [`Self::has`] work. These inodes were added to both.
    pub(super) fn finish(&mut self, inodes: &Inodes) {
        self.starts = Vec::with_capacity(inodes.pieces());
        let mut start = 0;
        for size in inodes.sizes() {
            self.starts.push(start);
            start += size;
        }
    }

    /// Bytes.
    pub(super) fn memory(&self) -> usize {
        self.pieces.len() * PIECE * size_of::<u64>() + self.starts.len() * size_of::<u32>()
    }

    /// Whether the scan has found an inode of the set with these attributes.
    pub(super) fn has(&self, inodes: &Inodes, ino: u64, stat: &Stat) -> bool {
        let print = |found: (usize, u64)| {
            let number = self.starts.get(found.0)?.checked_add(inodes.before(found))?;
            let number = usize::try_from(number).ok()?;
            self.pieces.get(number / PIECE)?.get(number % PIECE).copied()
        };
        inodes.find(ino).and_then(print) == Some(self.of(stat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Compared = Compared { inode: true, size: true, class: true };

    fn inode(ino: u64) -> Inode {
        Inode { ino, mtime: 1, ctime: 2, mode: 0o10_0644, nlink: 1, uid: 0, gid: 0, size: 5 }
    }

    fn found(compared: Compared, numbers: &[u64]) -> (Inodes, Prints) {
        let (mut inodes, mut prints) = (Inodes::default(), Prints::new(compared));
        assert!(numbers.iter().all(|ino| inodes.add(*ino) && prints.add(&inode(*ino))));
        inodes.finish();
        prints.finish(&inodes);
        (inodes, prints)
    }

    #[test]
    fn an_inode_has_its_attributes_and_no_others() {
        let numbers = [1, 2, 63, 64, 700, 1 << 40];
        let (inodes, prints) = found(ALL, &numbers);
        for ino in numbers {
            assert!(prints.has(&inodes, ino, &inode(ino).stat()), "{ino}");
            for other in numbers.into_iter().filter(|other| *other != ino) {
                assert!(!prints.has(&inodes, ino, &inode(other).stat()), "{ino} {other}");
            }
        }
        assert!(!prints.has(&inodes, 3, &inode(3).stat()), "it was not found");
    }

    #[test]
    fn attributes_are_compared_as_the_letters_ask() {
        type Change = fn(&mut Stat);
        type IsCompared = fn(Compared) -> bool;
        let changes: [(Change, IsCompared); 8] = [
            (|stat| stat.mtime += 1, |_| true),
            (|stat| stat.ctime += 1, |_| true),
            (|stat| stat.ino += 1, |compared| compared.inode),
            (|stat| stat.size += 1, |compared| compared.size),
            (|stat| stat.mode ^= 1, |compared| compared.class),
            (|stat| stat.nlink += 1, |compared| compared.class),
            (|stat| stat.uid += 1, |compared| compared.class),
            (|stat| stat.gid += 1, |compared| compared.class),
        ];
        for bits in 0..8 {
            let compared = Compared { inode: bits & 1 != 0, size: bits & 2 != 0, class: bits & 4 != 0 };
            let (inodes, prints) = found(compared, &[64]);
            for (number, (change, is_compared)) in changes.into_iter().enumerate() {
                let mut stat = Stat { dev: 7, atime: 9, blocks: 8, ..inode(64).stat() };
                assert!(prints.has(&inodes, 64, &stat), "{compared:?}");
                change(&mut stat);
                assert_eq!(prints.has(&inodes, 64, &stat), !is_compared(compared), "{compared:?} {number}");
            }
        }
    }

    #[test]
    fn two_scans_have_different_numbers_for_the_same_attributes() {
        let prints = [0; 2].map(|_| Prints::new(ALL).of(&inode(64).stat()));
        assert_ne!(prints[0], prints[1]);
    }

    #[test]
    fn there_is_a_bound_and_an_order() {
        let full = vec![0; PIECE];
        let mut prints = Prints { pieces: vec![full; MOST / PIECE - 1], ..Prints::new(ALL) };
        assert!((1..=PIECE as u64).all(|ino| prints.add(&inode(ino))));
        assert!(!prints.add(&inode(1 << 40)));
        assert!(!Prints::new(ALL).add(&inode(0)));
        let mut prints = Prints::new(ALL);
        assert!(prints.add(&inode(7)) && !prints.add(&inode(7)) && !prints.add(&inode(6)));
    }
}
