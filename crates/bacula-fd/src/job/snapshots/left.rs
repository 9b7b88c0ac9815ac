//! Removes the snapshots that a daemon that died has left.

use std::sync::Arc;
use std::thread;

use fd_messages::MessageType;
use fd_session::texts;

use crate::job::snapshots::helper::Helper;
use crate::job::snapshots::remove::{is_there, remove};
use crate::shared::daemon::Daemon;
use crate::shared::snapshot_journal::Snapshot;

/// Reads the journal, and removes what is in it on a thread of its own: a helper may take long.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let left = daemon.snapshot_journal.load();
    if left.is_empty() {
        return;
    }
    let daemon = Arc::clone(daemon);
    let work = move || {
        for (number, snapshot) in &left {
            clear(&daemon, *number, snapshot);
        }
    };
    if let Err(error) = thread::Builder::new().name("left snapshots".to_owned()).spawn(work) {
        tracing::warn!(%error, "no thread to remove snapshots that were left");
    }
}

fn clear(daemon: &Daemon, number: u64, snapshot: &Snapshot) {
    // No Director orders this, so no Director's directories count.
    let helper = Helper::new(daemon, &[]);
    let Snapshot { name, mount_point, volume, .. } = snapshot;
    match remove(&helper, snapshot, &|| true) {
        Ok(()) => {
            daemon.snapshot_journal.forget(number);
            let text = texts::left_snapshot_removed(name, mount_point);
            daemon.supervisor.say(MessageType::Info, "snapshots", text);
        }
        // An operator may have been faster.
        Err(_) if !is_there(&helper, snapshot, &|| true) => daemon.snapshot_journal.forget(number),
        Err(failed) => {
            let text = texts::left_snapshot_stays(name, mount_point, volume, failed.error.trim_ascii_end());
            daemon.supervisor.say(MessageType::Error, "snapshots", text);
        }
    }
}
