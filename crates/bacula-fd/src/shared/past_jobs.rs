//! What became of earlier jobs: for each name the last one, and how large its good ones were. From
//! this come the metrics of ended jobs, and estimates of running ones.
//!
//! Not here: the history that a status shows, which is the last ten jobs of any name.

use std::collections::BTreeMap;

use fd_messages::short_job_name;
use fd_os::local_time::now;
use fd_session::JobStatus;

use crate::shared::state_file::FinishedJob;

/// Names that are remembered; of more, those go whose last job is the oldest.
const MOST: usize = 100;
/// How much younger a good backup of any name has to be, in seconds, for a job that was not clean
/// to be told no more: 40 days, in which the next one of a monthly schedule has come, if there is
/// one.
const TOLD: i64 = 40 * 86_400;
/// The catalog's code of a backup.
const BACKUP: u8 = b'B';

/// How much a good job had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    /// Bytes saved, restored or compared.
    pub bytes: u64,
    /// Entries that it has looked at; 0 if that is not known, as of jobs before a restart.
    pub examined: u64,
}

/// What the history of jobs doesn't keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    /// Entries that the job has looked at.
    pub examined: u64,
    /// Its warnings.
    pub warnings: u32,
}

/// What is known of the jobs of one name and kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Past {
    /// The last of them.
    pub last: FinishedJob,
    /// Its warnings; 0 if that is not known, as of jobs before a restart.
    pub warnings: u32,
    /// When the last good one has ended, seconds since 1970.
    pub good_end: Option<i64>,
    /// Of the last good one of each level.
    sizes: BTreeMap<u8, Size>,
}

impl Past {
    /// Whether the last of them is one that nobody has to look at.
    fn is_clean(&self) -> bool {
        is_good(&self.last) && self.last.errors == 0 && self.warnings == 0
    }
}

/// The jobs that have ended, by name without date and number, and by kind.
#[derive(Clone, Default, Debug)]
pub(crate) struct PastJobs {
    jobs: BTreeMap<(Vec<u8>, u8), Past>,
}

impl PastJobs {
    /// Of the history that a daemon before this one has left, oldest first.
    pub(crate) fn of_history(history: &[FinishedJob]) -> Self {
        let mut past = Self::default();
        for job in history {
            past.note(job, Seen::default());
        }
        past
    }

    /// A job has ended.
    pub(crate) fn note(&mut self, job: &FinishedJob, seen: Seen) {
        let past = self.jobs.entry(key(&job.job, job.job_type)).or_insert_with(|| Past {
            last: job.clone(),
            warnings: 0,
            good_end: None,
            sizes: BTreeMap::new(),
        });
        past.last = job.clone();
        past.warnings = seen.warnings;
        if is_good(job) {
            past.good_end = Some(job.end_time);
            past.sizes.insert(job.job_level, Size { bytes: job.job_bytes, examined: seen.examined });
        }
        if self.jobs.len() > MOST {
            let oldest = self.jobs.iter().min_by_key(|(_, past)| past.last.end_time).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.jobs.remove(&key));
        }
    }

    /// How much the last good job of this full name's job, kind and level had.
    pub(crate) fn size(&self, full_name: &[u8], kind: u8, level: u8) -> Option<Size> {
        self.jobs.get(&key(full_name, kind))?.sizes.get(&level).copied()
    }

    /// From which time on jobs are told that failed or had errors: one whose name was removed has
    /// no next good one, which would end that. An end that has not come yet is that of a clock that
    /// was set back since.
    fn told_from(&self) -> i64 {
        let (now, backups) = (now(), self.jobs.values().filter(|past| past.last.job_type == BACKUP));
        let ends = backups.filter_map(|past| past.good_end).filter(|end| *end <= now);
        ends.max().map_or(i64::MIN, |end| end.saturating_sub(TOLD))
    }

    /// The same as [`Self::iter`], without those whose last job is told no more.
    pub(crate) fn told(&self) -> impl Iterator<Item = (&[u8], &Past)> {
        let from = self.told_from();
        self.iter().filter(move |(_, past)| past.is_clean() || past.last.end_time >= from)
    }

    /// The names without date and number, with what is known of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Past)> {
        self.jobs.iter().map(|((name, _), past)| (name.as_slice(), past))
    }
}

