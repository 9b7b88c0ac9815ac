//! Where a snapshot is mounted if its file system is another user's.
//!
//! The daemon opens the snapshot by its path. If another user could exchange a directory on the
//! way, the daemon would read, as root, what that user chooses. So such a snapshot is mounted in a
//! directory of ours.

use std::ffi::OsString;

use nix::sys::stat::{major, minor};

use crate::backend::work::Work;
use crate::failure::{Failure, Outcome};
use crate::mounts::Mounts;
use crate::place::{Place, make_snapshot_directory, snapshot_directory};
use crate::tools::words;

/// The directory, and the name of the one file system of one job in it.
pub(super) struct Private {
    /// All of them.
    pub(super) directory: Place,
    /// This one.
    pub(super) name: OsString,
}

impl Private {
    /// Makes what is missing.
    pub(super) fn make(work: &Work<'_>, top: &Place) -> Outcome<Self> {
        let (parent, last) = parent(work)?;
        let directory = make_snapshot_directory(&parent, &last, work.tools)?;
        if !directory.is_guarded() {
            let why = "other users can exchange it; name another one as private_dir".to_owned();
            return Err(Failure::Refused { path: directory.path().to_owned(), why });
        }
        Ok(Self { directory, name: name(work, top)? })
    }

    /// What there is, if anything.
    pub(super) fn find(work: &Work<'_>, top: &Place) -> Outcome<Option<Self>> {
        let (parent, last) = parent(work)?;
        let directory = snapshot_directory(&parent, &last)?;
        directory.map(|directory| Ok(Self { directory, name: name(work, top)? })).transpose()
    }

    /// Unmounts it, if it is mounted, and removes its directory.
    pub(super) fn release(&self, work: &Work<'_>) -> Outcome<()> {
        release(work, &self.directory, &self.name)
    }
}

/// Unmounts what is mounted at this name in a directory of ours, and removes the name.
pub(super) fn release(work: &Work<'_>, directory: &Place, name: &std::ffi::OsStr) -> Outcome<()> {
    let path = directory.path().join(name);
    if Mounts::read(work.tools)?.at(&path).is_some() {
        work.tools.change_patiently("umount", words!["--", &path])?;
    }
    directory.remove(name, work.tools)
}

fn parent(work: &Work<'_>) -> Outcome<(Place, OsString)> {
    let path = &work.settings.private_dir;
    let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else {
        return Err(Failure::Refused { path: path.clone(), why: "it is no directory of its own".to_owned() });
    };
    Ok((Place::open(parent)?, last.to_owned()))
}

/// The job's name, and the device, because a job has a snapshot of each.
fn name(work: &Work<'_>, top: &Place) -> Outcome<OsString> {
    let device = top.about().st_dev;
    let mut name = work.name()?.to_owned();
    name.push(format!(".{}-{}", major(device), minor(device)));
    Ok(name)
}
