//! When a Director may be called: the `Connect` lines of a Schedule against the clock
//! (reference 06 §12.2).

use fd_config::{CalendarHour, Schedule};
use fd_os::local_time::local_time;

/// A schedule and its state so far.
#[derive(Debug)]
pub(crate) struct Timetable<'s> {
    schedule: Option<&'s Schedule>,
    open: Open,
    /// The last minute that was checked, counted from 1970.
    minute: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Open {
    Closed,
    /// Until that second since 1970.
    Until(i64),
    /// From now on, for good.
    Always,
}

impl<'s> Timetable<'s> {
    /// Without a schedule it is always open.
    pub(crate) const fn new(schedule: Option<&'s Schedule>) -> Self {
        let open = if schedule.is_some() { Open::Closed } else { Open::Always };
        Self { schedule, open, minute: None }
    }

    /// Whether there should be a connection at `now`, in seconds since 1970. To be asked at least
    /// once a minute: a run whose minute was missed is dropped.
    pub(crate) fn is_open(&mut self, now: i64) -> bool {
        let minute = now.div_euclid(60);
        if let Some(schedule) = self.schedule.filter(|schedule| schedule.enabled)
            && self.minute.replace(minute) != Some(minute)
        {
            let (hour, minute_of_hour) = calendar(now);
            for run in &schedule.runs {
                if run.minute == minute_of_hour && run.is_due(hour) {
                    let length = run.max_connect_time.map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
                    let until = length.map_or(Open::Always, |length| Open::Until(now.saturating_add(length)));
                    self.open = self.open.max(until);
                }
            }
        }
        match self.open {
            Open::Closed => false,
            Open::Until(end) => now < end,
            Open::Always => true,
        }
    }
}

/// The local hour of a moment, and its minute.
fn calendar(seconds: i64) -> (CalendarHour, u8) {
    let now = local_time(seconds);
    let date = days(now.year, now.month, now.day);
    let week_day = (date + 4).rem_euclid(7);
    let hour = CalendarHour {
        hour: now.hour,
        day: now.day.saturating_sub(1),
        is_last_day: is_last_day(now.year, now.month, now.day),
        month: now.month.saturating_sub(1),
        week_day: u8::try_from(week_day).unwrap_or(0),
        week_of_year: week_of_year(now.year, date, week_day),
    };
    (hour, now.minute)
}

/// Of its month. Not by the time of a day later: a day may have 23 or 25 hours.
fn is_last_day(year: i32, month: u8, day: u8) -> bool {
    let (next_year, next_month) = if month < 12 { (year, month + 1) } else { (year.saturating_add(1), 1) };
    days(year, month, day) + 1 == days(next_year, next_month, 1)
}

/// The week's number by ISO 8601: the one with the year's first Thursday is the first.
fn week_of_year(year: i32, date: i64, week_day: i64) -> u8 {
    // The week belongs to the year that its Thursday is in.
    let thursday = date + 4 - if week_day == 0 { 7 } else { week_day };
    let (this, next) = (days(year, 1, 1), days(year.saturating_add(1), 1, 1));
    let start = if thursday < this {
        days(year.saturating_sub(1), 1, 1)
    } else if thursday >= next {
        next
    } else {
        this
    };
    u8::try_from((thursday - start) / 7 + 1).unwrap_or(0)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i32, month: u8, day: u8) -> i64 {
    // The year begins in March, so that the leap day is its last.
    let (year, month) = (i64::from(year) - i64::from(month <= 2), i64::from(month));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
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
        (0..60).map(|minute| minute * 60).find(|second| calendar(*second).1 == 30).unwrap()
    }

    #[test]
    fn it_opens_in_its_minute_and_closes_after_its_time() {
        let (schedule, start) = (schedule(Some(600)), half_past());
        let mut timetable = Timetable::new(Some(&schedule));
        let open: Vec<_> = [-1, 0, 59, 60, 599, 600, 3599, 3600].map(|after| timetable.is_open(start + after)).to_vec();
        assert_eq!(open, [false, true, true, true, true, false, false, true]);
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
}
