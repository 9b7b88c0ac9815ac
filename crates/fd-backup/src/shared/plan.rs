//! The arguments and the errors of a backup.

use std::sync::Arc;
use std::time::Duration;

use fd_bsock::{CommCount, MAX_PAYLOAD};
use fd_crypto::processor::Processor;
use fd_fileset::FileSet;
use fd_os::depth::processors;
use fd_plugins::{JobFacts, JobPlugins, NoFacts};
use fd_walk::{Entry, WalkSettings};

use crate::accurate::AccurateList;
use crate::digests::protect::Protection;
use crate::digests::signature_file::SignatureFile;
use crate::manners::courtesy::Courtesy;
use crate::manners::memory::MemoryShare;
use crate::shared::backup_host::Surroundings;
use crate::shared::changes::{LateChanges, LateIncludes};
#[cfg(test)]
use crate::shared::schedule::Schedule;

/// What stays the same for the duration of a backup.
#[derive(Clone, Debug)]
pub struct BackupPlan {
    /// What is to be saved.
    pub fileset: Arc<FileSet>,
    /// How the tree is walked.
    pub walk: WalkSettings,
    /// The catalog's files, in an accurate job. Without it, times decide what has changed.
    pub accurate: Option<Arc<AccurateList>>,
    /// `Maximum Network Buffer Size`: the size of a full data record in bytes; 0 for 65,536.
    pub network_buffer: usize,
    /// Number of threads that read files; 0 counts as 1. The stream does not depend on it.
    pub workers: usize,
    /// The most threads that read files: those beyond `workers` are started while they wait for
    /// storage. If it is less, there are no more than these. The stream does not depend on it.
    pub reading_depth: usize,
    /// About the most memory in bytes for finished records that are not sent yet. A long job on a
    /// fast disk uses all of it.
    pub memory_budget: usize,
    /// Where it comes from: it goes back with the plan.
    pub memory_share: Option<Arc<MemoryShare>>,
    /// Whether frames are compressed with LZ4 where that pays (reference 01 §4.1).
    pub comm_compression: bool,
    /// FileIndex of the last file that an incomplete job has sent already; 0 for a new job.
    pub files_before: u32,
    /// `Maximum Job Error Count`: a read error beyond so many errors ends the job; 0 for no limit.
    pub max_job_errors: u32,
    /// How long to wait until a fifo is opened for writing; the stock daemon waits 60 s.
    pub fifo_timeout: Duration,
    /// How long a job that is canceled or fails waits for its threads; those that hang are left
    /// behind then. A job that is good waits 30 times as long.
    pub grace: Duration,
    /// Encryption and signatures, if they are configured.
    pub protection: Option<Arc<Protection>>,
    /// The job's plugins.
    pub plugins: Arc<JobPlugins>,
    /// What plugins may ask about the job.
    pub facts: Arc<dyn JobFacts>,
    /// Makes the Includes that plugins add during the walk; `None`: they can't.
    pub late: Option<Arc<dyn LateIncludes>>,
    /// Holds signatures of earlier jobs, and gets this job's.
    pub signature_file: Option<Arc<SignatureFile>>,
    /// Makes the job's threads give way to others; `None`: they use what they get.
    pub courtesy: Option<Arc<Courtesy>>,
    /// Whether the last message is about the time that each stage took.
    pub report_times: bool,
    /// What digests may use of the processor. The stream does not depend on it.
    pub processor: Processor,
    /// What happens to threads at random moments.
    #[cfg(test)]
    pub(crate) schedule: Option<Arc<Schedule>>,
}

impl BackupPlan {
    /// A plan with the stock daemon's values, and with workers for this host.
    pub fn new(fileset: Arc<FileSet>, walk: WalkSettings) -> Self {
        Self {
            fileset,
            walk,
            accurate: None,
            network_buffer: 0,
            workers: default_workers(),
            reading_depth: READING_DEPTH,
            memory_budget: USUAL_MEMORY,
            memory_share: None,
            comm_compression: false,
            files_before: 0,
            max_job_errors: 1000,
            fifo_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            protection: None,
            plugins: Arc::default(),
            facts: Arc::new(NoFacts),
            late: None,
            signature_file: None,
            courtesy: None,
            report_times: false,
            processor: Processor::chosen(),
            #[cfg(test)]
            schedule: None,
        }
    }
}

impl BackupPlan {
    /// Whether a restore may take this entry from an earlier job, together with those of this one.
    pub(crate) fn has_earlier(&self, entry: &Entry) -> bool {
        self.accurate.as_ref().map_or(self.walk.incremental, |list| list.has_earlier(entry.token))
    }

    /// The same of a file of a plugin command, whose record has this name.
    pub(crate) fn has_earlier_of(&self, name: &[u8]) -> bool {
        self.accurate.as_ref().map_or(self.walk.incremental, |list| list.has_earlier_of(name))
    }

    /// What plugins may ask about.
    pub(crate) fn surroundings<'p>(&'p self, changes: &'p LateChanges) -> Surroundings<'p> {
        Surroundings {
            facts: self.facts.as_ref(),
            list: self.accurate.as_deref(),
            fileset: &self.fileset,
            walk: &self.walk,
            changes,
        }
    }
}

/// Bytes of a full data record with this `Maximum Network Buffer Size`. Compression may enlarge a
/// record, and no record may exceed what a Storage Daemon accepts.
pub(crate) fn block_len(network_buffer: usize) -> usize {
    const USUAL: usize = 65_536;
    match network_buffer {
        0 => USUAL,
        asked => asked.clamp(1024, MAX_PAYLOAD - MAX_PAYLOAD / 16 - 1024),
    }
}

/// Of a job alone, bytes.
const USUAL_MEMORY: usize = 48 << 20;
/// Enough for 10,000 files a second where an operation takes 2 ms.
const READING_DEPTH: usize = 64;

/// One worker for each processor, up to four. More would only wait for the Storage Daemon.
fn default_workers() -> usize {
    processors().min(4)
}

/// Takes the frames of a job. Called on the thread of [`crate::run()`], which owns the connection.
pub trait FrameSink {
    /// Takes complete frames in order; `count` is the number of their payload bytes.
    ///
    /// # Errors
    /// The Storage Daemon can't be reached. That ends the backup.
    fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), SinkError>;

    /// Sends what is gathered: nothing more comes at present.
    ///
    /// # Errors
    /// As of [`Self::send_encoded`].
    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Why frames can't be sent.
#[derive(Debug, thiserror::Error)]
#[error("can't send to the Storage daemon: {reason}")]
pub struct SinkError {
    /// The system's message, for example `Broken pipe`.
    pub reason: String,
}

/// Why a backup failed. The operator has got a message about it, unless the job was canceled.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The connection to the Storage Daemon is lost.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The job was canceled.
    #[error("the job was canceled")]
    Canceled,
    /// There was a fatal message; this is its text.
    #[error("fatal: {0}")]
    Fatal(String),
    /// A thread can't be started.
    #[error("can't start a thread: {}", fd_os::io_error_text(source))]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
    /// A defect of this program ended one of the threads.
    #[error("a thread of the backup panicked")]
    Panicked,
}
