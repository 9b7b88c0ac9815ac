//! Sizes of the objects of two buckets that others have published: how many objects there are of
//! each class of sizes. A class reaches from its bound to twice that, and a size within it is drawn
//! from the file's name.

use bed::Noise;

use crate::statistics::{Draws, seed_of};

/// Draws the order of sizes and the sizes within a class.
const SEED: u64 = 4;
/// Thousands of objects of the smaller bucket.
const SMALLER: usize = 30;
/// Thousands of objects of the larger one.
const LARGER: usize = 1320;
/// The larger bucket's sizes end here, bytes: with its few thousand large objects it would be 50 GB
/// and fit on few disks together with its volumes.
const CUT: usize = 96 << 10;

/// The lower bound of each class, bytes, and how many objects there are; 1.0 GB.
const SMALLER_CLASSES: [(usize, usize); 29] = [
    (0, 105),
    (1, 2),
    (2, 5),
    (4, 29),
    (8, 44),
    (16, 104),
    (32, 426),
    (64, 1292),
    (128, 3160),
    (256, 4086),
    (512, 5450),
    (1 << 10, 5082),
    (2 << 10, 4515),
    (4 << 10, 2840),
    (8 << 10, 1463),
    (16 << 10, 642),
    (32 << 10, 215),
    (64 << 10, 62),
    (128 << 10, 34),
    (256 << 10, 20),
    (512 << 10, 17),
    (1 << 20, 11),
    (2 << 20, 5),
    (4 << 20, 7),
    (8 << 20, 2),
    (16 << 20, 3),
    (32 << 20, 4),
    (64 << 20, 2),
    (256 << 20, 1),
];

/// The same of the larger bucket; 50 GB.
const LARGER_CLASSES: [(usize, usize); 30] = [
    (0, 4447),
    (1, 84),
    (2, 210),
    (4, 1218),
    (8, 1856),
    (16, 4399),
    (32, 42_269),
    (64, 54_950),
    (128, 137_627),
    (256, 175_792),
    (512, 232_435),
    (1 << 10, 219_163),
    (2 << 10, 195_773),
    (4 << 10, 126_805),
    (8 << 10, 68_979),
    (16 << 10, 28_939),
    (32 << 10, 10_646),
    (64 << 10, 3775),
    (128 << 10, 7584),
    (256 << 10, 3459),
    (512 << 10, 970),
    (1 << 20, 485),
    (2 << 20, 221),
    (4 << 20, 301),
    (8 << 20, 85),
    (16 << 20, 133),
    (32 << 20, 171),
    (64 << 20, 86),
    (128 << 20, 0),
    (256 << 20, 42),
];

/// Where a file goes and how large it is, in the order in which the files are made: about so many
/// thousand of them, with the smaller bucket's sizes up to its own number, else the larger one's.
pub(super) fn files(thousands: usize) -> impl Iterator<Item = (String, usize)> {
    let (classes, whole, most) = if thousands <= SMALLER {
        (&SMALLER_CLASSES[..], SMALLER, usize::MAX)
    } else {
        (&LARGER_CLASSES[..], LARGER, CUT)
    };
    // Rounded to the nearest.
    let part = |count: usize| (2 * count * thousands + whole) / (2 * whole);
    let all = classes.iter().flat_map(|&(bound, count)| std::iter::repeat_n(bound, part(count)));
    let mut bounds: Vec<usize> = all.collect();
    // Objects of all sizes stand beside each other.
    Draws::new(seed_of(SEED, &format!("objects{thousands}k"))).shuffle(&mut bounds);
    bounds.into_iter().enumerate().map(move |(number, bound)| {
        let name = format!("{:02}/{:02}/object-{number:07}", number / 50_000, number / 1000 % 50);
        let size = bound + Noise::new(seed_of(SEED, &name)).below(bound.max(1));
        (name, size.min(most))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// How many there are in each class, how many in all, and their bytes.
    fn counted(thousands: usize) -> (BTreeMap<usize, usize>, usize, usize) {
        let (mut classes, mut count, mut bytes) = (BTreeMap::new(), 0, 0);
        for (_, size) in files(thousands) {
            let bound = if size == 0 { 0 } else { 1 << size.ilog2() };
            *classes.entry(bound).or_default() += 1;
            count += 1;
            bytes += size;
        }
        (classes, count, bytes)
    }

    #[test]
    fn the_smaller_bucket_has_the_published_counts() {
        let (classes, count, bytes) = counted(30);
        assert_eq!(classes, SMALLER_CLASSES.into_iter().collect());
        assert_eq!((count, bytes), (29_628, 1_023_286_293));
    }

    #[test]
    fn a_part_of_it_has_the_same_shape() {
        let (classes, count, bytes) = counted(3);
        assert_eq!((classes[&512], classes[&(64 << 10)], classes.get(&(64 << 20))), (545, 6, None));
        assert_eq!((count, bytes), (2963, 22_344_441));
        assert_eq!(counted(1).1, 986);
    }

    #[test]
    fn the_larger_bucket_has_them_below_its_cut() {
        let (classes, count, bytes) = counted(1320);
        let wanted: BTreeMap<usize, usize> = LARGER_CLASSES.into_iter().collect();
        let end = 64 << 10;
        assert!(classes.range(..end).eq(wanted.range(..end)));
        let rest: usize = wanted.range(end..).map(|(_, count)| count).sum();
        assert_eq!((classes[&end], classes.range(end + 1..).count()), (rest, 0));
        assert_eq!((count, bytes), (1_322_904, 5_746_530_085));
    }

    #[test]
    fn sizes_and_names_are_the_same_each_time() {
        assert!(files(1).eq(files(1)));
        assert!(files(1).all(|(name, _)| name.starts_with("00/00/object-")));
    }
}
