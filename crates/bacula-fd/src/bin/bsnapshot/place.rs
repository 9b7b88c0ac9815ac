//! Directories that are reached without following a link, and the directory of the snapshots.
//!
//! The top directory of a file system may belong to any user: a database has its own subvolume, and
//! so may the home directory of a person. Such a user can exchange what is in it at any moment. So
//! a directory is opened once, checked, and then used through its descriptor; the programs get it
//! as `/proc/PID/fd/N`.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use crate::failure::{Failure, Outcome};
use crate::tools::{Tools, words};

const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Place {
    descriptor: OwnedFd,
    path: PathBuf,
    about: FileStat,
    guarded: bool,
}

impl Place {
    /// Opens an absolute path. No part of it may be a link.
    ///
    /// # Errors
    /// The path is relative or has `..`; a part of it is missing or no directory.
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let refused = |why: &str| Failure::Refused { path: path.to_owned(), why: why.to_owned() };
        let mut parts = path.components();
        if parts.next() != Some(Component::RootDir) {
            return Err(refused("it is not an absolute path"));
        }
        let root =
            nix::fcntl::open("/", DIRECTORY, Mode::empty()).map_err(|errno| failed("can't open", path, errno))?;
        let mut place = Self::checked(root, PathBuf::from("/"), true)?;
        for part in parts {
            let Component::Normal(name) = part else { return Err(refused("it has \"..\" in it")) };
            place = place.child(name)?.ok_or_else(|| failed("can't open", &place.path.join(name), Errno::ENOENT))?;
        }
        Ok(place)
    }

    /// A directory in it; none if there is none.
    ///
    /// # Errors
    /// What has the name is no directory.
    pub(crate) fn child(&self, name: &OsStr) -> Outcome<Option<Self>> {
        match openat(&self.descriptor, name, DIRECTORY, Mode::empty()) {
            Ok(descriptor) => Self::checked(descriptor, self.path.join(name), self.guarded).map(Some),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(failed("can't open", &self.path.join(name), errno)),
        }
    }

    fn checked(descriptor: OwnedFd, path: PathBuf, above: bool) -> Outcome<Self> {
        let about = fstat(descriptor.as_fd()).map_err(|errno| failed("can't look at", &path, errno))?;
        let guarded = above && is_ours(&about) && (about.st_mode & 0o022 == 0 || about.st_mode & 0o1000 != 0);
        Ok(Self { descriptor, path, about, guarded })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub(crate) const fn about(&self) -> &FileStat {
        &self.about
    }

    /// Whether no other user can exchange it, or a directory that leads to it.
    pub(crate) const fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// A path that leads here for every process of the host, whatever happens to the names.
    pub(crate) fn sure_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.descriptor.as_raw_fd()))
    }

    /// Makes a directory that only root may enter.
    ///
    /// # Errors
    /// It exists, or can't be made.
    pub(crate) fn make(&self, name: &OsStr, tools: &Tools<'_>) -> Outcome<Self> {
        let path = self.path.join(name);
        match mkdirat(&self.descriptor, name, Mode::S_IRWXU) {
            Ok(()) => {}
            Err(Errno::EACCES | Errno::EPERM) if tools.uses_sudo() => {
                let path = self.sure_path().join(name);
                tools.change("mkdir", words!["-m", "0700", "--", &path])?;
            }
            Err(errno) => return Err(failed("can't make the directory", &path, errno)),
        }
        self.child(name)?.ok_or_else(|| failed("can't open", &path, Errno::ENOENT))
    }

    /// Removes an empty directory; one that is gone is as good.
    ///
    /// # Errors
    /// It can't be removed.
    pub(crate) fn remove(&self, name: &OsStr, tools: &Tools<'_>) -> Outcome<()> {
        match unlinkat(&self.descriptor, name, UnlinkatFlags::RemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(Errno::EACCES | Errno::EPERM) if tools.uses_sudo() => {
                tools.change("rmdir", words!["--", &self.sure_path().join(name)])
            }
            Err(errno) => Err(failed("can't remove the directory", &self.path.join(name), errno)),
        }
    }

    /// The names in it, sorted.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn names(&self) -> Outcome<Vec<OsString>> {
        let failed = |error| Failure::File { doing: "can't read", path: self.path.clone(), error };
        let entries = std::fs::read_dir(self.sure_path()).map_err(failed)?;
        let mut names =
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        names.sort();
        Ok(names)
    }

    /// Refuses a directory in which another user could exchange what is in it.
    ///
    /// # Errors
    /// [`Failure::Refused`].
    pub(crate) fn must_be_ours(self) -> Outcome<Self> {
        let why = if !is_ours(&self.about) {
            format!("it belongs to user {}, and must belong to root", self.about.st_uid)
        } else if self.about.st_mode & 0o022 != 0 {
            "other users may write it; chmod go-w".to_owned()
        } else {
            return Ok(self);
        };
        Err(Failure::Refused { path: self.path, why })
    }
}

/// Whether another user can change what is in a directory, or exchange it, as far as it is there.
pub(crate) fn is_exchangeable(path: &Path) -> bool {
    let nearest = path.ancestors().find_map(|above| Place::open(above).ok());
    nearest.is_none_or(|place| !place.guarded || place.about.st_mode & 0o022 != 0)
}

/// The directory of the snapshots in the top directory of a file system, if it is there.
///
/// # Errors
/// It is a link or another user's.
pub(crate) fn snapshot_directory(top: &Place, name: &OsStr) -> Outcome<Option<Place>> {
    top.child(name).map_err(|failure| name_the_way_out(top, name, failure))?.map(Place::must_be_ours).transpose()
}

/// The same, made if it isn't there.
///
/// # Errors
/// The same, and it can't be made.
pub(crate) fn make_snapshot_directory(top: &Place, name: &OsStr, tools: &Tools<'_>) -> Outcome<Place> {
    if let Some(place) = snapshot_directory(top, name)? {
        return Ok(place);
    }
    match top.make(name, tools) {
        // Another job was faster.
        Err(failure) => snapshot_directory(top, name)?.ok_or(failure),
        made => made?.must_be_ours(),
    }
}

/// What else has the name of the directory can only be moved away by the administrator.
fn name_the_way_out(top: &Place, name: &OsStr, failure: Failure) -> Failure {
    match failure {
        Failure::File { .. } => Failure::Refused {
            path: top.path.join(name),
            why: "it is no directory, or a link; remove it, or name another one as snapshot_dir".to_owned(),
        },
        other => other,
    }
}

fn is_ours(about: &FileStat) -> bool {
    about.st_uid == 0 || about.st_uid == geteuid().as_raw()
}

fn failed(doing: &'static str, path: &Path, errno: Errno) -> Failure {
    Failure::File { doing, path: path.to_owned(), error: errno.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::trace::Trace;

    #[test]
    fn two_jobs_make_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let top = Place::open(&folder.path().canonicalize().unwrap()).unwrap();
        let make = |start: &std::sync::Barrier| {
            let (settings, trace) = (Settings::default(), Trace::default());
            start.wait();
            make_snapshot_directory(&top, OsStr::new("x"), &Tools::new(&settings, &trace)).map(|_| ())
        };
        for _ in 0..2000 {
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let other = scope.spawn(|| make(&start));
                make(&start).unwrap();
                other.join().unwrap().unwrap();
            });
            std::fs::remove_dir(folder.path().join("x")).unwrap();
        }
    }
}
