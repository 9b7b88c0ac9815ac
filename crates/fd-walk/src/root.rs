//! Where the way to an entry begins, and the way from there. Every symbolic link on it is refused: the walk has followed
//! none there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

/// Roots that hold their directory open, for entries that are not saved yet. Further ones find it again by its path.
const MOST_HELD: usize = 64;

/// Where the way to an entry begins: the directory that a name of the FileSet stands for, and for the entry of the name
/// itself the directory that it stands in.
#[derive(Debug)]
pub(crate) struct Root {
    /// `None` if there are too many.
    handle: Option<OwnedFd>,
    /// Device and inode: a directory that is found again must be the same one.
    identity: (u64, u64),
    /// Where the path below it begins in the paths of its entries.
    prefix: usize,
    /// The kernel refuses links on the way by itself (`openat2`, Linux 5.6).
    refuses_links: bool,
    /// Counts the roots of a walk that hold their directory.
    _counted: Option<Arc<()>>,
}

impl Root {
    /// For entries below an open directory, whose paths go on at `prefix`.
    pub(crate) fn new(directory: BorrowedFd<'_>, prefix: usize, counter: &Arc<()>) -> Result<Self, Errno> {
        let found = fstat(directory)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat2(directory, c".", flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let refuses_links = opened.is_ok();
        let is_held = Arc::strong_count(counter) <= MOST_HELD;
        let hold = || opened.or_else(|_| openat(directory, c".", flags, Mode::empty()));
        Ok(Self {
            handle: is_held.then(hold).transpose()?,
            identity: (found.st_dev, found.st_ino),
            prefix,
            refuses_links,
            _counted: is_held.then(|| Arc::clone(counter)),
        })
    }

    /// For the entry of a name of the FileSet, whose directory may be behind links that its operator has made.
    pub(crate) fn of_parent(path: &[u8], counter: &Arc<()>) -> Result<Self, Errno> {
        let prefix = parent_len(path);
        Self::new(find(path, prefix)?.as_fd(), prefix, counter)
    }

    /// Whether this is the directory that this name of the FileSet stands in at this moment.
    pub(crate) fn is_parent(&self, path: &[u8]) -> bool {
        self.prefix == parent_len(path)
            && rustix::fs::stat(directory_part(path, self.prefix))
                .is_ok_and(|found| (found.st_dev, found.st_ino) == self.identity)
    }

    /// Opens what stands at `path`, the whole path of an entry.
    pub(crate) fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let found;
        let directory = if let Some(handle) = &self.handle {
            handle.as_fd()
        } else {
            found = find(path, self.prefix)?;
            let stat = fstat(&found)?;
            if (stat.st_dev, stat.st_ino) != self.identity {
                return Err(Errno::NOENT);
            }
            found.as_fd()
        };
        let below = path.get(self.prefix..).unwrap_or_default();
        if self.refuses_links {
            return openat2(directory, below, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        }
        open_step_by_step(directory, below, flags)
    }
}

/// What `openat2` does, for kernels that have none.
fn open_step_by_step(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    let last = parts.next_back().ok_or(Errno::NOENT)?;
    let mut reached: Option<OwnedFd> = None;
    for part in parts {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        reached = Some(openat(reached.as_ref().map_or(directory, AsFd::as_fd), part, flags, Mode::empty())?);
    }
    openat(reached.as_ref().map_or(directory, AsFd::as_fd), last, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Length of the path up to its last slash and with it.
fn parent_len(path: &[u8]) -> usize {
    path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash.saturating_add(1))
}

/// The directory that this much of a path stands for.
fn directory_part(path: &[u8], prefix: usize) -> &[u8] {
    path.get(..prefix).filter(|part| !part.is_empty()).unwrap_or(b".")
}

fn find(path: &[u8], prefix: usize) -> Result<OwnedFd, Errno> {
    openat(CWD, directory_part(path, prefix), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests;
