//! What the threads of one backup share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::time::Instant;

use fd_messages::{CancelToken, JobLog, MessageType, Progress, StageTimes};
use fd_walk::{Entry, HardLink, LinkState};

use crate::accurate::Token;
use crate::digests::ahead::DigestsAhead;
use crate::digests::choice::Digests;
use crate::digests::protect::{JobProtection, ProtectionError};
use crate::file::source::{LeaseClock, OpenLimits};
use crate::jobs::plan::{BackupPlan, block_len};
use crate::manners::courtesy::JobCourtesy;
use crate::pipeline::batch::Batch;
use crate::pipeline::exchange::{Exchange, Limits, Stopped};
use crate::pipeline::pace::Pace;
use crate::plugins::changes::LateChanges;
use crate::plugins::host::{BackupHost, Surroundings};

/// A piece is published when it holds this many bytes of frames.
const PIECE_LEN: usize = 512 << 10;
/// How many batches may wait for a worker: enough to give a large file company when digests are
/// computed ahead, few enough to need hardly any memory.
const QUEUE: usize = 64;

/// See the module.
pub(crate) struct Job<'j> {
    pub(crate) plan: &'j BackupPlan,
    pub(crate) exchange: Exchange<Batch>,
    pub(crate) times: &'j StageTimes,
    pub(crate) cancel: &'j CancelToken,
    /// Bytes of a full data record.
    pub(crate) record_len: usize,
    pub(crate) piece_len: usize,
    pub(crate) leases: LeaseClock,
    /// What plugins change in the FileSet.
    pub(crate) changes: LateChanges,
    /// The error of the last plugin's file that could not be opened.
    pub(crate) open_error: AtomicI32,
    /// A plugin is at work.
    pub(crate) in_plugin: AtomicBool,
    /// The log takes the line of each saved file.
    pub(crate) wants_saved: bool,
    /// The log takes the line of each unchanged file.
    pub(crate) wants_skipped: bool,
    /// Computes digests of several large files at a time, before they are read for the stream.
    pub(crate) digests_ahead: Option<DigestsAhead>,
    /// Makes its threads give way to others.
    pub(crate) courtesy: Option<Arc<JobCourtesy>>,
    /// Encrypts and signs files.
    pub(crate) protection: Option<JobProtection<'j>>,
}

impl<'j> Job<'j> {
    pub(crate) fn new(
        plan: &'j BackupPlan,
        progress: &'j Progress,
        cancel: &'j CancelToken,
        log: &dyn JobLog,
    ) -> Result<Self, ProtectionError> {
        let record_len = block_len(plan.network_buffer);
        let piece_len = PIECE_LEN.min(plan.memory_budget.max(1));
        // A piece is published once it is full. Its last record may exceed its length.
        let capacity = piece_len + record_len + record_len / 8;
        let limits = Limits { pieces: (plan.memory_budget / capacity).max(1), piece_len: capacity, queue: QUEUE };
        Ok(Self {
            plan,
            exchange: Exchange::new(limits, plan.files_before.saturating_add(1), Arc::clone(progress.stages())),
            times: progress.stages(),
            cancel,
            record_len,
            piece_len,
            leases: LeaseClock::default(),
            changes: LateChanges::default(),
            open_error: AtomicI32::new(0),
            in_plugin: AtomicBool::new(false),
            wants_saved: log.wants(MessageType::Saved),
            wants_skipped: log.wants(MessageType::Skipped),
            digests_ahead: DigestsAhead::new(record_len, plan.processor),
            courtesy: plan
                .courtesy
                .as_ref()
                .and_then(|courtesy| courtesy.begin(progress.stages(), plan.host_share.nice.is_some(), Instant::now())),
            protection: plan
                .protection
                .as_deref()
                .map(|protection| JobProtection::new(protection, plan.signature_file.as_ref()))
                .transpose()?,
        })
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
        Pace::new(&self.plan.host_share, self.courtesy.clone())
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
        OpenLimits { fifo: self.plan.fifo_timeout, is_stopped, leases: &self.leases }
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
        self.plan.plugins.cancel(&mut BackupHost::new(self.surroundings(), 0, &options));
    }

    /// Whether the job is stopped or canceled.
    pub(crate) fn is_stopped(&self) -> bool {
        self.exchange.is_stopped() || self.cancel.is_cancelled()
    }
}
