//! Removes a snapshot of which perhaps not everything is known.

use fd_os::process::IsWanted;

use crate::job::snapshots::helper::{Action, Failed, Helper};
use crate::job::snapshots::output::{self, Answer};
use crate::shared::snapshot_journal::Snapshot;

/// What became of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removed {
    /// It is removed, or stays because it is to.
    Done,
    /// The helper lists none for this job.
    NotThere,
}

/// Unmounts it, and removes it unless it is to stay.
///
/// # Errors
/// The helper's.
pub(super) fn remove(helper: &Helper, snapshot: &Snapshot, wanted: IsWanted<'_>) -> Result<Removed, Failed> {
    if snapshot.is_mounted
        && let Err(failed) = helper.ask(Action::Unmount, snapshot, wanted)
    {
        if snapshot.stays {
            return Err(failed);
        }
        // Its removal fails, and says why.
        tracing::debug!(error = %failed.error.escape_ascii(), "a snapshot is not unmounted");
    }
    if snapshot.stays {
        return Ok(Removed::Done);
    }
    let known = if snapshot.volume.is_empty() {
        match listed(helper, snapshot, wanted)? {
            Some(found) => &Snapshot { volume: found.volume, ..snapshot.clone() },
            None => return Ok(Removed::NotThere),
        }
    } else {
        snapshot
    };
    helper.ask(Action::Delete, known, wanted).map(|_| Removed::Done)
}

/// Whether the helper still lists it; `true` if the helper can't say.
pub(super) fn is_there(helper: &Helper, snapshot: &Snapshot, wanted: IsWanted<'_>) -> bool {
    !matches!(listed(helper, snapshot, wanted), Ok(None))
}

/// The helper's entry for a snapshot.
fn listed(helper: &Helper, snapshot: &Snapshot, wanted: IsWanted<'_>) -> Result<Option<Answer>, Failed> {
    let printed = helper.run(Action::List, &Snapshot { volume: Vec::new(), ..snapshot.clone() }, wanted)?;
    let is_it = |entry: &Answer| {
        let same = |one: &[u8], other: &[u8]| !one.is_empty() && one == other;
        same(&entry.volume, &snapshot.volume) || snapshot.volume.is_empty() && same(&entry.name, &snapshot.name)
    };
    Ok(output::list(&printed).into_iter().find(is_it))
}
