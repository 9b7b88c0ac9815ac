//! Removes the snapshots that a daemon that died has left.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fd_messages::MessageType;

use crate::job::snapshots::helper::{Failed, Helper};
use crate::job::snapshots::remove::{Removed, is_there, remove};
use crate::shared::daemon::Daemon;
use crate::shared::snapshot_journal::Snapshot;
use crate::texts;

/// Between two looks for a snapshot that may still be in the making; each pause is twice as long as
/// the one before. All together are longer than a call of the helper may take.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LAST_PAUSE: Duration = Duration::from_secs(320);

/// Reads the journal, and removes what is in it on a thread of its own: a helper may take long.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let left = daemon.own_files.snapshot_journal.load();
    if left.is_empty() {
        return;
    }
    let daemon = Arc::clone(daemon);
    let work = move || clear_all(&daemon, left);
    if let Err(error) = thread::Builder::new().name("left snapshots".to_owned()).spawn(work) {
        tracing::warn!(%error, "no thread to remove snapshots that were left");
    }
}

/// Looks for all of them, and again for those that are not there: the helper of the daemon that
/// died may still be making them.
fn clear_all(daemon: &Daemon, mut left: Vec<(u64, Snapshot)>) {
    // No Director orders this, so no Director's directories count.
    let helper = Helper::new(daemon, &[]);
    let mut pause = FIRST_PAUSE;
    loop {
        left.retain(|(number, snapshot)| {
            let outcome = remove(&helper, snapshot, &|| true);
            let is_waited_for = outcome == Ok(Removed::NotThere) && pause <= LAST_PAUSE;
            if !is_waited_for {
                settle(daemon, &helper, *number, snapshot, &outcome);
            }
            is_waited_for
        });
        if left.is_empty() {
            return;
        }
        thread::sleep(pause);
        pause *= 2;
    }
}

/// Notes what became of one, and says so.
fn settle(daemon: &Daemon, helper: &Helper, number: u64, snapshot: &Snapshot, outcome: &Result<Removed, Failed>) {
    let Snapshot { name, mount_point, volume, .. } = snapshot;
    let (kind, text) = match outcome {
        // Where nothing was removed, nothing is said. An operator may have been faster.
        Ok(Removed::NotThere) => return daemon.own_files.snapshot_journal.forget(number),
        // Who deletes it unmounts it.
        _ if snapshot.stays => return daemon.own_files.snapshot_journal.forget(number),
        Err(_) if !is_there(helper, snapshot, &|| true) => return daemon.own_files.snapshot_journal.forget(number),
        Ok(Removed::Done) => (MessageType::Info, texts::left_snapshot_removed(name, mount_point)),
        Err(failed) => {
            let why = failed.error.trim_ascii_end();
            (MessageType::Error, texts::left_snapshot_stays(name, mount_point, volume, why))
        }
    };
    if outcome.is_ok() {
        daemon.own_files.snapshot_journal.forget(number);
    }
    daemon.supervisor.say(kind, "snapshots", text);
}
