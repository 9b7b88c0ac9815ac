//! Asks the helper program about the file systems of this host (reference 07 §12.2).

use std::io;

use fd_fileset::lies_in;
use fd_os::process::IsWanted;

use crate::job::snapshots::helper::{Action, Failed, Helper};
use crate::job::snapshots::mounts::{self, Mount, MountTable};
use crate::job::snapshots::output;
use crate::shared::snapshot_journal::Snapshot;
use crate::texts;

/// So many subvolumes are asked for those below them.
const MOST_ASKED: usize = 1000;
/// So many file systems are known at most.
const MOST_KNOWN: usize = 100_000;

/// The mounts of this host and the subvolumes that the helper names. `places` are where the
/// daemon's snapshots are mounted.
///
/// # Errors
/// The kernel's, for the table of mounts.
pub(crate) fn table(helper: &Helper, name: &[u8], places: &[Vec<u8>], wanted: IsWanted<'_>) -> io::Result<MountTable> {
    let mut ask = |mount: &Mount| helper.run(Action::Subvolumes, &about(mount, name), wanted);
    Ok(with_subvolumes(without_snapshots(mounts::read()?, places), &mut ask, wanted))
}

/// Without the snapshots of other jobs, and those of ZFS, which the kernel mounts for a while when
/// anyone enters them: they would be file systems to walk.
fn without_snapshots(mut mounts: Vec<Mount>, places: &[Vec<u8>]) -> Vec<Mount> {
    mounts.retain(|mount| {
        let is_of_zfs = mount.fs_type == b"zfs" && mount.device.contains(&b'@');
        !is_of_zfs && !places.iter().any(|place| lies_in(&mount.point, place))
    });
    mounts
}

/// These mounts and the subvolumes that are named when each is asked for them.
fn with_subvolumes(
    mounts: Vec<Mount>,
    ask: &mut dyn FnMut(&Mount) -> Result<Vec<u8>, Failed>,
    wanted: IsWanted<'_>,
) -> MountTable {
    let mut table = MountTable::new(mounts.clone());
    // From the end: what the helper names is asked next, its last one first, as by the stock
    // daemon.
    let mut asked_for = 0;
    let mut to_ask: Vec<Mount> = mounts.into_iter().rev().filter(|mount| !mount.is_skipped()).collect();
    while let Some(mount) = to_ask.pop().filter(|_| wanted()) {
        let printed = match ask(&mount) {
            Ok(printed) => printed,
            Err(failed) => {
                if mount.has_subvolumes() {
                    table.note_incomplete(mount.device_number, &failed.error);
                }
                continue;
            }
        };
        for found in output::subvolumes(&printed) {
            let device = if found.device.is_empty() { mount.device.clone() } else { found.device };
            let (device_number, point, fs_type) = (found.device_number, found.mount_point, found.fs_type);
            let root = table.root_at(&point);
            let subvolume = Mount { device_number, point, root, device, fs_type };
            if !table.holds_less_than(MOST_KNOWN) {
                table.note_incomplete(mount.device_number, texts::TOO_MANY_SUBVOLUMES);
            } else if table.push(subvolume.clone()) && !subvolume.is_skipped() {
                if asked_for < MOST_ASKED {
                    asked_for += 1;
                    to_ask.push(subvolume);
                } else {
                    table.note_incomplete(subvolume.device_number, texts::TOO_MANY_SUBVOLUMES);
                }
            }
        }
    }
    table
}

/// What is known about a file system before the helper was asked.
fn about(mount: &Mount, name: &[u8]) -> Snapshot {
    let Mount { point: mount_point, device, fs_type, .. } = mount.clone();
    Snapshot { name: name.to_vec(), device, fs_type, mount_point, ..Snapshot::default() }
}

