//! Opens an entry after the walk has passed it: for its data, its present attributes, its extended
//! attributes (reference 04 §8.2).
//!
//! In the meantime, any user with write permission for a directory of the tree may have replaced a
//! component of the path. So the way begins at a directory that the walk has held or can recognize
//! ([`crate::root::Root`]), and no symbolic link on it is followed: the walk has followed none
//! there.
//!
//! Opening never blocks: not on a FIFO without a writer, and not on a lease.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use fd_fileset::Flags;
use fd_records::{FileType, Stat};
use rustix::fs::{Access, CWD, Mode, OFlags, access, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::attributes::{Nanoseconds, file_type, stat_of};
use crate::entry::Entry;
use crate::names::split_path;

/// How an entry compares with what the walk has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// The same inode, with the same change time and size.
    Unchanged,
    /// The same inode, with another change time or size.
    Changed,
    /// Another inode.
    Replaced,
}

impl Entry {
    /// Opens the file at the entry's path for reading, without blocking and without a change to it;
    /// where its options say so, without one of its access time.
    /// It may differ from what the walk has found: see [`Self::refresh`].
    ///
    /// # Errors
    /// The kernel's: `ELOOP` for a symbolic link, `EAGAIN` for a file under lease, `ENOENT` if it
    /// is gone.
    pub fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Only the owner of a file may open it so; others open it normally.
        if self.options.has(Flags::NO_ATIME) {
            match self.open_with(flags | OFlags::NOATIME) {
                Err(Errno::PERM) => {}
                opened => return opened,
            }
        }
        self.open_with(flags)
    }

    /// Whether it is to be looked at again when it has been read, for changes meanwhile.
    pub fn is_checked_for_changes(&self) -> bool {
        self.options.has(Flags::CHECK_CHANGES) && self.file_type == FileType::Regular
    }

    fn open_with(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.root.as_ref().ok_or(Errno::NOENT)?.open(&self.read_path(), flags)
    }

    /// A handle (`O_PATH`) of the very inode that the walk has found, of any type.
    ///
    /// # Errors
    /// `ENOENT` if another inode has taken its place, else the kernel's.
    pub fn handle(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match &self.root {
            Some(root) => root.open(&self.read_path(), flags),
            None => openat(CWD, &*self.read_path(), flags, Mode::empty()),
        }?;
        let (stat, _) = stat_of(handle.as_fd())?;
        if self.is_inode(&stat) { Ok(handle) } else { Err(Errno::NOENT) }
    }

    /// Opens the file of the entry's [`Self::handle`].
    ///
    /// # Errors
    /// The kernel's. Where `/proc` is not mounted the name takes the handle's place: `ENXIO` where
    /// other users may change names, `ENOENT` if it leads elsewhere by now.
    pub fn reopen(&self, handle: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        match openat(CWD, path, flags - OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOENT) if access(c"/proc/self/fd", Access::EXISTS).is_err() => self.open_by_name(flags),
            opened => opened,
        }
    }

    fn open_by_name(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = self.read_path();
        let directory = self.root.as_ref().ok_or(Errno::NOENT)?.directory_of(&path)?;
        let (folder, _) = stat_of(directory.as_fd())?;
        // Some devices act as soon as they are opened, so what is opened must not be for others to
        // choose.
        if folder.mode & 0o022 != 0 || ![0, geteuid().as_raw()].contains(&folder.uid) {
            return Err(Errno::NXIO);
        }
        let opened = openat(&directory, split_path(&path).1, flags | OFlags::NOFOLLOW, Mode::empty())?;
        let (stat, _) = stat_of(opened.as_fd())?;
        if self.is_inode(&stat) { Ok(opened) } else { Err(Errno::NOENT) }
    }

    /// If a symbolic link has taken the entry's place, the entry becomes that link.
    ///
    /// # Errors
    /// The kernel's, for instance if something else is there now.
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

    /// Compares `file`, which was opened at the entry's path, with what the walk has found, and
    /// returns its attributes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn identify(&self, file: BorrowedFd<'_>) -> Result<(Identity, Stat), Errno> {
        stat_of(file).map(|(stat, nanoseconds)| (self.identity(&stat, nanoseconds), stat))
    }

    /// Gives the entry the attributes of `file`, which was opened at its path, and compares them
    /// with those of the walk. With another inode, the entry gets the type that the walk would find
    /// now; the contents of a directory stay out. Else it keeps the time of its last access: the
    /// job may have read the file since.
    ///
    /// # Errors
    /// The kernel's.
    pub fn refresh(&mut self, file: BorrowedFd<'_>) -> Result<Identity, Errno> {
        let (stat, nanoseconds) = stat_of(file)?;
        let identity = self.identity(&stat, nanoseconds);
        if identity != Identity::Unchanged {
            self.file_type = match stat.mode_type() {
                Stat::MODE_DIRECTORY => FileType::Directory,
                // A device or fifo that the walk has not found is not read.
                Stat::MODE_BLOCK | Stat::MODE_FIFO if identity == Identity::Replaced => FileType::Special,
                _ => file_type(&stat, self.top_level, &self.options),
            };
        }
        let accessed = (self.stat.atime, self.nanoseconds.atime);
        self.stat = stat;
        self.nanoseconds = nanoseconds;
        if identity != Identity::Replaced {
            (self.stat.atime, self.nanoseconds.atime) = accessed;
        }
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
