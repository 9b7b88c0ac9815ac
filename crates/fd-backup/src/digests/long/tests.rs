//! Digests of long files, made together.

use std::thread;

use fd_crypto::Digester;

use super::*;

const BOTH: [Option<DigestKind>; 2] = [Some(DigestKind::Md5), Some(DigestKind::Sha256)];

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31 + seed) >> 5).to_le_bytes()[0]).collect()
}

/// In each variant of the processor that has lanes.
fn each_variant(workers: usize, check: impl Fn(&LongDigests)) {
    let all: Vec<_> = Processor::variants().filter_map(|variant| LongDigests::new(workers, variant)).collect();
    if all.is_empty() {
        return skip::test("needs AVX-512");
    }
    all.iter().for_each(check);
}

/// That there are these digests, where there are lanes for them, and no others, and that they are those of this data.
fn check(all: &LongDigests, values: LongValues, kinds: [Option<DigestKind>; 2], data: &[u8], what: &str) {
    for kind in DigestKind::ALL {
        let suits = LongDigests::suits(kind, all.processor);
        let expected = (kinds.contains(&Some(kind)) && suits).then(|| {
            let mut digester = Digester::new(kind).unwrap();
            digester.update(data);
            digester.finish().unwrap()
        });
        assert_eq!(values.get(kind), expected, "{kind} of {what} with {}", all.processor);
    }
}

/// More workers than lanes, files that begin and end at any time, and blocks that fit nowhere.
#[test]
fn every_file_gets_its_own_digest() {
    const WORKERS: usize = 6;
    each_variant(WORKERS, |all| {
        thread::scope(|scope| {
            for seat in 0..WORKERS {
                scope.spawn(move || {
                    let mut long = LongDigest::new(all, seat);
                    for (turn, len) in [0, 63, 64, PORTION, 9 * PORTION + 5, PORTION - 1, 3_000_001].iter().enumerate()
                    {
                        let data = bytes(*len, seat + turn);
                        let kinds = match (seat + turn) % 4 {
                            0 => [BOTH[0], None],
                            1 => [None, BOTH[1]],
                            _ => BOTH,
                        };
                        long.begin(kinds, None);
                        data.chunks(65_528 - seat * 1000).for_each(|block| long.update(block));
                        check(all, long.finish(), kinds, &data, &format!("{len} bytes at seat {seat}"));
                    }
                });
            }
        });
    });
}

#[test]
fn a_file_that_is_given_up_leaves_nothing_behind() {
    each_variant(2, |all| {
        let mut long = LongDigest::new(all, 1);
        long.begin(BOTH, None);
        long.update(&bytes(3 * PORTION + 77, 1));
        long.begin(BOTH, None);
        let data = bytes(2 * PORTION + 5, 2);
        long.update(&data);
        check(all, long.finish(), BOTH, &data, "the second");
    });
}

/// What somebody else has left lies there until its owner or a companion digests it, and is digested once.
#[test]
fn a_companion_takes_what_lies_there() {
    each_variant(2, |all| {
        let (mut left, mut right) = (LongDigest::new(all, 0), LongDigest::new(all, 1));
        let (first, second) = (bytes(2 * PORTION, 3), bytes(ENOUGH * PORTION, 4));
        left.begin(BOTH, None);
        right.begin(BOTH, None);
        left.update(&first);
        right.update(&second);
        assert!(all.lock()[0].waiting.is_empty(), "the right one took it along");
        assert_eq!(all.lock()[1].waiting.len(), ENOUGH - 2, "as much of its own, and no more");
        check(all, left.finish(), BOTH, &first, "the left one");
        check(all, right.finish(), BOTH, &second, "the right one");
    });
}
