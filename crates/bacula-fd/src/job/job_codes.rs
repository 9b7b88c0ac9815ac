//! What the codes in the command lines of a job stand for (reference 02 §10.2).

use fd_messages::JobCodes;

use crate::shared::job::{Job, Words};

/// The codes of `job`; `words` are its own.
pub(crate) fn job_codes<'a>(
    job: &'a Job,
    words: &'a Words,
    client: &'a [u8],
    director: &'a [u8],
    previous_job: &'a [u8],
) -> JobCodes<'a> {
    JobCodes {
        client,
        director,
        status: words.status.as_bytes(),
        errors: job.progress.errors(),
        job_id: job.identity.job_id,
        job: &job.identity.name,
        level: words.level.as_bytes(),
        since: b"*none*",
        previous_job,
        files: job.progress.files(),
        bytes: job.progress.job_bytes(),
        read_bytes: job.progress.read_bytes(),
        job_type: words.kind.as_bytes(),
        volume: b"",
        priority: 0,
        process: std::process::id(),
        recipients: b"",
    }
}
