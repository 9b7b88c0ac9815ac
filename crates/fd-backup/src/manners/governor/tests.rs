//! Simulated hosts: what is decided beside whom.

use super::*;

/// A backup alone on a host: it keeps the processors and the disks busy, and makes no flushes.
const ALONE: Interval = Interval {
    length: Duration::from_millis(250),
    pressure: [Some(0.9), Some(0.9), Some(0.0)],
    idle: Some(0.02),
    others_user: 0.02,
    flushes: 0.5,
    others_read: 0.0,
    operation: Some(Duration::from_millis(15)),
    storage_is_here: true,
};

/// A database that commits beside it.
const DATABASE: Interval = Interval { flushes: 120.0, ..ALONE };

fn after(intervals: &[(usize, Interval)], has_low_priority: bool) -> Decision {
    let mut governor = Governor::new(MOST_REST);
    let all = intervals.iter().flat_map(|(times, interval)| std::iter::repeat_n(interval, *times));
    all.fold(Decision { rest: 0, reason: None, cpu_is_wanted: false }, |_, interval| {
        governor.observe(interval, has_low_priority)
    })
}

#[test]
fn a_backup_alone_never_gives_way_whatever_pressure_it_makes() {
    for has_low_priority in [true, false] {
        let decision = after(&[(1000, ALONE)], has_low_priority);
        assert_eq!(decision, Decision { rest: 0, reason: None, cpu_is_wanted: false });
    }
    let memory = Interval { pressure: [Some(1.0); 3], ..ALONE };
    assert_eq!(after(&[(1000, memory)], true).rest, 0);
}

#[test]
fn a_database_on_a_slow_disk_gets_half_of_the_time_within_a_second() {
    let decision = after(&[(4, DATABASE)], true);
    assert_eq!((decision.rest, decision.reason), (MOST_REST, Some(Pressure::Io)));
    assert_eq!(after(&[(1000, DATABASE)], true).rest, MOST_REST, "and never more");
}

#[test]
fn everything_is_used_again_when_nobody_needs_it() {
    assert_eq!(after(&[(10, DATABASE), (1, ALONE)], true).rest, MOST_REST - LESS);
    let decision = after(&[(10, DATABASE), (10, ALONE)], true);
    assert_eq!(decision, Decision { rest: 0, reason: None, cpu_is_wanted: false });
}

#[test]
fn a_host_that_is_not_short_of_anything_slows_nothing_down() {
    let fast = Interval { operation: Some(Duration::from_micros(300)), idle: Some(0.4), ..DATABASE };
    assert_eq!(after(&[(100, fast)], true).rest, 0);
    let quiet = Interval { pressure: [Some(0.05); 3], ..DATABASE };
    assert_eq!(after(&[(100, quiet)], true).rest, 0);
}

#[test]
fn processors_are_left_to_the_priority_unless_a_storage_daemon_shares_them() {
    let fast_disk = Interval { operation: Some(Duration::from_micros(300)), ..DATABASE };
    let decision = after(&[(4, fast_disk)], true);
    assert_eq!((decision.rest, decision.reason), (MOST_REST, Some(Pressure::Cpu)));
    let far = Interval { storage_is_here: false, ..fast_disk };
    let decision = after(&[(4, far)], true);
    assert_eq!((decision.rest, decision.cpu_is_wanted), (0, true));
    let decision = after(&[(4, far)], false);
    assert_eq!((decision.rest, decision.reason), (MOST_REST, Some(Pressure::Cpu)));
}

#[test]
fn others_are_known_by_what_they_read_or_compute_too() {
    let reads = Interval { others_read: 40e6, ..ALONE };
    assert_eq!(after(&[(1, reads)], true).reason, Some(Pressure::Io));
    let computes = Interval { others_user: 0.9, operation: None, ..ALONE };
    assert_eq!(after(&[(4, computes)], true).reason, Some(Pressure::Cpu));
    let once = after(&[(20, ALONE), (1, computes), (20, ALONE)], true);
    assert_eq!(once.rest, 0, "one tick of others is no need");
}

#[test]
fn memory_comes_first() {
    let memory = Interval { pressure: [Some(0.9), Some(0.9), Some(0.3)], ..DATABASE };
    assert_eq!(after(&[(1, memory)], true).reason, Some(Pressure::Memory));
}

#[test]
fn without_pressure_files_idle_processors_and_slow_operations_decide() {
    let old = Interval { pressure: [None; 3], ..DATABASE };
    assert_eq!(after(&[(1, old)], true).reason, Some(Pressure::Io));
    let fast_disk = Interval { operation: None, ..old };
    assert_eq!(after(&[(1, fast_disk)], true).reason, Some(Pressure::Cpu));
    let nothing = Interval { length: ALONE.length, ..Interval::default() };
    assert_eq!(after(&[(100, nothing)], false).rest, 0, "who sees nothing gives nothing away");
}
