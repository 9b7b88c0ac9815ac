//! What the threads of one backup share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_walk::{Entry, HardLink, LinkState};

use crate::accurate::Token;
use crate::digests::ahead::DigestsAhead;
use crate::digests::choice::Digests;
use crate::digests::protect::JobProtection;
use crate::exchange::halt::ProtectionError;
use crate::exchange::pace::Pace;
use crate::exchange::{Exchange, Limits, Stopped};
use crate::manners::courtesy::JobCourtesy;
use crate::shared::backup_host::{BackupHost, Surroundings, Way};
use crate::shared::batch::Batch;
use crate::shared::changes::LateChanges;
use crate::shared::depth::Depth;
use crate::shared::plan::{BackupPlan, block_len};
use crate::shared::threads::{Joined, Threads};
use crate::source::{LeaseClock, OpenLimits};
use fd_os::sync::Mutex;

/// A piece is published when it holds this many bytes of frames.
const PIECE_LEN: usize = 512 << 10;
/// So many pieces keep the sender at work while nothing waits for storage.
const FEW_PIECES: usize = 12;
/// How many batches may wait for a worker: enough to give a large file company when digests are
/// computed ahead, few enough to need hardly any memory.
const QUEUE: usize = 64;

/// Why a job has no workers.
pub(crate) enum Failure {
    /// A thread can't be started.
    Thread(io::Error),
    /// It could not protect data.
    Protection(ProtectionError),
}

/// The job's threads, and how many of them work.
pub(crate) struct Workers {
    pub(crate) threads: Threads,
    pub(crate) depth: Depth,
    /// Starts more, if there may be more.
    start_more: OnceLock<Box<dyn Fn() + Send + Sync>>,
    failure: Mutex<Option<Failure>>,
}

/// See the module. A thread that waits for storage may outlast its job, so the job owns all that
/// its threads use.
pub(crate) struct Job {
    pub(crate) plan: BackupPlan,
    pub(crate) exchange: Exchange<Batch>,
    pub(crate) workers: Workers,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: CancelToken,
    /// Bytes of a full data record.
    pub(crate) record_len: usize,
    pub(crate) piece_len: usize,
    pub(crate) leases: LeaseClock,
    /// What plugins change in the FileSet.
    pub(crate) changes: LateChanges,
    /// The error of the last plugin's file that could not be opened.
    pub(crate) open_error: AtomicI32,
    /// A plugin has its files saved.
    in_plugin: AtomicBool,
    /// The types of messages that the log takes.
    wanted: Vec<MessageType>,
    /// Computes digests of several large files at a time, before they are read for the stream.
    pub(crate) digests_ahead: Option<DigestsAhead>,
    /// Makes its threads give way to others.
    pub(crate) courtesy: Option<Arc<JobCourtesy>>,
    /// Encrypts and signs files.
    pub(crate) protection: Option<JobProtection>,
}

impl Job {
    pub(crate) fn new(
        plan: BackupPlan,
        progress: Arc<Progress>,
        cancel: CancelToken,
        log: &dyn JobLog,
    ) -> Result<Self, ProtectionError> {
        let record_len = block_len(plan.network_buffer);
        let piece_len = PIECE_LEN.min(plan.memory_budget.max(1));
        // A piece is published once it is full. Its last record may exceed its length.
        let capacity = piece_len + record_len + record_len / 8;
        let (workers, depth) = (plan.workers.max(1), plan.reading_depth.max(1));
        let pieces = (plan.memory_budget / capacity).max(1);
        let (few, base) = (FEW_PIECES.max(2 * workers), workers.min(depth));
        let limits = Limits { pieces, few, base, piece_len: capacity, queue: QUEUE };
        // More workers would only wait for pieces.
        let most = depth.min(limits.pieces.max(workers));
        Ok(Self {
            exchange: Exchange::new(limits, plan.files_before.saturating_add(1), Arc::clone(progress.stages())),
            workers: Workers {
                threads: Threads::new(plan.grace),
                depth: Depth::new(base, most),
                start_more: OnceLock::new(),
                failure: Mutex::default(),
            },
            cancel,
            record_len,
            piece_len,
            leases: LeaseClock::default(),
            changes: LateChanges::new(plan.late.clone()),
            open_error: AtomicI32::new(0),
            in_plugin: AtomicBool::new(false),
            wanted: MessageType::ALL.into_iter().filter(|kind| log.wants(*kind)).collect(),
            digests_ahead: DigestsAhead::new(record_len, plan.processor),
            courtesy: plan.courtesy.as_ref().and_then(|courtesy| courtesy.begin(progress.stages(), Instant::now())),
            protection: plan
                .protection
                .clone()
                .map(|protection| JobProtection::new(protection, plan.signature_file.as_ref()))
                .transpose()?,
            plan,
            progress,
        })
    }

