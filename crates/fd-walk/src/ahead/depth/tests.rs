//! When the depth grows and shrinks.

use std::num::NonZeroU16;
use std::ops::Range;
use std::thread::sleep;

use super::*;

/// The depth after so many lookups on the walk's own thread.
fn after(depth: &mut Depth, lookups: usize, look: impl Fn()) -> usize {
    for _ in 0..lookups {
        depth.watch(&look);
    }
    depth.get()
}

#[test]
fn the_depth_stays_at_one_while_lookups_only_compute() {
    let slowly = || {
        let begun = Instant::now();
        while begun.elapsed() < WORTH * 2 {}
    };
    // An emulated processor waits for itself now and then.
    let computes = (0..20).any(|_| {
        let (mut depth, before) = (Depth::new(LookupDepth::Adaptive), times_waited());
        let depths = [after(&mut depth, 1000, slowly), after(&mut depth, 100_000, || ())];
        let has_waited = times_waited() != before;
        assert!(has_waited || depths == [1, 1], "{depths:?}");
        !has_waited
    });
    assert!(computes, "no time without a wait");
}

#[test]
fn lookups_that_wait_are_noticed_soon() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    assert_eq!(after(&mut depth, 20, || sleep(LATE)), FIRST_OF_LATE);
    // Also after many that did not wait.
    let mut depth = Depth::new(LookupDepth::Adaptive);
    assert_eq!(after(&mut depth, 100_000, || ()), 1);
    assert!((0..2 * WINDOW).any(|_| after(&mut depth, 1, || sleep(LATE)) > 1));
}

#[test]
fn a_depth_of_the_settings_stays() {
    let setting = LookupDepth::Fixed(NonZeroU16::MIN);
    assert_eq!(after(&mut Depth::new(setting), 50, || sleep(LATE)), 1);
    let mut depth = Depth::new(LookupDepth::Fixed(NonZeroU16::new(300).unwrap()));
    assert!(!(0..1000).any(|_| depth.used(LATE, || Taken { calls: 9, waited: LATE, ..Taken::default() })));
    assert_eq!(depth.get(), 300);
}

/// The depth after considerations in these seconds, in each of which the walk waits so long. At
/// most so many lookups do not wait for each other.
fn considered(depth: &mut Depth, seconds: Range<u64>, walk_waited: u64, each_waited: Duration, most: usize) -> usize {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    for second in seconds {
        depth.used = Taken { calls: 1000, waited: Duration::from_millis(walk_waited), ..Taken::default() };
        let waited = each_waited * 1000 * u32::try_from(depth.get().div_ceil(most)).unwrap();
        depth.consider(*BEGUN + Duration::from_secs(second), Taken { calls: 1000, waited, ..Taken::default() });
    }
    depth.get()
}

#[test]
fn the_depth_grows_while_the_walk_waits_and_shrinks_where_lookups_no_longer_do() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    depth.change(2);
    assert_eq!(considered(&mut depth, 0..20, 500, LATE, MOST), MOST);
    // The walk has its answers in time: that is enough.
    assert_eq!(considered(&mut depth, 20..40, 50, LATE, MOST), MOST);
    assert_eq!(considered(&mut depth, 40..80, 500, Duration::from_micros(1), MOST), 1);
    depth.change(8);
    assert_eq!(considered(&mut depth, 80..100, 50, LATE, MOST), 8);
}

#[test]
fn a_depth_that_does_not_pay_is_given_up_and_tried_again_now_and_then() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    depth.change(2);
    let depths: Vec<_> = (0..1000).map(|second| considered(&mut depth, second..second + 1, 500, LATE, 4)).collect();
    let tried = depths.iter().filter(|depth| **depth == 8).count();
    assert!((2..50).contains(&tried), "{tried} times");
    assert_eq!((depths.last(), depths.iter().max()), (Some(&4), Some(&8)));
    // What makes it faster later is found.
    assert_eq!(considered(&mut depth, 1000..3000, 500, LATE, MOST), MOST);
}

#[test]
fn one_long_wait_among_many_lookups_counts_for_all_of_them() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    // The first ones are on the disk, the others beside them.
    let mut number = 0;
    let grows = (0..20_000).any(|_| {
        number += 1;
        depth.watch(|| {
            if number % 100 == 0 {
                sleep(LATE * 4);
            }
        });
        depth.get() > 1
    });
    assert!(grows);
    depth.change(8);
    for second in 0..40 {
        let waited = if second % 4 == 0 { LATE * 4 } else { Duration::ZERO };
        depth.used = Taken { calls: 25, ..Taken::default() };
        depth.consider(Instant::now() + Duration::from_secs(second), Taken { calls: 25, waited, ..Taken::default() });
    }
    assert_eq!(depth.get(), 8, "it stays: 40 µs in the mean");
}

#[test]
fn a_thread_takes_more_lookups_where_they_are_short() {
    for setting in [LookupDepth::Adaptive, LookupDepth::Fixed(NonZeroU16::new(2).unwrap())] {
        let turn = |micros: u64| {
            let mut depth = Depth::new(setting);
            depth.change(2);
            let waited = Duration::from_micros(100 * micros);
            let changed = depth.consider(Instant::now(), Taken { calls: 100, waited, ..Taken::default() });
            assert_eq!(changed, depth.turn() != 1);
            depth.turn()
        };
        assert_eq!([turn(0), turn(20), turn(100), turn(5000)], [128, 50, 10, 1]);
    }
}

#[test]
fn lookups_that_work_long_get_one_thread_for_each_processor() {
    let working = Taken { calls: 1000, worked: WORTH_OF_WORK * 1000, ..Taken::default() };
    assert_eq!(working.pays(WORTH, WORTH_OF_WORK), *PROCESSORS);
    let cached = Taken { worked: WORTH_OF_WORK * 500, ..working };
    assert_eq!(cached.pays(WORTH, WORTH_OF_WORK), 1);
    let waiting = Taken { waited: WORTH * 1000, ..working };
    assert_eq!(waiting.pays(WORTH, WORTH_OF_WORK), MOST);
    let mut depth = Depth::new(LookupDepth::Adaptive);
    depth.change(2);
    for second in 0..20 {
        depth.used = Taken { calls: 1000, waited: Duration::from_millis(500), ..Taken::default() };
        depth.consider(Instant::now() + Duration::from_secs(second), working);
    }
    assert_eq!(depth.get(), *PROCESSORS);
}
