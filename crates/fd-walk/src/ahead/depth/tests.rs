//! When the depth grows and shrinks.

use std::num::NonZeroU16;
use std::thread::sleep;

use super::*;

const LATE: Duration = Duration::from_millis(1);

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
    assert_eq!(after(&mut depth, 20, || sleep(LATE)), FIRST);
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

/// The depth after so many considerations, one second after the other. In each, the walk waits so
/// long, and uses so many names with each lookup that is made at a time, as far as these don't wait
/// for each other.
fn considered(depth: &mut Depth, times: u64, walk_waited: Duration, each_waited: Duration, most: usize) -> usize {
    let begun = Instant::now();
    for second in 0..times {
        let calls = u32::try_from(1000 * depth.get().min(most)).unwrap();
        depth.used = Taken { calls, waited: walk_waited, ..Taken::default() };
        let ahead = Taken { calls: 1000, waited: each_waited * 1000, ..Taken::default() };
        depth.consider(begun + Duration::from_secs(second), ahead);
    }
    depth.get()
}

#[test]
fn the_depth_grows_while_the_walk_waits_and_shrinks_where_lookups_no_longer_do() {
    let considered = |depth: &mut Depth, times, walk_waited, each_waited| {
        considered(depth, times, Duration::from_millis(walk_waited), each_waited, MOST)
    };
    let mut depth = Depth::new(LookupDepth::Adaptive);
    depth.change(2);
    assert_eq!(considered(&mut depth, 20, 500, LATE), MOST);
    // The walk has its answers in time: that is enough.
    assert_eq!(considered(&mut depth, 20, 50, LATE), MOST);
    assert_eq!(considered(&mut depth, 40, 500, Duration::from_micros(1)), 1);
    depth.change(8);
    assert_eq!(considered(&mut depth, 20, 50, LATE), 8);
}

#[test]
fn a_depth_that_makes_nothing_faster_is_halved_and_tried_again_now_and_then() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    depth.change(2);
    let mut depths = Vec::new();
    for _ in 0..1000 {
        depths.push(considered(&mut depth, 2, Duration::from_millis(500), LATE, 4));
    }
    let tried = depths.iter().filter(|depth| **depth == 8).count();
    assert!((1..20).contains(&tried), "{tried} times");
    assert_eq!((depths.last(), depths.iter().max()), (Some(&4), Some(&8)));
    // What makes it faster later is found.
    let begun = Instant::now() + Duration::from_secs(1 << 20);
    depth.retry = depth.retry.map(|(_, pause)| (begun, pause));
    let found = (0..40).any(|second| {
        depth.used =
            Taken { calls: 1000 * u32::try_from(depth.get()).unwrap(), waited: LATE * 500, ..Taken::default() };
        let ahead = Taken { calls: 1000, waited: LATE * 1000, ..Taken::default() };
        depth.consider(begun + Duration::from_secs(second), ahead);
        depth.get() == MOST
    });
    assert!(found);
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
