//! The local time of a moment, by the C library: the zone of the daemon, as the stock daemon prints
//! it.

use fd_records::listing::LocalTime;

/// The local time of `seconds` since 1970. A moment that the C library can't express gives
/// 1970-01-01 00:00:00.
pub fn local_time(seconds: i64) -> LocalTime {
    // SAFETY: `tm` is plain old data for which all bytes zero is a valid value.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live local variables of the right types; localtime_r writes the
    // second only.
    let ok = unsafe { libc::localtime_r(&raw const seconds, &raw mut broken_down) };
    if ok.is_null() {
        return LocalTime { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
    }
    let small = |field: libc::c_int| u8::try_from(field).unwrap_or(0);
    LocalTime {
        year: broken_down.tm_year.saturating_add(1900),
        month: small(broken_down.tm_mon).saturating_add(1),
        day: small(broken_down.tm_mday),
        hour: small(broken_down.tm_hour),
        minute: small(broken_down.tm_min),
        second: small(broken_down.tm_sec),
    }
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
        assert_eq!(local_time(i64::MAX).year, 1970);
    }
}
