//! Where the way to an entry begins, and the way itself. No symbolic link on it is followed: the
//! walk has followed none there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use crate::names::split_path;

/// So many roots of a walk may hold their directory open. Others open it by its path again.
const MOST_HELD: usize = 64;

/// Where the way to an entry begins: the directory of a name of the FileSet, or for the entry of
/// the name itself the directory above.
#[derive(Debug)]
pub(crate) struct Root {
    /// `None` if enough roots are held, or this one can't be, for example for want of descriptors.
    handle: Option<OwnedFd>,
    /// Device and inode, to recognize the directory when it is opened again.
    identity: (u64, u64),
    /// Length of the directory's path, with its slash, in the paths at which its entries are
    /// read.
    prefix: usize,
    /// The kernel can refuse links on the way (`openat2`, Linux 5.6).
    refuses_links: bool,
    /// Counts the roots of a walk that hold their directory.
    _counted: Option<Arc<()>>,
}

impl Root {
    /// For entries below an open directory, whose paths continue at `prefix`.
    pub(crate) fn new(directory: BorrowedFd<'_>, prefix: usize, counter: &Arc<()>) -> Result<Self, Errno> {
        let found = fstat(directory)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat2(directory, c".", flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let refuses_links = opened.is_ok();
        let may_be_held = Arc::strong_count(counter) <= MOST_HELD;
        let hold = || opened.or_else(|_| openat(directory, c".", flags, Mode::empty())).ok();
        let handle = may_be_held.then(hold).flatten();
        Ok(Self {
            _counted: handle.as_ref().map(|_| Arc::clone(counter)),
            handle,
            identity: (found.st_dev, found.st_ino),
            prefix,
            refuses_links,
        })
    }

    /// For the entry of a name of the FileSet. The operator's links on the way to its directory are
    /// followed. For want of a descriptor it is opened when the entry is.
    pub(crate) fn of_parent(path: &[u8], counter: &Arc<()>) -> Result<Self, Errno> {
        let prefix = split_path(path).0.len();
        if let Ok(directory) = find(path, prefix) {
            return Self::new(directory.as_fd(), prefix, counter);
        }
        let found = rustix::fs::stat(directory_part(path, prefix))?;
        let identity = (found.st_dev, found.st_ino);
        Ok(Self { handle: None, identity, prefix, refuses_links: false, _counted: None })
    }

    /// Whether the directory of this name of the FileSet is this one now.
    pub(crate) fn is_parent(&self, path: &[u8]) -> bool {
        self.prefix == split_path(path).0.len()
            && rustix::fs::stat(directory_part(path, self.prefix))
                .is_ok_and(|found| (found.st_dev, found.st_ino) == self.identity)
    }

    /// A handle of the directory of the file at `path`, the whole path at which an entry is read.
    pub(crate) fn directory_of(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let itself = [split_path(path).0, b"."].concat();
        self.open(&itself, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)
    }

    /// Opens the file at `path`, the whole path at which an entry is read.
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

/// A handle of the directory at this absolute path, if no part of it is a link.
pub(crate) fn open_without_links(path: &[u8]) -> Result<OwnedFd, Errno> {
    let begin = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    directory_below(b"/", path.get(begin..).unwrap_or_default())
}

/// A handle of the directory at the relative path `below`, if no part of that is a link. Those in
/// the path of `directory` are followed. An empty `below` is `directory` itself.
pub(crate) fn directory_below(directory: &[u8], below: &[u8]) -> Result<OwnedFd, Errno> {
    let directory = find(directory, directory.len())?;
    if below.is_empty() {
        return Ok(directory);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(&directory, below, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // The kernel does not have it, or a filter refuses it.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(directory.as_fd(), below, flags),
        opened => opened,
    }
}

/// The equivalent of `openat2` for kernels without it.
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

/// The path of this length as a directory.
fn directory_part(path: &[u8], prefix: usize) -> &[u8] {
    path.get(..prefix).filter(|part| !part.is_empty()).unwrap_or(b".")
}

fn find(path: &[u8], prefix: usize) -> Result<OwnedFd, Errno> {
    openat(CWD, directory_part(path, prefix), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests;
