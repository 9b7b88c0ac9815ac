//! `snapshot` (reference 02 §4.5, 07 §12.6), and what a backup needs to make snapshots.

use std::sync::Arc;

use fd_bsock::scan::Lenient;
use fd_fileset::FileSet;
use fd_os::process::IsWanted;
use fd_session::command::{NamedSnapshot, SnapshotOrder};
use fd_walk::Snapshots;

use super::conversation::{Conversation, Flow};
use crate::job::snapshots::helper::{Action, Helper};
use crate::job::snapshots::output::{self, Answer};
use crate::job::snapshots::scan;
use crate::job::snapshots::session::{self, Order};
use crate::shared::snapshot_journal::Snapshot;
use crate::texts;

impl<'d> Conversation<'d> {
    pub(super) fn snapshot(&mut self, order: SnapshotOrder) -> Flow {
        match order {
            SnapshotOrder::Retention(seconds) => {
                self.asked.snapshot_retention = (Lenient::new(&seconds).i64() > 0).then_some(seconds);
                self.reply(texts::OK_SNAPSHOT_RETENTION);
            }
            SnapshotOrder::List => self.list_snapshots(),
            SnapshotOrder::Content => return self.end_of_data(),
            SnapshotOrder::Query(named) => {
                let answer = self.while_wanted(|helper, wanted| helper.ask(Action::Query, &about(named), wanted));
                let reply = match answer {
                    Ok(answer) => texts::snapshot_queried(answer.status.unwrap_or(0), answer.size),
                    Err(failed) => texts::snapshot_not_queried(failed.status, &failed.error),
                };
                self.reply(&reply);
            }
            // Its catalog has it while it is read, and it may be past its retention by then.
            SnapshotOrder::Delete(named) if self.daemon.own_files.snapshot_journal.is_read_by_a_job(&named.volume) => {
                self.reply(&texts::snapshot_not_deleted(texts::SNAPSHOT_IN_USE));
            }
            SnapshotOrder::Delete(named) => {
                let answer = self.while_wanted(|helper, wanted| helper.ask(Action::Delete, &about(named), wanted));
                match answer {
                    Ok(_) => self.reply(texts::SNAPSHOT_DELETED),
                    Err(failed) => self.reply(&texts::snapshot_not_deleted(&failed.error)),
                }
            }
            SnapshotOrder::Prune => self.reply(texts::SNAPSHOT_PRUNED),
        }
        Flow::GoOn
    }

    /// What the job needs, if its FileSet asks for snapshots.
    pub(super) fn snapshot_order(&self) -> Option<Order<'d>> {
        let helper = || Helper::new(self.daemon, &self.resource.allowed_script_directories);
        let order = || Order {
            daemon: self.daemon,
            helper: helper(),
            limits: self.directory_limits(),
            retention: self.asked.snapshot_retention.clone(),
        };
        self.asked.snapshot.then(order)
    }

    /// What the FileSet's backups leave out because of their snapshots.
    pub(super) fn hidden(&self, fileset: &Arc<FileSet>) -> Arc<Snapshots> {
        let Some(order) = self.snapshot_order() else { return Arc::default() };
        self.while_wanted(|_, wanted| session::hidden(&order, fileset, &self.job(), wanted))
    }

    fn list_snapshots(&mut self) {
        let name = self.job().identity.name.clone();
        let places = self.daemon.own_files.snapshot_journal.places();
        let found = self.while_wanted(|helper, wanted| listed(helper, &name, &places, wanted));
        for Answer { name, volume, device, kind, created, status, error, .. } in found {
            let snapshot = NamedSnapshot { name, volume, device, kind };
            let error = error.unwrap_or_default();
            self.queue(&texts::listed_snapshot(&snapshot, created, status.unwrap_or(1), &error));
        }
        self.end_of_data();
    }

    /// Calls the helper until the job is canceled, or its Director has gone.
    fn while_wanted<T>(&self, work: impl FnOnce(&Helper, IsWanted<'_>) -> T) -> T {
        let (job, director) = (self.job(), self.channel.canceler());
        let aborts = job.aborts();
        let helper = Helper::new(self.daemon, &self.resource.allowed_script_directories);
        work(&helper, &|| job.aborts() == aborts && !director.peer_has_left())
    }
}

/// The snapshots of all file systems of this host.
fn listed(helper: &Helper, name: &[u8], places: &[Vec<u8>], wanted: IsWanted<'_>) -> Vec<Answer> {
    if !helper.exists() {
        return Vec::new();
    }
    let Ok(table) = scan::table(helper, name, places, wanted) else { return Vec::new() };
    let mut found = Vec::new();
    for (_, mount) in table.devices().filter(|(_, mount)| !mount.is_skipped()) {
        if !wanted() {
            break;
        }
        let Ok(about) = scan::support(helper, mount, name, wanted) else { continue };
        if let Ok(printed) = helper.run(Action::List, &about, wanted) {
            found.extend(output::list(&printed));
        }
    }
    found
}

fn about(named: NamedSnapshot) -> Snapshot {
    let NamedSnapshot { name, volume, device, kind } = named;
    Snapshot { name, volume, device, kind, ..Snapshot::default() }
}
