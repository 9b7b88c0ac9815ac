//! Removes the snapshots that a daemon that died has left.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fd_messages::MessageType;
use fd_session::texts;

use crate::job::snapshots::helper::Helper;
use crate::job::snapshots::remove::{Removed, is_there, remove};
use crate::shared::daemon::Daemon;
use crate::shared::snapshot_journal::Snapshot;

/// Between two looks for a snapshot that may still be in the making; each pause is twice as long as
/// the one before. All together are longer than a call of the helper may take.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LAST_PAUSE: Duration = Duration::from_secs(320);

/// Reads the journal, and removes what is in it on a thread of its own: a helper may take long.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let mut left = daemon.snapshot_journal.load();
    // Those that are waited for come last.
    left.sort_by_key(|(_, snapshot)| snapshot.volume.is_empty());
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
    let mut outcome = remove(&helper, snapshot, &|| true);
    let mut pause = FIRST_PAUSE;
    // The helper of the daemon that died may still be making it.
    while outcome == Ok(Removed::NotThere) && pause <= LAST_PAUSE {
        thread::sleep(pause);
        pause *= 2;
        outcome = remove(&helper, snapshot, &|| true);
    }
    let (kind, text) = match &outcome {
        // Where nothing was removed, nothing is said. An operator may have been faster.
        Ok(Removed::NotThere) => return daemon.snapshot_journal.forget(number),
        Err(_) if !is_there(&helper, snapshot, &|| true) => return daemon.snapshot_journal.forget(number),
        Ok(Removed::Done) if snapshot.stays => return daemon.snapshot_journal.forget(number),
        Ok(Removed::Done) => (MessageType::Info, texts::left_snapshot_removed(name, mount_point)),
        Err(failed) => {
            let why = failed.error.trim_ascii_end();
            (MessageType::Error, texts::left_snapshot_stays(name, mount_point, volume, why))
        }
    };
    if outcome.is_ok() {
        daemon.snapshot_journal.forget(number);
    }
    daemon.supervisor.say(kind, "snapshots", text);
}
