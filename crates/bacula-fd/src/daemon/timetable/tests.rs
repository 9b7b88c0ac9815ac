//! When a Director may be called.

use std::time::Duration;

use fd_config::ConnectRun;

use super::*;

#[test]
fn dates_and_weeks() {
    assert_eq!((days(1970, 1, 1), days(2000, 3, 1), days(2026, 11, 21)), (0, 11_017, 20_778));
    let week = |year, month, day| {
        let date = days(year, month, day);
        week_of_year(year, date, (date + 4).rem_euclid(7))
    };
    assert_eq!((week(2026, 11, 21), week(2026, 1, 1), week(2027, 1, 1)), (47, 1, 53));
    assert_eq!((week(2024, 12, 30), week(2023, 1, 1), week(2020, 12, 31)), (1, 52, 53));
}

#[test]
fn a_month_has_one_last_day() {
    for year in [2023, 2024, 2100] {
        for month in 1..=12 {
            let last: Vec<u8> = (1..=31).filter(|day| is_last_day(year, month, *day)).collect();
            let length = match month {
                2 if year == 2024 => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            assert_eq!(last, [length], "{year}-{month}");
        }
    }
}

fn schedule(length: Option<u64>) -> Schedule {
    let run = ConnectRun {
        max_connect_time: length.map(Duration::from_secs),
        hours: 0xff_ffff,
        minute: 30,
        days: 0x7fff_ffff,
        last_day: false,
        months: 0xfff,
        week_days: 0x7f,
        weeks_of_month: 0x3f,
        weeks_of_year: (1 << 54) - 1,
    };
    Schedule { name: "s".to_owned(), description: Vec::new(), enabled: true, runs: vec![run] }
}

/// Every zone in use differs from the universal time by a multiple of a quarter of an hour.
fn half_past() -> i64 {
    // Not in 1970: there are zones that differed by seconds then.
    (0..60).map(|minute| 1_795_226_400 + minute * 60).find(|second| calendar(*second).1 == 30).unwrap()
}

#[test]
fn it_opens_in_its_minute_and_closes_after_its_time() {
    let (schedule, start) = (schedule(Some(600)), half_past());
    let mut timetable = Timetable::new(Some(&schedule));
    let open: Vec<_> = [-1, 0, 59, 60, 599, 600, 3599, 3600].map(|after| timetable.is_open(start + after)).to_vec();
    assert_eq!(open, [false, true, true, true, true, false, false, true]);
}

#[test]
fn a_run_whose_minute_was_missed_begins_when_it_is_asked_for_again() {
    let (schedule, start) = (schedule(Some(600)), half_past());
    let open = |before: i64, after: &[i64]| -> Vec<bool> {
        let mut timetable = Timetable::new(Some(&schedule));
        assert!(!timetable.is_open(start - before));
        after.iter().map(|after| timetable.is_open(start + after)).collect()
    };
    assert_eq!(open(1, &[70, 599, 600]), [true, true, false]);
    assert_eq!(open(1, &[600]), [false], "its time is over");
    assert_eq!(open(86_400 - 600, &[700]), [false], "the daemon has stood still");
    // A clock that is put back begins no run that is over.
    assert_eq!(open(1, &[70, -300, 0]), [true, true, true]);
    assert!(!Timetable::new(Some(&schedule)).is_open(start + 70), "the daemon was not there");
}

#[test]
fn without_an_end_it_stays_open_and_without_a_schedule_it_always_is() {
    let (mut schedule, start) = (schedule(None), half_past());
    let mut timetable = Timetable::new(Some(&schedule));
    assert!(!timetable.is_open(start - 60) && timetable.is_open(start) && timetable.is_open(start + 1_000_000));
    assert!(Timetable::new(None).is_open(0));
    schedule.enabled = false;
    assert!(!Timetable::new(Some(&schedule)).is_open(start));
}
