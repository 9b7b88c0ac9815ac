//! The wall clock, and dates as people read them.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fd_os::local_time::local_time;
use fd_records::listing::LocalTime;

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    microseconds() / 1_000_000
}

/// Microseconds since 1970.
pub(crate) fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Waits for this time, or until `goes_on` says no.
pub(crate) fn pause_while(time: Duration, goes_on: impl Fn() -> bool) {
    const STEP: Duration = Duration::from_millis(100);
    let start = Instant::now();
    while goes_on() {
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(STEP));
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
pub(crate) fn days(year: i32, month: u8, day: u8) -> i64 {
    // The year begins in March, so that the leap day is its last.
    let (year, month) = (i64::from(year) - i64::from(month <= 2), i64::from(month));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// `21-Nov 02:20`, local time.
pub(crate) fn short_date(time: i64) -> String {
    let at = local_time(time);
    format!("{} {:02}:{:02}", day(&at), at.hour, at.minute)
}

/// `21-Nov-26 02:20`, local time.
pub(crate) fn day_and_time(time: i64) -> String {
    let at = local_time(time);
    format!("{}-{:02} {:02}:{:02}", day(&at), at.year.rem_euclid(100), at.hour, at.minute)
}

/// `21-Nov-2026 02:20:13`, local time.
pub(crate) fn full_date(time: i64) -> String {
    let at = local_time(time);
    format!("{}-{} {:02}:{:02}:{:02}", day(&at), at.year, at.hour, at.minute, at.second)
}

/// `2026-11-21 02:20:13`, local time.
pub(crate) fn iso_date(time: i64) -> String {
    let at = local_time(time);
    format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", at.year, at.month, at.day, at.hour, at.minute, at.second)
}

/// `21-Nov`.
fn day(at: &LocalTime) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.get(usize::from(at.month).saturating_sub(1)).unwrap_or(&"Jan");
    format!("{:02}-{month}", at.day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_in_a_date_is_english() {
        // The middle of each month of 1970 is in that month in every time zone.
        let months: Vec<_> = (0..12)
            .map(|month| short_date(month * 2_628_000 + 1_314_000))
            .map(|date| date.split(['-', ' ']).nth(1).map(ToOwned::to_owned).unwrap_or_default())
            .collect();
        assert_eq!(months.join(" "), "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec");
    }
}
