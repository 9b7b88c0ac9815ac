//! How far a job is, and how long it will take, as far as something tells how much it will have:
//! an earlier job, the catalog's list, or the Director. Only arithmetic.

use fd_session::command::BackupLevel;

use super::words::{JobKind, JobLevel};
use crate::shared::past_jobs::Size;

/// Less is no basis for an estimate, in parts of the whole.
const LEAST: f64 = 0.01;
/// A job that is longer than expected stays at this.
const MOST: f64 = 0.99;
/// A job that runs for a shorter time has no estimate, in seconds.
const SHORTEST: u64 = 3;

/// How much a job is expected to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Expected {
    /// What the last good job of its name and level had.
    pub earlier: Option<Size>,
    /// Files of the catalog's list (accurate jobs); 0 if there is none.
    pub listed: u64,
}

/// What a job has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Done {
    /// Seconds since it has begun with its files.
    pub seconds: u64,
    /// Bytes sent or written.
    pub bytes: u64,
    /// Entries looked at.
    pub examined: u64,
    /// Files that the Director expects of a restore; 0 if unknown.
    pub to_restore: u64,
}

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Outlook {
    /// Part of the whole, below 1.
    pub ratio: f64,
    /// Seconds that are left at the speed so far; `None` if there is more than was expected.
    pub left: Option<u64>,
}

impl Outlook {
    /// Of a job of this kind and level; `None` if nothing tells how much it will have.
    pub(crate) fn of(kind: JobKind, level: JobLevel, expected: &Expected, done: &Done) -> Option<Self> {
        let earlier = expected.earlier.unwrap_or_default();
        let (done_part, whole) = match kind {
            JobKind::Restore => (done.examined, done.to_restore),
            // A full backup takes its time for its bytes, the others for looking at files.
            JobKind::Backup if level == JobLevel::Backup(BackupLevel::Full) && earlier.bytes > 0 => {
                (done.bytes, earlier.bytes)
            }
            JobKind::Backup | JobKind::Verify if earlier.examined > 0 => (done.examined, earlier.examined),
            JobKind::Backup => (done.examined, expected.listed),
            JobKind::Verify | JobKind::System => (0, 0),
        };
        if whole == 0 || done.seconds < SHORTEST {
            return None;
        }
        let ratio = quotient(done_part, whole);
        if ratio < LEAST {
            return None;
        }
        let left = quotient(done.seconds, 1) * (1.0 - ratio) / ratio;
        // Far from the end of both types.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and at most 100 times a time"
        )]
        let left = (ratio <= MOST).then_some(left as u64);
        Some(Self { ratio: ratio.min(MOST), left })
    }

    /// The same as a percentage, 1 to 99.
    pub(crate) fn percent(&self) -> u8 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 99")]
        let percent = (self.ratio * 100.0) as u8;
        percent
    }
}

/// The precision of a floating point number is enough here.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn quotient(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: JobLevel = JobLevel::Backup(BackupLevel::Full);
    const INCREMENTAL: JobLevel = JobLevel::Backup(BackupLevel::Incremental);
    const DISK: JobLevel = JobLevel::Verify(fd_session::command::VerifyLevel::DiskToCatalog);

    fn of(kind: JobKind, level: JobLevel, expected: Expected, done: Done) -> Option<(u8, Option<u64>)> {
        Outlook::of(kind, level, &expected, &done).map(|outlook| (outlook.percent(), outlook.left))
    }

    #[test]
    fn a_full_is_measured_by_bytes_and_other_jobs_by_what_they_look_at() {
        let earlier = Some(Size { bytes: 1000, examined: 400 });
        let done = Done { seconds: 60, bytes: 250, examined: 300, to_restore: 0 };
        let expected = Expected { earlier, listed: 600 };
        assert_eq!(of(JobKind::Backup, FULL, expected, done), Some((25, Some(180))));
        assert_eq!(of(JobKind::Backup, INCREMENTAL, expected, done), Some((75, Some(20))));
        assert_eq!(of(JobKind::Verify, DISK, expected, done), Some((75, Some(20))));
        let only_list = Expected { earlier: None, listed: 600 };
        assert_eq!(of(JobKind::Backup, INCREMENTAL, only_list, done), Some((50, Some(60))));
        assert_eq!(
            of(JobKind::Restore, JobLevel::None, only_list, Done { to_restore: 1200, ..done }),
            Some((25, Some(180)))
        );
    }

    #[test]
    fn without_a_basis_there_is_no_estimate() {
        let done = Done { seconds: 60, bytes: 9, examined: 9, to_restore: 0 };
        for kind in [JobKind::Backup, JobKind::Restore, JobKind::Verify, JobKind::System] {
            assert_eq!(of(kind, FULL, Expected::default(), done), None);
        }
        let large = Expected { earlier: Some(Size { bytes: 1000, examined: 0 }), listed: 0 };
        assert_eq!(of(JobKind::Backup, FULL, large, done), None, "less than a hundredth");
        let early = Done { seconds: 2, bytes: 500, ..done };
        assert_eq!(of(JobKind::Backup, FULL, large, early), None);
    }

    #[test]
    fn a_job_that_is_longer_than_expected_stays_below_its_end() {
        let expected = Expected { earlier: Some(Size { bytes: 1000, examined: 1 }), listed: 0 };
        let done = Done { seconds: 60, bytes: 5000, examined: 9, to_restore: 0 };
        assert_eq!(of(JobKind::Backup, FULL, expected, done), Some((99, None)));
        assert_eq!(of(JobKind::Backup, FULL, expected, Done { bytes: u64::MAX, ..done }), Some((99, None)));
    }
}
