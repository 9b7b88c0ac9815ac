//! Reaching an entry again after the walk has gone on: for its data, its attributes of the moment, its extended
//! attributes (reference 04 §8.2).
//!
//! Between the walk and this moment any user who may write to a directory of the tree may have put something else in a
//! place of the path. So the way goes from a directory that the walk has held or can tell again ([`Root`]), and on it
//! every symbolic link is refused: the walk has followed none there.
//!
//! Opening never waits: not for a writer of a FIFO, and not for the holder of a lease.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use fd_records::{FileType, Stat};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use crate::entry::{Entry, Nanoseconds, convert, file_type};

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

    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
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

/// Whether an entry is still what the walk has seen there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// The same inode, with the same change time and size.
    Unchanged,
    /// The same inode.
    Changed,
    /// Another one.
    Replaced,
}

impl Entry {
    /// Opens what stands in the entry's place for reading, without waiting and without a change to it. It need not be
    /// what the walk has seen: see [`Self::refresh`].
    ///
    /// # Errors
    /// What the kernel says: `ELOOP` for a symbolic link, `EAGAIN` for a file under lease, `ENOENT` if it is gone.
    pub fn open(&self, no_atime: bool) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Only the owner of a file may leave its access time alone; everybody else opens it without that.
        if no_atime {
            match self.open_with(flags | OFlags::NOATIME) {
                Err(Errno::PERM) => {}
                opened => return opened,
            }
        }
        self.open_with(flags)
    }

    fn open_with(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.root.as_ref().ok_or(Errno::NOENT)?.open(&self.path, flags)
    }

    /// A handle of the very inode that the walk has seen, of whatever type, which was not opened for that.
    ///
    /// # Errors
    /// `ENOENT` if another one has taken its place; what the kernel says otherwise.
    pub fn handle(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match &self.root {
            Some(root) => root.open(&self.path, flags),
            None => openat(CWD, self.path.as_slice(), flags, Mode::empty()),
        }?;
        let (stat, _) = stat_of(handle.as_fd())?;
        if self.is_inode(&stat) { Ok(handle) } else { Err(Errno::NOENT) }
    }

    /// If a symbolic link has taken the entry's place, the entry becomes that link.
    ///
    /// # Errors
    /// What the kernel says, as where there is something else again.
    pub fn become_link(&mut self) -> Result<(), Errno> {
        let link = self.open_with(OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let (stat, nanoseconds) = stat_of(link.as_fd())?;
        let target = rustix::fs::readlinkat(&link, c"", Vec::new())?;
        self.stat = stat;
        self.nanoseconds = nanoseconds;
        self.file_type = FileType::Symlink;
        self.hard_link = None;
        self.link = target.into_bytes();
        Ok(())
    }

    /// What `file`, which was opened in the entry's place, is to what the walk has seen there, and its attributes.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn identify(&self, file: BorrowedFd<'_>) -> Result<(Identity, Stat), Errno> {
        stat_of(file).map(|(stat, nanoseconds)| (self.identity(&stat, nanoseconds), stat))
    }

    /// Gives the entry the attributes of `file`, which was opened in its place, and says how they compare with those of
    /// the walk. Of another inode the type is that of the new one, as if the walk had come later; a directory's contents
    /// stay out.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn refresh(&mut self, file: BorrowedFd<'_>) -> Result<Identity, Errno> {
        let (stat, nanoseconds) = stat_of(file)?;
        let identity = self.identity(&stat, nanoseconds);
        if identity != Identity::Unchanged {
            self.file_type = match stat.mode_type() {
                Stat::MODE_DIRECTORY => FileType::Directory,
                // What the walk did not find there is not read.
                Stat::MODE_BLOCK | Stat::MODE_FIFO if identity == Identity::Replaced => FileType::Special,
                _ => file_type(&stat, self.top_level, &self.options),
            };
        }
        self.stat = stat;
        self.nanoseconds = nanoseconds;
        Ok(identity)
    }

    fn identity(&self, stat: &Stat, nanoseconds: Nanoseconds) -> Identity {
        let change = (stat.ctime, nanoseconds.ctime, stat.size);
        if !self.is_inode(stat) {
            Identity::Replaced
        } else if change == (self.stat.ctime, self.nanoseconds.ctime, self.stat.size) {
            Identity::Unchanged
        } else {
            Identity::Changed
        }
    }

    fn is_inode(&self, stat: &Stat) -> bool {
        (stat.dev, stat.ino, stat.mode_type()) == (self.stat.dev, self.stat.ino, self.stat.mode_type())
    }
}

/// The attributes of something open.
fn stat_of(file: BorrowedFd<'_>) -> Result<(Stat, Nanoseconds), Errno> {
    fstat(file).map(|found| convert(&found))
}

/// Opens what a handle stands for.
///
/// # Errors
/// What the kernel says; `ENOENT` where `/proc` is not there.
pub fn reopen(handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    openat(CWD, path, flags - OFlags::NOFOLLOW, Mode::empty())
}

#[cfg(test)]
mod tests;
