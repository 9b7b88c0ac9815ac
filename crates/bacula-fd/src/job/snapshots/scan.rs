//! Asks the helper program about the file systems of this host (reference 07 §12.2).

use std::io;

use fd_os::process::IsWanted;

use crate::job::snapshots::helper::{Action, Helper};
use crate::job::snapshots::mounts::{self, Mount, MountTable};
use crate::job::snapshots::output;
use crate::shared::snapshot_journal::Snapshot;

/// So many subvolumes are asked for those below them.
const MOST_ASKED: usize = 1000;
/// So many file systems are known at most.
const MOST_KNOWN: usize = 100_000;

/// The mounts of this host and the subvolumes that the helper names.
///
/// # Errors
/// The kernel's, for the table of mounts.
pub(crate) fn table(helper: &Helper, name: &[u8], wanted: IsWanted<'_>) -> io::Result<MountTable> {
    let mounts = mounts::read()?;
    let mut table = MountTable::new(mounts.clone());
    // From the end: what the helper names is asked next, its last one first, as by the stock
    // daemon.
    let mut asked_for = 0;
    let mut to_ask: Vec<Mount> = mounts.into_iter().rev().filter(|mount| !mount.is_skipped()).collect();
    while let Some(mount) = to_ask.pop().filter(|_| wanted()) {
        let Ok(printed) = helper.run(Action::Subvolumes, &about(&mount, name), wanted) else { continue };
        for found in output::subvolumes(&printed) {
            let device = if found.device.is_empty() { mount.device.clone() } else { found.device };
            let (device_number, point, fs_type) = (found.device_number, found.mount_point, found.fs_type);
            let root = table.root_at(&point);
            let subvolume = Mount { device_number, point, root, device, fs_type };
            let is_new = table.holds_less_than(MOST_KNOWN) && table.push(subvolume.clone());
            if is_new && asked_for < MOST_ASKED && !subvolume.is_skipped() {
                asked_for += 1;
                to_ask.push(subvolume);
            }
        }
    }
    Ok(table)
}

/// What is known about a file system before the helper was asked.
fn about(mount: &Mount, name: &[u8]) -> Snapshot {
    let Mount { point: mount_point, device, fs_type, .. } = mount.clone();
    Snapshot { name: name.to_vec(), device, fs_type, mount_point, ..Snapshot::default() }
}

/// Asks whether a file system can have a snapshot; what the helper says of it, if so.
pub(crate) fn support(helper: &Helper, mount: &Mount, name: &[u8], wanted: IsWanted<'_>) -> Option<Snapshot> {
    let known = about(mount, name);
    let answer = helper.ask(Action::Support, &known, wanted).ok()?;
    let is_supported = answer.status.is_some_and(|status| status >= 1);
    let device = if answer.device.is_empty() { known.device } else { answer.device };
    is_supported.then_some(Snapshot { device, kind: answer.kind, ..known })
}
