//! When lookups are made ahead, and how many one thread takes.

use std::fs::File;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread::sleep;

use super::*;
use crate::ahead::{Ahead, Kernel};
use crate::directory::{Loan, Rest, push_name};

const LATE: Duration = Duration::from_millis(1);

/// The depth after so many lookups on the walk's own thread.
fn after(depth: &mut Depth, lookups: usize, look: impl Fn()) -> usize {
    for _ in 0..lookups {
        depth.watch(&look);
    }
    depth.get()
}

/// What is found without a wait of this thread: an emulated processor waits for itself at times.
fn unless_waited<T>(look: impl Fn() -> T) -> T {
    let found = (0..20).find_map(|_| {
        let before = times_waited();
        let found = look();
        (times_waited() == before).then_some(found)
    });
    found.unwrap_or_else(|| panic!("no time without a wait"))
}

#[test]
fn the_depth_stays_at_one_while_lookups_only_compute() {
    let slowly = || {
        let begun = Instant::now();
        while begun.elapsed() < WORTH * 2 {}
    };
    let depths = unless_waited(|| {
        let mut depth = Depth::new(LookupDepth::Adaptive);
        [after(&mut depth, 1000, slowly), after(&mut depth, 100_000, || ())]
    });
    assert_eq!(depths, [1, 1]);
}

#[test]
fn lookups_that_wait_are_noticed_soon() {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    assert!(after(&mut depth, 20, || sleep(LATE)) > 1);
    // Also after many that did not wait.
    let (mut depth, first) = unless_waited(|| {
        let mut depth = Depth::new(LookupDepth::Adaptive);
        let first = after(&mut depth, 100_000, || ());
        (depth, first)
    });
    assert_eq!(first, 1);
    assert!((0..2 * WINDOW).any(|_| after(&mut depth, 1, || sleep(LATE)) > 1));
}

#[test]
fn a_depth_of_the_settings_stays() {
    let setting = LookupDepth::Fixed(NonZeroU16::MIN);
    assert_eq!(after(&mut Depth::new(setting), 50, || sleep(LATE)), 1);
    let mut depth = Depth::new(LookupDepth::Fixed(NonZeroU16::new(300).unwrap()));
    assert!(!(0..1000).any(|_| depth.used(LATE, || Taken { calls: 9, waited: LATE * 9, ..Taken::default() })));
    assert_eq!(depth.get(), 300);
}

/// Looks up some names on the walk's own thread, late, so that others are looked up ahead.
fn begun() -> Depth {
    let mut depth = Depth::new(LookupDepth::Adaptive);
    assert!(after(&mut depth, 20, || sleep(LATE)) > 1);
    depth
}

/// The depth after considerations, a second after each other, in each of which the walk waits so
/// long for 1,000 lookups that take `ahead`.
fn considered(depth: &mut Depth, begun: Instant, walk_waited: u64, ahead: Taken) -> usize {
    for second in 0..40 {
        depth.waited = Duration::from_millis(walk_waited);
        depth.consider(begun + Duration::from_secs(second), ahead);
    }
    depth.get()
}

#[test]
fn the_depth_grows_while_the_walk_waits_and_shrinks_where_lookups_no_longer_do() {
    let late = Taken { calls: 1000, waited: LATE * 1000, ..Taken::default() };
    let mut depth = begun();
    let first = depth.get();
    assert_eq!(considered(&mut depth, Instant::now(), 50, late), first, "the walk has its answers in time");
    let now = Instant::now() + Duration::from_secs(100);
    assert!(considered(&mut depth, now, 500, late) >= MOST / 2);
    let quick = Taken { waited: LATE, ..late };
    assert_eq!(considered(&mut depth, now + Duration::from_secs(100), 500, quick), 1);
    assert_eq!(after(&mut depth, PAUSE as usize, || ()), 1);
    assert!(after(&mut depth, 20, || sleep(LATE)) > 1, "and they are watched again");
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
    let first = depth.get();
    for second in 0..40 {
        let waited = if second % 4 == 0 { LATE * 4 } else { Duration::ZERO };
        depth.consider(Instant::now() + Duration::from_secs(second), Taken { calls: 25, waited, ..Taken::default() });
    }
    assert_eq!(depth.get(), first, "it stays: 40 µs in the mean");
}

#[test]
fn a_thread_takes_more_lookups_where_they_are_short() {
    for setting in [LookupDepth::Adaptive, LookupDepth::Fixed(NonZeroU16::new(2).unwrap())] {
        let turn = |micros: u64| {
            let mut depth = Depth::new(setting);
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
    let mut depth = begun();
    let working = Taken { calls: 1000, worked: WORTH_OF_WORK * 1000, ..Taken::default() };
    assert_eq!(considered(&mut depth, Instant::now(), 500, working), processors().min(MOST));
    let cached = Taken { worked: WORTH_OF_WORK * 500, ..working };
    assert_eq!(considered(&mut depth, Instant::now() + Duration::from_secs(100), 500, cached), 1);
}

/// Looks up on the walk's own thread until it is worth other threads.
fn look_late(ahead: &mut Ahead) {
    while !ahead.is_on() {
        ahead.directly(|_| sleep(LATE));
    }
}

/// Whether a name that the walk doesn't ask for is looked up.
fn begins(ahead: &Ahead) -> bool {
    let mut names = Vec::new();
    push_name(&mut names, 0, b"name");
    let descriptor = Arc::new(File::open("/").unwrap().into());
    ahead.scouts.as_ref().unwrap().with(|agenda| {
        agenda.enlist(Loan { descriptor, names, rest: Rest::Ended }, b"/", (1, 1), Vec::new());
        agenda.has_tasks()
    })
}

#[test]
fn lookups_that_are_late_again_are_made_ahead_again() {
    let mut ahead = Ahead::new(LookupDepth::Adaptive, Arc::new(Kernel), false);
    look_late(&mut ahead);
    assert!(ahead.has_scouts() && begins(&ahead));
    while ahead.is_on() {
        let quick = Taken { calls: 1000, worked: Duration::from_millis(1), ..Taken::default() };
        if ahead.depth.used(Duration::ZERO, || quick) {
            ahead.set_depth();
        }
    }
    assert!(!begins(&ahead));
    look_late(&mut ahead);
    assert!(ahead.has_scouts() && begins(&ahead));
}