/// Asks whether a file system can have a snapshot; what the helper says of it, if so. It may name
/// the directory of its snapshots, too, in either case.
///
/// # Errors
/// It can have none, or the helper has not said that it can.
pub(crate) fn support(helper: &Helper, mount: &Mount, name: &[u8], wanted: IsWanted<'_>) -> Result<Snapshot, Failed> {
    let known = about(mount, name);
    let answer = helper.ask(Action::Support, &known, wanted)?;
    if answer.status.is_none_or(|status| status < 1) {
        return Err(Failed { snap_directory: answer.snap_directory, ..Failed::default() });
    }
    let device = if answer.device.is_empty() { known.device } else { answer.device };
    Ok(Snapshot { device, kind: answer.kind, snap_directory: answer.snap_directory, ..known })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Number, path and type.
    fn mount(device_number: u64, point: &str, fs_type: &str) -> Mount {
        let text = |text: &str| text.as_bytes().to_vec();
        Mount { device_number, point: text(point), root: text("/"), fs_type: text(fs_type), ..Mount::default() }
    }

    fn named(device_number: u64, point: &str) -> String {
        format!("dev={device_number} mountpoint={point} fstype=btrfs\n")
    }

    #[test]
    fn mounted_snapshots_are_no_file_systems_of_the_host() {
        let zfs = |device: &str, point| Mount { device: device.as_bytes().to_vec(), ..mount(3, point, "zfs") };
        let mounts = vec![
            mount(1, "/", "ext4"),
            mount(2, "/srv", "xfs"),
            mount(4, "/srv/.snapshots/other", "xfs"),
            mount(5, "/run/bsnapshot/other.253-3", "ext4"),
            mount(6, "/srv/.snapshots2", "xfs"),
            zfs("tank/x", "/tank"),
            zfs("tank/x@other", "/tank/.zfs/snapshot/other"),
        ];
        let places = ["/srv/.snapshots/other", "/run/bsnapshot/other.253-3"].map(|place| place.as_bytes().to_vec());
        let left = without_snapshots(mounts, &places);
        let points: Vec<_> = left.iter().map(|mount| std::str::from_utf8(&mount.point).unwrap()).collect();
        assert_eq!(points, ["/", "/srv", "/srv/.snapshots2", "/tank"]);
    }

    #[test]
    fn a_file_system_whose_subvolumes_can_not_be_named_is_noted() {
        let mounts = vec![mount(1, "/", "ext4"), mount(2, "/pool", "btrfs"), mount(3, "/other", "btrfs")];
        let failed = || Err(Failed { error: b"why".to_vec(), ..Failed::default() });
        let mut ask = |mount: &Mount| match mount.point.as_slice() {
            b"/pool" => Ok(named(4, "/pool/sub").into_bytes()),
            b"/other" => Ok(Vec::new()),
            // Another helper may not know the action, and ext4 has no subvolumes.
            _ => failed(),
        };
        let table = with_subvolumes(mounts, &mut ask, &|| true);
        assert_eq!(table.incomplete(4), Some(&b"why"[..]));
        assert_eq!([1, 2, 3].map(|number| table.incomplete(number)), [None; 3]);
    }

    #[test]
    fn subvolumes_that_are_too_many_to_be_asked_are_noted() {
        let many = u64::try_from(MOST_ASKED).unwrap() + 2;
        let mut asked = BTreeSet::new();
        let mut ask = |mount: &Mount| {
            asked.insert(mount.device_number);
            let below = |number: u64| named(number, &format!("/pool/{number}"));
            Ok(if mount.point == b"/pool" {
                (2..2 + many).map(below).collect::<String>().into_bytes()
            } else {
                Vec::new()
            })
        };
        let table = with_subvolumes(vec![mount(1, "/pool", "btrfs")], &mut ask, &|| true);
        let noted: BTreeSet<u64> = (1..2 + many).filter(|number| table.incomplete(*number).is_some()).collect();
        assert_eq!(noted.len(), 2);
        assert!(asked.is_disjoint(&noted) && asked.len() == MOST_ASKED + 1);
    }
}
