//! `snapshot` (reference 02 §4.5).

use fd_messages::{JobCodes, expand_job_codes};
use fd_session::command::SnapshotOrder;
use fd_session::texts;

use super::conversation::{Conversation, Flow};

/// The snapshot helper without a `Snapshot Command`.
const SNAPSHOT_COMMAND: &[u8] = b"%ebsnapshot";

impl Conversation<'_> {
    /// What the stock daemon answers where its helper program is not installed; Debian does not
    /// ship one.
    pub(super) fn snapshot(&mut self, order: SnapshotOrder) -> Flow {
        let failed = |order: &str| texts::snapshot_helper_failed(order, &self.snapshot_helper());
        match order {
            SnapshotOrder::Retention => self.reply(texts::OK_SNAPSHOT_RETENTION),
            SnapshotOrder::List | SnapshotOrder::Content => self.end_of_data(),
            SnapshotOrder::Query => {
                let reply = texts::snapshot_not_queried(&failed("query"));
                self.reply(&reply);
            }
            SnapshotOrder::Delete => {
                let reply = texts::snapshot_not_deleted(&failed("delete"));
                self.reply(&reply);
            }
            SnapshotOrder::Prune => self.reply(texts::SNAPSHOT_PRUNED),
        }
        Flow::GoOn
    }

    fn snapshot_helper(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;
        let command = self.daemon.config().file_daemon.snapshot_command.as_deref().unwrap_or(SNAPSHOT_COMMAND);
        let program = std::env::current_exe().unwrap_or_default();
        let directory = program.parent().map(|parent| parent.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        let directory = [directory.as_slice(), b"/"].concat();
        expand_job_codes(command, &JobCodes { status: &directory, ..JobCodes::default() })
    }
}
