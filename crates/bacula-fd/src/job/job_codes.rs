//! What the codes in the command lines of a job stand for (reference 02 §10.2).

use fd_messages::{JobCodes, expand_job_codes};

use crate::shared::job::{Job, Words};

/// What the command lines of a job depend on, beside the job itself.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// Name of the client.
    pub client: Vec<u8>,
    /// Name of the Director.
    pub director: Vec<u8>,
    /// The job before.
    pub previous_job: Vec<u8>,
    /// *Allowed Script Directories* of the Director.
    pub allowed: Vec<Vec<u8>>,
}

impl Surroundings {
    /// A command with the codes of the job as it is now; `None` if that makes it too long.
    pub(crate) fn expand(&self, command: &[u8], job: &Job) -> Option<Vec<u8>> {
        let words = job.words();
        expand_job_codes(command, &self.codes(job, &words))
    }

    /// The codes of `job`; `words` are its own.
    pub(crate) fn codes<'a>(&'a self, job: &'a Job, words: &'a Words) -> JobCodes<'a> {
        JobCodes {
            client: &self.client,
            director: &self.director,
            status: words.status.as_bytes(),
            errors: job.progress.errors(),
            job_id: job.identity.job_id,
            job: &job.identity.name,
            level: words.level.as_bytes(),
            since: b"*none*",
            previous_job: &self.previous_job,
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
}
