//! Reaching an entry again after the walk has gone on: for its data, its attributes of the moment, its extended
//! attributes (reference 04 §8.2).
//!
//! Between the walk and this moment any user who may write to a directory of the tree may have put something else in a
//! place of the path. So the way goes from a directory that the walk has held or can tell again ([`crate::root::Root`]), and on it
//! every symbolic link is refused: the walk has followed none there.
//!
//! Opening never waits: not for a writer of a FIFO, and not for the holder of a lease.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use fd_records::{FileType, Stat};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::attributes::{Nanoseconds, file_type, stat_of};
use crate::entry::Entry;

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

/// Opens what a handle stands for.
///
/// # Errors
/// What the kernel says; `ENOENT` where `/proc` is not there.
pub fn reopen(handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    openat(CWD, path, flags - OFlags::NOFOLLOW, Mode::empty())
}
