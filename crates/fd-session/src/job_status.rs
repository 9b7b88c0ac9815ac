//! The state character of a job and the rule by which one state replaces another.

/// State of a job (reference 02 §7). Its decimal code is the `TermCode` of the End Job line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum JobStatus {
    /// Made, not yet at work.
    Created = b'C',
    /// The dialogue with the Storage Daemon is under way.
    Blocked = b'B',
    /// At work.
    Running = b'R',
    /// Ended well.
    Terminated = b'T',
    /// Ended well, with warnings. A File Daemon never sets it.
    Warnings = b'W',
    /// Ended in error.
    Error = b'E',
    /// A fatal error.
    Fatal = b'f',
    /// A verify found differences.
    Differences = b'D',
    /// The operator canceled it.
    Canceled = b'A',
    /// The operator stopped it; it can be resumed.
    Incomplete = b'I',
}

impl JobStatus {
    /// Decimal character code, the `TermCode`.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The state with this character, for the state file.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            b'C' => Self::Created,
            b'B' => Self::Blocked,
            b'R' => Self::Running,
            b'T' => Self::Terminated,
            b'W' => Self::Warnings,
            b'E' => Self::Error,
            b'f' => Self::Fatal,
            b'D' => Self::Differences,
            b'A' => Self::Canceled,
            b'I' => Self::Incomplete,
            _ => return None,
        })
    }

    const fn priority(self) -> u8 {
        match self {
            Self::Incomplete => 10,
            Self::Error | Self::Fatal | Self::Canceled => 9,
            Self::Differences => 7,
            _ => 0,
        }
    }

    /// The state after `new` was asked for: `new` wins if it weighs more, or if neither weighs
    /// anything (reference 02 §7.2). So the first of `A`, `E`, `f` stays and nothing hides an
    /// error.
    #[must_use]
    pub const fn changed_to(self, new: Self) -> Self {
        if new.priority() > self.priority() || (new.priority() == 0 && self.priority() == 0) { new } else { self }
    }

    /// "Job canceled?" as every loop asks it: canceled or failed.
    pub const fn is_canceled(self) -> bool {
        matches!(self, Self::Canceled | Self::Error | Self::Fatal)
    }

    /// Whether the job was stopped.
    pub const fn is_incomplete(self) -> bool {
        matches!(self, Self::Incomplete)
    }
}

#[cfg(test)]
mod tests {
    use super::JobStatus::{Blocked, Canceled, Created, Differences, Error, Fatal, Incomplete, Running, Terminated};
    use super::*;

    #[test]
    fn a_state_without_weight_replaces_another() {
        assert_eq!(Created.changed_to(Blocked).changed_to(Running).changed_to(Terminated), Terminated);
    }

    #[test]
    fn the_first_error_stays() {
        assert_eq!(Running.changed_to(Fatal).changed_to(Error).changed_to(Canceled), Fatal);
        assert_eq!(Running.changed_to(Canceled).changed_to(Fatal), Canceled);
        assert_eq!(Fatal.changed_to(Terminated), Fatal);
    }

    #[test]
    fn incomplete_replaces_every_state_and_an_error_replaces_differences() {
        assert_eq!(Fatal.changed_to(Incomplete), Incomplete);
        assert_eq!(Incomplete.changed_to(Fatal), Incomplete);
        assert_eq!(Differences.changed_to(Error), Error);
        assert_eq!(Differences.changed_to(Terminated), Differences);
    }

    #[test]
    fn codes_are_those_of_the_end_job_line() {
        assert_eq!([Terminated.code(), Fatal.code(), Created.code(), Canceled.code()], [84, 102, 67, 65]);
        for code in 0..=u8::MAX {
            if let Some(status) = JobStatus::from_code(code) {
                assert_eq!(status.code(), code);
            }
        }
    }
}