    /// What starts workers when there may be more.
    pub(crate) fn set_more_workers(&self, start: Box<dyn Fn() + Send + Sync>) {
        // It is set once, at the start.
        let _set_already = self.workers.start_more.set(start);
    }

    /// Worker: there may be more workers now.
    pub(crate) fn more_workers(&self) {
        if let Some(start) = self.workers.start_more.get() {
            start();
        }
    }

    /// Ends the job: there are no workers.
    pub(crate) fn fail(&self, failure: Failure) {
        self.workers.failure.lock().get_or_insert(failure);
        self.exchange.stop();
    }

    /// The first failure, once.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.workers.failure.lock().take()
    }

    /// Whether the log takes messages of this type.
    pub(crate) fn wants(&self, kind: MessageType) -> bool {
        self.wanted.contains(&kind)
    }

    /// Stops and ends all threads. `is_good`: all that the job has to send is sent.
    pub(crate) fn end_threads(&self, is_good: bool) -> Joined {
        self.exchange.stop();
        let is_good = || is_good && !self.cancel.is_canceled();
        let joined = self.workers.threads.join(is_good, || self.plan.plugins.are_busy());
        if joined.left > 0 {
            self.exchange.free_pieces();
            // One of them may hold a plugin.
            self.plan.plugins.abandon();
        }
        joined
    }

    /// A plugin has its files saved as long as the answer lives: it is called, or the daemon does
    /// its own part.
    pub(crate) fn enter_plugin(&self) -> InPlugin<'_> {
        self.in_plugin.store(true, Ordering::SeqCst);
        InPlugin(&self.in_plugin)
    }

    /// Whether a plugin has its files saved.
    pub(crate) fn is_in_plugin(&self) -> bool {
        self.in_plugin.load(Ordering::SeqCst)
    }

    /// Walker: has the digests of a batch that is one large file computed ahead, if possible.
    pub(crate) fn announce(&self, batch: &mut Batch) {
        let (Some(ahead), Some(entry)) = (&self.digests_ahead, batch.large_file()) else { return };
        if entry.token.is_some_and(|token| Token::decode(token).needs_data()) {
            // Its data decides whether it is saved.
            return;
        }
        let signed = self.protection.as_ref().and_then(|protection| protection.signs(entry.file_type));
        let digests = Digests::new(entry.options.digest, signed, entry, self.plan.processor);
        batch.ahead = ahead.announce(entry, digests.streamed());
    }

    /// The pauses of one of the job's threads.
    pub(crate) fn pace(&self) -> Pace {
        Pace::new(self.courtesy.clone())
    }

    /// Sets the state of the first name of an inode for the later names.
    pub(crate) fn resolve(&self, entry: &Entry, state: LinkState) {
        if let Some(HardLink::First(slot)) = &entry.hard_link {
            slot.set(state);
            self.exchange.announce();
        }
    }

    /// Later names of the walk's inode will not refer to this entry.
    pub(crate) fn stand_alone(&self, entry: &mut Entry) {
        self.resolve(entry, LinkState::NotSaved);
        entry.hard_link = None;
    }

    /// Limits of the time that opening a file may take.
    pub(crate) fn open_limits<'p>(&'p self, is_stopped: &'p dyn Fn() -> bool) -> OpenLimits<'p> {
        OpenLimits { fifo: self.plan.fifo_timeout, ..OpenLimits::new(is_stopped, &self.leases) }
    }

    /// Fails if the job is stopped or canceled.
    pub(crate) fn go_on(&self) -> Result<(), Stopped> {
        if self.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    /// What plugins may ask about.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        self.plan.surroundings(&self.changes)
    }

    /// Tells all plugins that the job is over: one of them is at work.
    pub(crate) fn cancel_plugins(&self) {
        let options = Arc::default();
        self.plan.plugins.cancel(&mut BackupHost::new(self.surroundings(), 0, &options, Way::Kept));
    }

    /// Whether the job is stopped or canceled.
    pub(crate) fn is_stopped(&self) -> bool {
        #[cfg(test)]
        if let Some(workers) = self.plan.schedule.as_ref().and_then(|schedule| schedule.step()) {
            self.workers.depth.want(workers);
            self.more_workers();
        }
        self.exchange.is_stopped() || self.cancel.is_canceled()
    }
}

/// A plugin has its files saved.
pub(crate) struct InPlugin<'j>(&'j AtomicBool);

impl Drop for InPlugin<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
