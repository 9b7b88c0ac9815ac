//! The one-line forms of `.status`.

use super::plain;
use crate::shared::state_file::FinishedJob;
use crate::shared::supervisor::Supervisor;

/// `.status current`: one line a running job. No NUL at the ends.
pub(crate) fn current(supervisor: &Supervisor) -> Vec<Vec<u8>> {
    let jobs = supervisor.running_jobs().into_iter();
    jobs.map(|job| line(job.identity.job_id, job.status().code(), i64::from(job.progress.errors()))).collect()
}

/// `.status last`: the newest job that ended.
pub(crate) fn last(supervisor: &Supervisor) -> Vec<Vec<u8>> {
    let history = supervisor.history();
    history.last().map(|entry| line(entry.job_id, entry.job_status, i64::from(entry.errors))).into_iter().collect()
}

/// `.status terminated` for older tools: one row a job, columns divided by tabs.
pub(crate) fn terminated(history: &[FinishedJob]) -> Vec<Vec<u8>> {
    history.iter().map(|entry| plain::with_nul(plain::terminated(entry, "\t", "\t"))).collect()
}

fn line(job_id: u32, status: u8, errors: i64) -> Vec<u8> {
    format!("JobId={job_id} JobStatus={} JobErrors={errors}\n", char::from(status)).into_bytes()
}
