//! No snapshot at all: a link to the live files, for trying things out. Only for memory file
//! systems, or if the type says so.

use std::ffi::OsStr;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, UnlinkatFlags, access, symlinkat, unlinkat};

use crate::answer::Answer;
use crate::backend::actions::Backend;
use crate::backend::work::{Work, mounted, now};
use crate::failure::{Failure, Outcome};
use crate::place::{make_snapshot_directory, snapshot_directory};

/// The backend.
pub(super) struct Simulator;

impl Backend for Simulator {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn support(&self, work: &Work<'_>) -> Outcome<Answer> {
        let top = work.top()?;
        access(&top.sure_path(), AccessFlags::W_OK).map_err(|errno| cannot("can't write to", top.path(), errno))?;
        Ok(Answer::good().quoted("device", top.path()).bare("type", self.name()).end_line())
    }

    fn create(&self, work: &Work<'_>) -> Outcome<Answer> {
        let name = work.name()?;
        let top = work.top()?;
        let directory = make_snapshot_directory(&top, &work.settings.snapshot_dir, work.tools)?;
        let volume = directory.path().join(name);
        symlinkat(top.path(), directory.descriptor(), name)
            .map_err(|errno| cannot("can't make the link", &volume, errno))?;
        let answer = Answer::good().quoted("volume", volume).bare("createtdate", &now());
        Ok(answer.bare("type", self.name()).end_line())
    }

    fn mount(&self, work: &Work<'_>) -> Outcome<Answer> {
        Ok(mounted(work.volume()?, work.snapshot_directory()))
    }

    fn delete(&self, work: &Work<'_>) -> Outcome<Answer> {
        let volume = Path::new(work.volume()?);
        let refused = |why: &str| Failure::Refused { path: volume.to_owned(), why: why.to_owned() };
        let parts = (volume.parent(), volume.file_name());
        let (Some(parent), Some(name)) = parts else { return Err(refused("it is no path of a snapshot")) };
        if parent != work.snapshot_directory() || name != work.name()? {
            return Err(refused("it is not in the directory of snapshots"));
        }
        let directory = snapshot_directory(&work.top()?, &work.settings.snapshot_dir)?;
        let directory = directory.ok_or_else(|| refused("there is no such snapshot"))?;
        if std::fs::read_link(directory.sure_path().join(name)).ok().as_deref() != Some(&work.request.mount_point) {
            return Err(refused("it is no link of this program"));
        }
        let removed = unlinkat(directory.descriptor(), name, UnlinkatFlags::NoRemoveDir);
        removed.map_err(|errno| cannot("can't remove", volume, errno))?;
        Ok(Answer::good().end_line())
    }

    fn query(&self, work: &Work<'_>) -> Outcome<Answer> {
        work.volume().map(|_: &OsStr| Answer::good().end_line())
    }
}

fn cannot(doing: &'static str, path: &Path, errno: Errno) -> Failure {
    Failure::File { doing, path: path.to_owned(), error: errno.into() }
}
