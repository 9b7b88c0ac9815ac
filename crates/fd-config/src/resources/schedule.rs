//! The `Schedule` resource: when the daemon may call a Director.

use core::time::Duration;

/// A `Schedule` resource (reference 06 §3.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// Whether it counts at all.
    pub enabled: bool,
    /// The `Connect` lines.
    pub runs: Vec<ConnectRun>,
}

/// One `Connect` line (reference 06 §12.2). Sets are bits, the lowest bit first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectRun {
    /// Stop after this time.
    pub max_connect_time: Option<Duration>,
    /// Bits 0 to 23.
    pub hours: u32,
    /// 0 to 59.
    pub minute: u8,
    /// Bits 0 to 30: days of the month, the first is bit 0.
    pub days: u32,
    /// Due on the last day of the month, too.
    pub last_day: bool,
    /// Bits 0 to 11.
    pub months: u16,
    /// Bits 0 to 6, Sunday is bit 0.
    pub week_days: u8,
    /// Bits 0 to 5.
    pub weeks_of_month: u8,
    /// Bits 0 to 53.
    pub weeks_of_year: u64,
}

/// One hour of local time, as a schedule needs it. All fields count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CalendarHour {
    /// 0 to 23.
    pub hour: u8,
    /// Day of the month, 0 to 30.
    pub day: u8,
    /// Whether it is the last day of its month.
    pub is_last_day: bool,
    /// 0 to 11.
    pub month: u8,
    /// 0 (Sunday) to 6.
    pub week_day: u8,
    /// Week of the year, 0 to 53.
    pub week_of_year: u8,
}

impl ConnectRun {
    /// Whether the run is due in this hour (at [`Self::minute`]).
    pub fn is_due(&self, at: CalendarHour) -> bool {
        let has = |set: u64, bit: u8| bit < 64 && set & (1 << bit) != 0;
        let month = has(u64::from(self.months), at.month);
        let hour = has(u64::from(self.hours), at.hour);
        let by_date = has(u64::from(self.days), at.day)
            && has(u64::from(self.week_days), at.week_day)
            && has(u64::from(self.weeks_of_month), at.day / 7)
            && has(self.weeks_of_year, at.week_of_year);
        hour && month && (by_date || self.last_day && at.is_last_day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_due_when_every_set_has_the_moment_or_on_the_last_day() {
        let mut run = ConnectRun {
            max_connect_time: None,
            hours: 1 << 22,
            minute: 0,
            days: 0x7fff_ffff,
            last_day: false,
            months: 0xfff,
            week_days: 0b011_1110,
            weeks_of_month: 0x3f,
            weeks_of_year: (1 << 54) - 1,
        };
        let friday = CalendarHour { hour: 22, day: 30, is_last_day: true, month: 0, week_day: 5, week_of_year: 4 };
        let saturday = CalendarHour { week_day: 6, ..friday };
        assert!(run.is_due(friday));
        assert!(!run.is_due(CalendarHour { hour: 21, ..friday }));
        assert!(!run.is_due(saturday));
        run.last_day = true;
        assert!(run.is_due(saturday));
        assert!(!run.is_due(CalendarHour { hour: 0, ..saturday }));
    }
}
