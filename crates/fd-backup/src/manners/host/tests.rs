//! The kernel's texts, and what two readings say.

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn pressure_is_the_total_of_the_line_some() {
    let text = "some avg10=13.33 avg60=37.53 avg300=30.28 total=17733324792\nfull avg10=0.00 total=7\n";
    assert_eq!(pressure(text), Some(Duration::from_micros(17_733_324_792)));
    assert_eq!(pressure("full avg10=0.00 total=7\n"), None);
    assert_eq!(pressure(""), None);
}

#[test]
fn processors_are_the_sum_of_all() {
    let text = "cpu  100 50 30 700 20 1 2 3 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let expected = Processors { user: MS(1500), idle: MS(7200), all: MS(9060) };
    assert_eq!(processors(text), Some(expected), "guests are part of user and nice");
    assert_eq!(processors("cpu  1 2\n"), None);
    assert_eq!(processors("intr 1\n"), None);
}

#[test]
fn disks_are_added_and_their_parts_are_not() {
    let text = " 254 0 vda 10 1 80 5 20 2 160 40 1 30 45 0 0 0 0 4 6\n 254 1 vda1 9 1 80 5 20 2 160 40 1 30 45\n\
                   8 0 sda 1 0 8 2 3 0 16 4 0 5 6\n";
    let sum = disks(text, |name| matches!(name, "vda" | "sda"));
    assert_eq!(sum, Some(Disks { operations: 38, spent: MS(57), sectors_read: 88, flushes: 4 }));
    assert_eq!(disks(text, |_| false), None);
}

#[test]
fn times_and_sectors_of_a_process_are_found() {
    assert_eq!(user_time(b"7 (a) b (c)) S 0 1 1"), None);
    let stat = b"7 (a) b (c)) S 0 1 1 0 -1 1 1 0 0 0 123 45 0 0 20 0 1 0";
    assert_eq!(user_time(stat), Some(MS(1230)));
    assert_eq!(own_sectors("rchar: 6\nread_bytes: 5120\n"), Some(10));
}

#[test]
fn an_interval_tells_others_from_the_backup() {
    let before = Counters {
        pressure: [Some(MS(0)), Some(MS(100)), None],
        processors: Some(Processors::default()),
        disks: Some(Disks::default()),
        ..Counters::default()
    };
    let after = Counters {
        pressure: [Some(MS(50)), Some(MS(350)), Some(MS(1))],
        processors: Some(Processors { user: MS(400), idle: MS(250), all: MS(1000) }),
        disks: Some(Disks { operations: 100, spent: MS(700), sectors_read: 3000, flushes: 5 }),
        own_sectors: 2000,
        bacula_user: MS(300),
        storage_is_here: true,
    };
    let interval = Interval::between(&before, &after, MS(500));
    assert_eq!(interval.pressure, [Some(0.1), Some(0.5), None]);
    assert_eq!(interval.idle, Some(0.25));
    assert!((interval.others_user - 0.2).abs() < 1e-9, "{interval:?}");
    assert!((interval.flushes - 10.0).abs() < 1e-9);
    assert!((interval.others_read - 1_024_000.0).abs() < 1e-3);
    assert_eq!(interval.operation, Some(MS(7)));
    // A counter that goes backwards (a disk was removed) is no panic.
    let back = Interval::between(&after, &before, Duration::ZERO);
    assert_eq!((back.flushes, back.others_read, back.operation), (0.0, 0.0, None));
}

#[test]
fn the_counters_of_this_host_can_be_read() {
    let mut reader = Reader::new();
    let first = reader.read(Instant::now());
    assert!(first.processors.is_some(), "{first:?}");
    // The sum may be less by a tick: what the kernel counts as waiting for disks can decrease.
    assert!(reader.read(Instant::now()).processors.is_some());
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let is_counted = std::path::Path::new("/proc/self/schedstat").exists();
    assert_eq!(ran_and_waited(thread).is_some(), is_counted);
    assert_eq!(ran_and_waited(i32::MAX), None);
}