fn key(full_name: &[u8], kind: u8) -> (Vec<u8>, u8) {
    (short_job_name(full_name).to_vec(), kind)
}

/// Whether everything was saved, restored, or as expected.
pub(crate) fn is_good(job: &FinishedJob) -> bool {
    matches!(JobStatus::from_code(job.job_status), Some(JobStatus::Terminated | JobStatus::Warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(name: &str, level: u8, status: u8, end_time: i64) -> FinishedJob {
        let job = format!("{name}.2026-11-21_02.19.56_04").into_bytes();
        let (job_type, job_bytes) = (b'B', end_time.unsigned_abs());
        FinishedJob {
            job,
            job_type,
            job_level: level,
            job_status: status,
            end_time,
            job_bytes,
            ..FinishedJob::default()
        }
    }

    #[test]
    fn the_last_job_and_the_last_good_one_of_each_level_are_known() {
        let history = [ended("a", b'F', b'T', 10), ended("a", b'I', b'T', 20), ended("b", b'F', b'E', 25)];
        let mut past = PastJobs::of_history(&history);
        let seen = Seen { examined: 7, warnings: 2 };
        past.note(&ended("a", b'F', b'A', 30), seen);
        let known: Vec<_> = past.iter().map(|(name, past)| (name, past.last.job_status, past.good_end)).collect();
        assert_eq!(known, [(&b"a"[..], b'A', Some(20)), (&b"b"[..], b'E', None)]);
        let full = past.size(b"a.2027-01-01_00.00.00_01", b'B', b'F');
        assert_eq!(full, Some(Size { bytes: 10, examined: 0 }));
        assert_eq!(past.size(b"a.2027-01-01_00.00.00_01", b'B', b'D'), None);
        assert_eq!(past.size(b"a.2027-01-01_00.00.00_01", b'R', b'F'), None);
        past.note(&ended("a", b'F', b'W', 40), seen);
        assert_eq!(past.iter().map(|(_, past)| past.warnings).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(past.size(b"a", b'B', b'F'), Some(Size { bytes: 40, examined: 7 }));
    }

    #[test]
    fn names_are_bounded_and_the_oldest_goes() {
        let mut past = PastJobs::default();
        (0..150).for_each(|number| past.note(&ended(&format!("n{number}"), b'F', b'T', number), Seen::default()));
        assert_eq!(past.iter().count(), MOST);
        assert!(past.size(b"n49", b'B', b'F').is_none() && past.size(b"n50", b'B', b'F').is_some());
    }

    #[test]
    fn what_failed_is_told_until_a_backup_is_good_40_days_later() {
        let of = |jobs: &[FinishedJob]| {
            let past = PastJobs::of_history(jobs);
            past.told().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
        };
        let failed = |name: &str, status| ended(name, b'F', status, 1000);
        let with_errors = FinishedJob { errors: 1, ..failed("errors", b'T') };
        let restore = FinishedJob { job_type: b'R', ..ended("restore", b' ', b'T', 9 * TOLD) };
        let past = [failed("canceled", b'A'), with_errors, failed("failed", b'f'), failed("good", b'T'), restore];
        let all = ["canceled", "errors", "failed", "good", "restore"];
        assert_eq!(of(&past), all);
        let then = |status, time| [&past[..], &[ended("z", b'F', status, time)]].concat();
        assert_eq!(of(&then(b'T', 1000 + TOLD)), [&all[..], &["z"]].concat());
        assert_eq!(of(&then(b'E', 1001 + TOLD)), [&all[..], &["z"]].concat());
        assert_eq!(of(&then(b'T', 1001 + TOLD)), ["good", "restore", "z"]);
        assert_eq!(of(&then(b'T', i64::MAX)), [&all[..], &["z"]].concat());
        // What is younger than that is told, and so is what is the youngest itself.
        let two = [failed("a", b'T'), ended("a", b'F', b'f', 2000 + TOLD), ended("b", b'F', b'T', 3000 + TOLD)];
        assert_eq!(of(&two), ["a", "b"]);
    }
}
