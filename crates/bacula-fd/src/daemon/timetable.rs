//! When a Director may be called: the `Connect` lines of a Schedule against the clock
//! (reference 06 §12.2).

use fd_config::{CalendarHour, Schedule};
use fd_os::local_time::local_time;

use crate::clock::days;

/// A run whose minute was missed begins so many minutes later at most.
const MOST_LATE: i64 = 60;

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

    /// Whether there should be a connection at `now`, in seconds since 1970. A run begins in its
    /// minute, or when this is asked again within an hour: a name that is looked up, or sessions,
    /// may take longer than its minute. Its time counts from its minute.
    pub(crate) fn is_open(&mut self, now: i64) -> bool {
        let minute = now.div_euclid(60);
        if let Some(schedule) = self.schedule.filter(|schedule| schedule.enabled)
            && self.minute != Some(minute)
        {
            let next = self.minute.replace(minute).map_or(minute, |last| last.saturating_add(1));
            for begun in next.clamp(minute.saturating_sub(MOST_LATE), minute)..=minute {
                self.begin(schedule, if begun == minute { now } else { begun.saturating_mul(60) });
            }
        }
        match self.open {
            Open::Closed => false,
            Open::Until(end) => now < end,
            Open::Always => true,
        }
    }

    /// Begins the runs of the minute of this second.
    fn begin(&mut self, schedule: &Schedule, second: i64) {
        let (hour, minute) = calendar(second);
        for run in schedule.runs.iter().filter(|run| run.minute == minute && run.is_due(hour)) {
            let length = run.max_connect_time.map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
            let until = length.map_or(Open::Always, |length| Open::Until(second.saturating_add(length)));
            self.open = self.open.max(until);
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

#[cfg(test)]
mod tests;
