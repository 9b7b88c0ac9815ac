//! What the threads of one backup share.

use std::sync::Arc;
use std::time::Duration;

use fd_messages::{CancelToken, JobLog, MessageType, Progress, StageTimes};

use crate::accurate::AccurateList;
use crate::batch::Batch;
use crate::exchange::{Exchange, Limits};
use crate::long_digests::LongDigests;
use crate::pace::HostShare;
use crate::plan::BackupPlan;
use crate::protect::{JobProtection, Unprotected};

/// A piece is published when it holds this many bytes of frames.
const PIECE_LEN: usize = 512 << 10;
/// Batches that wait for a worker: enough that nobody waits for the walker, few enough to be no memory at all.
const QUEUE: usize = 16;

/// See the module.
pub(crate) struct Job<'j> {
    pub(crate) exchange: Exchange<Batch>,
    pub(crate) times: &'j StageTimes,
    pub(crate) host_share: HostShare,
    pub(crate) cancel: &'j CancelToken,
    pub(crate) accurate: Option<&'j AccurateList>,
    /// Bytes of a full data record.
    pub(crate) record_len: usize,
    pub(crate) piece_len: usize,
    pub(crate) fifo_timeout: Duration,
    pub(crate) comm_compression: bool,
    /// Somebody wants the line of each saved file.
    pub(crate) wants_saved: bool,
    /// Somebody wants the line of each unchanged file.
    pub(crate) wants_skipped: bool,
    /// Where long files are digested, if together is better than each on its own.
    pub(crate) long_digests: Option<LongDigests>,
    /// How files are encrypted and signed.
    pub(crate) protection: Option<JobProtection<'j>>,
}

impl<'j> Job<'j> {
    pub(crate) fn new(
        plan: &'j BackupPlan,
        progress: &'j Progress,
        cancel: &'j CancelToken,
        log: &dyn JobLog,
    ) -> Result<Self, Unprotected> {
        let record_len = plan.block_len();
        let piece_len = PIECE_LEN.min(plan.memory_budget.max(1));
        // A piece is published when it is full: then one record may stand over its end.
        let capacity = piece_len + record_len + record_len / 8;
        let limits = Limits { pieces: (plan.memory_budget / capacity).max(1), piece_len: capacity, queue: QUEUE };
        Ok(Self {
            exchange: Exchange::new(limits, plan.files_before.saturating_add(1), Arc::clone(progress.stages())),
            times: progress.stages(),
            host_share: plan.host_share,
            cancel,
            accurate: plan.accurate.as_deref(),
            record_len,
            piece_len,
            fifo_timeout: plan.fifo_timeout,
            comm_compression: plan.comm_compression,
            wants_saved: log.wants(MessageType::Saved),
            wants_skipped: log.wants(MessageType::Skipped),
            long_digests: LongDigests::new(plan.workers.max(1)),
            protection: plan.protection.as_deref().map(JobProtection::new).transpose()?,
        })
    }

    /// Whether there is no point in going on.
    pub(crate) fn is_stopped(&self) -> bool {
        self.exchange.is_stopped() || self.cancel.is_cancelled()
    }
}
