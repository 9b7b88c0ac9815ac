//! When the depth grows and shrinks, on storage that is made up.

use super::*;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
const BOUNDS: Bounds = Bounds { least: 1, working: 2, most: 64, worth: Duration::from_micros(20), worth_of_work: MS };

/// A depth, with a clock of its own.
struct Bed {
    depth: Depth,
    now: Instant,
}

impl Bed {
    fn new(bounds: Bounds) -> Self {
        Self { depth: Depth::new(bounds), now: Instant::now() }
    }

    /// Makes calls for so many milliseconds. Each works and waits so long, where at most so many
    /// don't wait for each other. Returns the depths that there were.
    fn run(&mut self, millis: u64, (worked, waited): (Duration, Duration), side_by_side: usize) -> Vec<usize> {
        let until = self.now + MS * u32::try_from(millis).unwrap();
        let mut depths = Vec::new();
        while self.now < until {
            let at_a_time = u32::try_from(self.depth.get()).unwrap();
            let queue = u32::try_from(self.depth.get().div_ceil(side_by_side)).unwrap();
            let time = worked + waited * queue;
            let rounds = u32::try_from((MS.as_nanos() / time.as_nanos()).max(1)).unwrap();
            self.now += time * rounds;
            let calls = at_a_time * rounds;
            let taken = Taken { calls, waited: waited * queue * calls, worked: worked * calls };
            self.depth.took(taken, true, self.now);
            if depths.last() != Some(&self.depth.get()) {
                depths.push(self.depth.get());
            }
        }
        depths
    }
}

#[test]
fn calls_that_hardly_wait_are_made_one_at_a_time() {
    let run = |worked, waited| Bed::new(BOUNDS).run(1000, (worked, waited), 64);
    for waited in [0, 1, 15] {
        assert_eq!(run(2 * US, waited * US), [1], "{waited} µs");
    }
    assert_eq!(run(30 * US, 29 * US), [1], "others can't work meanwhile");
    assert_eq!(run(MS, Duration::ZERO), [1, BOUNDS.working], "each works for long");
}

#[test]
fn the_depth_grows_while_calls_wait_and_falls_when_they_do_not() {
    let mut bed = Bed::new(BOUNDS);
    assert_eq!(bed.run(200, (10 * US, 5 * MS), 64)[..4], [1, 4, 16, 64]);
    assert_eq!(bed.run(1000, (10 * US, US), 64), [32, 16, 8, 4, 2, 1]);
}

#[test]
fn no_more_are_made_than_keep_the_processors_at_work() {
    let mut bed = Bed::new(BOUNDS);
    let depths = bed.run(200, (MS, 3 * MS), 64);
    assert_eq!(depths.last(), Some(&8), "a quarter of their time works: {depths:?}");
    assert_eq!(bed.run(500, (MS, 2900 * US), 64).iter().max(), Some(&8), "a little less changes nothing");
}

#[test]
fn a_depth_that_does_not_pay_is_given_up_and_tried_again_now_and_then() {
    let mut bed = Bed::new(BOUNDS);
    let depths = bed.run(60_000, (10 * US, 500 * US), 4);
    let tried = depths.iter().filter(|depth| **depth == 8).count();
    assert!((2..20).contains(&tried), "{tried} times");
    assert!(depths.iter().filter(|depth| **depth > 8).count() <= 1, "{depths:?}");
    // What makes it faster later is found.
    assert_eq!(bed.run(60_000, (10 * US, MS), 64).iter().max(), Some(&64));
}

#[test]
fn what_has_paid_is_given_up_when_it_pays_no_more() {
    let mut bed = Bed::new(BOUNDS);
    assert_eq!(bed.run(200, (10 * US, 5 * MS), 64).last(), Some(&64), "the disk is late for a moment");
    let depths = bed.run(3000, (10 * US, 30 * US), 1);
    assert!(depths.last().unwrap() <= &4, "{depths:?}");
    // Where it pays, half of it is hardly ever tried.
    let mut bed = Bed::new(BOUNDS);
    let depths = bed.run(20_000, (10 * US, 5 * MS), 64);
    assert!(depths.iter().filter(|depth| **depth == 32).count() < 12, "{depths:?}");
}

#[test]
fn the_depth_stays_where_no_more_calls_are_wanted() {
    let mut bed = Bed::new(BOUNDS);
    assert!(bed.depth.begin(Taken { calls: 9, waited: 9 * MS, worked: MS }));
    assert_eq!(bed.depth.get(), FIRST_OF_LATE);
    for _ in 0..100 {
        assert!(!bed.depth.took(Taken { calls: 100, waited: 500 * MS, worked: MS }, false, bed.now));
    }
    assert!(!bed.depth.begin(Taken { calls: 9, waited: US, worked: US }), "these don't wait");
}

#[test]
fn bounds_hold() {
    let mut bed = Bed::new(Bounds { least: 300, most: 300, ..BOUNDS });
    assert_eq!(bed.run(1000, (US, 5 * MS), 64), [300], "it is fixed");
    assert_eq!(bed.run(1000, (US, US), 64), [300]);
    assert!(bed.depth.lately().calls > 0, "what the calls take is known all the same");
    let mut bed = Bed::new(BOUNDS);
    bed.depth.no_more_than(3);
    assert_eq!(bed.run(1000, (10 * US, 5 * MS), 64).iter().max(), Some(&3));
    bed.depth.no_more_than(0);
    assert_eq!(bed.run(1000, (10 * US, 5 * MS), 64), [1]);
}
