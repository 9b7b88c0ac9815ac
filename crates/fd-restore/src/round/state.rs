//! What a restore remembers from one round to the next.

use fd_metadata::{MetadataWriter, UsualOwner, has_proc};

use crate::digests::DigestCheck;
use crate::file::{DataPath, Encryption};
use crate::plan::RestorePlan;
use crate::report::QueuedMessage;
use crate::tree::{Directories, LinkRule};

/// What a restore remembers from one round (one Storage Daemon) to the next.
pub struct RestoreState {
    pub(super) directories: Directories,
    pub(super) writer: MetadataWriter,
    pub(super) digest: DigestCheck,
    pub(super) data: DataPath,
    pub(super) encryption: Encryption,
    pub(super) usual: UsualOwner,
    /// An ACL has come, so the job restores what was saved with them.
    pub(super) has_acls: bool,
    /// Whether a file that is open for writing only can be opened again to be read.
    pub(super) can_reopen: bool,
    /// Messages of the round before that wait for the next one.
    pub(super) queued: Vec<QueuedMessage>,
}

impl RestoreState {
    /// The state of a job that follows links by this rule.
    pub fn new(plan: &RestorePlan, links: LinkRule) -> Self {
        Self {
            directories: Directories::new(links),
            writer: MetadataWriter::new(),
            digest: DigestCheck::new(plan.check_digests, plan.digests.clone(), plan.keys.is_some(), plan.processor),
            data: DataPath::new(),
            encryption: Encryption::new(plan.keys.clone()),
            usual: UsualOwner::default(),
            has_acls: false,
            can_reopen: has_proc(),
            queued: Vec::new(),
        }
    }

    /// Messages that an earlier round left queued: the next round delivers them with its own.
    pub fn wait_with(&mut self, queued: Vec<QueuedMessage>) {
        self.queued = queued;
    }
}
