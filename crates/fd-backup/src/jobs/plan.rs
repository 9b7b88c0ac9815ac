//! What a caller hands to a backup and gets back from it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fd_bsock::{CommCount, MAX_PAYLOAD};
use fd_crypto::processor::Processor;
use fd_fileset::FileSet;
use fd_walk::WalkSettings;
use rustix::system::sysinfo;

use crate::accurate::AccurateList;
use crate::digests::protect::Protection;
use crate::digests::signature_file::SignatureFile;
use crate::file::plugins::PluginNames;
use crate::pipeline::pace::HostShare;

/// Everything that stays the same for the length of one backup.
#[derive(Clone, Debug)]
pub struct BackupPlan {
    /// What is to be saved.
    pub fileset: Arc<FileSet>,
    /// How the tree is walked.
    pub walk: WalkSettings,
    /// What the catalog knows, in an accurate job. Without, the times decide what changed.
    pub accurate: Option<Arc<AccurateList>>,
    /// `Maximum Network Buffer Size`: the size of a full data record in bytes; 0 for the usual 65,536.
    pub network_buffer: usize,
    /// How many threads read files; 0 counts as 1. What is sent does not depend on it.
    pub workers: usize,
    /// The most memory in bytes that finished but unsent records take, about. A long job on a fast disk uses all of it.
    pub memory_budget: usize,
    /// Whether frames are compressed with LZ4 where that pays (reference 01 §4.1).
    pub comm_compression: bool,
    /// FileIndex of the last file that an incomplete job has sent already; 0 for a new job.
    pub files_before: u32,
    /// `Maximum Job Error Count`: a read error beyond so many errors ends the job; 0 for no limit.
    pub max_job_errors: u32,
    /// How long to wait until somebody opens a fifo for writing; the stock daemon waits 60 s.
    pub fifo_timeout: Duration,
    /// Encryption and signatures, where the configuration has them.
    pub protection: Option<Arc<Protection>>,
    /// The plugins that there are.
    pub plugins: PluginNames,
    /// Where signatures of earlier jobs are, and this one's for later ones.
    pub signature_file: Option<Arc<SignatureFile>>,
    /// What the job takes of the host beside others.
    pub host_share: HostShare,
    /// Whether the last message says where the time went.
    pub tell_times: bool,
    /// What of the processor the digests may use; what is sent does not depend on it.
    pub processor: Processor,
}

impl BackupPlan {
    /// A plan with the stock daemon's values, and memory and workers for this machine.
    pub fn new(fileset: Arc<FileSet>, walk: WalkSettings) -> Self {
        Self {
            fileset,
            walk,
            accurate: None,
            network_buffer: 0,
            workers: default_workers(),
            memory_budget: default_memory(),
            comm_compression: false,
            files_before: 0,
            max_job_errors: 1000,
            fifo_timeout: Duration::from_secs(60),
            protection: None,
            plugins: PluginNames::default(),
            signature_file: None,
            host_share: HostShare::default(),
            tell_times: false,
            processor: Processor::chosen(),
        }
    }

    /// Bytes of a full data record. Room is left for what compression may add: no record may exceed what a Storage
    /// Daemon takes.
    pub(crate) fn block_len(&self) -> usize {
        block_len(self.network_buffer)
    }
}

/// Bytes of a full data record with this `Maximum Network Buffer Size`.
pub(crate) fn block_len(network_buffer: usize) -> usize {
    const USUAL: usize = 65_536;
    match network_buffer {
        0 => USUAL,
        asked => asked.clamp(1024, MAX_PAYLOAD - MAX_PAYLOAD / 16 - 1024),
    }
}

/// One worker for each processor, up to four: more only wait for the Storage Daemon.
fn default_workers() -> usize {
    // Asked once: the answer costs a dozen system calls.
    static WORKERS: OnceLock<usize> = OnceLock::new();
    *WORKERS.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(4))
}

/// A 32nd of the host's memory, from 8 to 48 MiB. With less, large files that are read at the same time are seldom at
/// hand together when they are digested: 63 % of the benchmark's at 24 MiB, 90 % at 48.
fn default_memory() -> usize {
    const LEAST: usize = 8 << 20;
    const MOST: usize = 48 << 20;
    let host = sysinfo();
    let unit = usize::try_from(host.mem_unit).unwrap_or(1);
    usize::try_from(host.totalram / 32).unwrap_or(MOST).saturating_mul(unit).clamp(LEAST, MOST)
}

/// Where the frames go. Called on the thread that called [`crate::run()`], which owns the connection.
pub trait FrameSink {
    /// Takes frames that are complete and in order; `count` is what they count as.
    ///
    /// # Errors
    /// When the Storage Daemon can't be reached any more. The backup ends then.
    fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), SinkError>;
}

/// Why frames could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("can't send to the Storage daemon: {reason}")]
pub struct SinkError {
    /// The system's words, for example `Broken pipe`.
    pub reason: String,
}

/// Why a backup did not come to its end. The operator has been told, except of a cancelled job.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The Storage Daemon is gone.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Somebody cancelled the job.
    #[error("the job was cancelled")]
    Cancelled,
    /// A fatal message was issued; this is its text.
    #[error("fatal: {0}")]
    Fatal(String),
    /// No thread could be started.
    #[error("can't start a thread: {source}")]
    Thread {
        /// What the system says.
        source: std::io::Error,
    },
    /// A defect of this program ended one of the threads.
    #[error("a thread of the backup panicked")]
    Panicked,
}
