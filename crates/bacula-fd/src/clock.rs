//! The wall clock, and dates as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use fd_os::local_time::local_time;

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    microseconds() / 1_000_000
}

/// Microseconds since 1970.
pub(crate) fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Three letters for a month, 1 to 12.
pub(crate) fn month(number: u8) -> &'static str {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    MONTHS.get(usize::from(number).saturating_sub(1)).unwrap_or(&"Jan")
}

/// The date before a line in a local destination: `21-Nov 02:20 `.
pub(crate) fn date_prefix(time: i64) -> String {
    let at = local_time(time);
    let month = month(at.month);
    format!("{:02}-{month} {:02}:{:02} ", at.day, at.hour, at.minute)
}
