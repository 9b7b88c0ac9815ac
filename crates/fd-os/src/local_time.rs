//! The local time of a moment, by the C library: the zone of the daemon, as the stock daemon prints
//! it.

use std::time::{SystemTime, UNIX_EPOCH};

use fd_records::listing::LocalTime;

/// Seconds since 1970, now.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}

/// The local time of `seconds` since 1970; 1970-01-01 00:00:00 for a moment that the C library
/// can't express.
pub fn local_time(seconds: i64) -> LocalTime {
    local_time_of_any(seconds).unwrap_or(LocalTime::EPOCH)
}

/// The same for a time that may be anything, as that of a file; `None` if its year is beyond 32
/// bits.
pub fn local_time_of_any(seconds: i64) -> Option<LocalTime> {
    // SAFETY: `tm` is plain old data for which all bytes zero is a valid value.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live local variables of the right types; localtime_r writes the
    // second only.
    let ok = unsafe { libc::localtime_r(&raw const seconds, &raw mut broken_down) };
    if ok.is_null() {
        return None;
    }
    let small = |field: libc::c_int| u8::try_from(field).unwrap_or(0);
    Some(LocalTime {
        year: broken_down.tm_year.saturating_add(1900),
        month: small(broken_down.tm_mon).saturating_add(1),
        day: small(broken_down.tm_mday),
        hour: small(broken_down.tm_hour),
        minute: small(broken_down.tm_min),
        second: small(broken_down.tm_sec),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_later_is_the_next_day() {
        let (today, tomorrow) = (local_time(1_795_226_000), local_time(1_795_226_000 + 86_400));
        assert_eq!((today.year, today.month, today.day + 1), (tomorrow.year, tomorrow.month, tomorrow.day));
        assert_eq!((today.hour, today.minute, today.second), (tomorrow.hour, tomorrow.minute, tomorrow.second));
    }

    #[test]
    fn a_time_out_of_range_is_the_epoch() {
        for far in [i64::MAX, i64::MIN] {
            assert_eq!((local_time(far).year, local_time_of_any(far)), (1970, None));
        }
        let years =
            [15_032_385_535, -2_208_988_801 - 86_400, -62_200_000_000_000, 9_000_000_000_000_000].map(local_time);
        assert_eq!(years.map(|time| time.year), [2446, 1899, -1_969_070, 285_200_616]);
    }
}
