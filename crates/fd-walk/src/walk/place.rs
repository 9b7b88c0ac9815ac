//! The position of an entry in the tree, and the system calls about it.

use std::borrow::Cow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use fd_fileset::{EffectiveOptions, Include};
use fd_records::{FileType, Stat};
use rustix::fs::{CWD, IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::ahead::{Calls, FolderId};
use crate::attributes::Found;
use crate::directory::{self, Leaf};
use crate::entry::Entry;
use crate::held::Held;
use crate::names::without_slashes;
use crate::root::Root;
use crate::snapshots::ReadAt;

/// The number of the automounter's file system.
const AUTOFS: rustix::fs::FsWord = 0x187;

/// Longest path that the kernel takes, in bytes, without the NUL.
pub(super) const LONGEST_PATH: usize = 4095;

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Place<'w, 'p> {
    pub(super) include: &'w Include,
    /// The name of the FileSet that it is, or is below.
    pub(super) top: &'p [u8],
    /// Whether that is a file system below a name, which is walked like one.
    pub(super) is_sub_mount: bool,
    pub(super) path: &'p [u8],
    /// Start of the last component of the path.
    pub(super) name_at: usize,
    /// The directory that holds it, and its device; `None` for a name of the FileSet itself.
    pub(super) parent: Option<(BorrowedFd<'p>, u64)>,
    /// The root of the FileSet's name that it is below, if that is a directory.
    pub(super) root: Option<&'p Arc<Root>>,
    /// Where the FileSet's name is read.
    pub(super) read_at: &'p ReadAt,
    /// Of a name of the FileSet: its directory, where the Director has limits.
    pub(super) held: Option<&'p Result<Held, Errno>>,
    /// The directory that holds it, if that is read ahead.
    pub(super) lent: Option<FolderId>,
    /// What its directory says of it.
    pub(super) leaf: Leaf,
}

/// The path of a file of this name in a directory.
pub(super) fn marker_path(directory: &[u8], name: &[u8]) -> Vec<u8> {
    [without_slashes(directory), b"/", name].concat()
}

impl<'p> Place<'_, 'p> {
    pub(super) const fn is_top(&self) -> bool {
        self.parent.is_none()
    }

    /// Descriptor and path for a system call: relative to the directory, which is fast and can't be
    /// redirected.
    pub(super) fn target(&self) -> (BorrowedFd<'p>, Cow<'p, [u8]>) {
        let held = self.held.and_then(|held| held.as_ref().ok());
        match (self.parent, held.map(Held::target)) {
            (Some((descriptor, _)), _) => {
                (descriptor, Cow::Borrowed(self.path.get(self.name_at..).unwrap_or_default()))
            }
            (None, Some((descriptor, last))) => (descriptor, Cow::Borrowed(last)),
            (None, None) => (CWD, self.read_path()),
        }
    }

    /// Its path for system calls.
    pub(super) fn read_path(&self) -> Cow<'p, [u8]> {
        self.read_at.of(self.path)
    }

    /// An entry at this place, without a link.
    pub(super) fn entry(
        &self,
        file_type: FileType,
        (stat, nanoseconds): Found,
        options: &Arc<EffectiveOptions>,
        token: Option<u64>,
    ) -> Entry {
        Entry {
            path: self.path.to_vec(),
            file_type,
            stat,
            nanoseconds,
            link: Vec::new(),
            hard_link: None,
            options: Arc::clone(options),
            top_level: self.is_top(),
            token,
            barred: false,
            root: self.root.cloned(),
            read_at: self.read_at.clone(),
        }
    }

    /// Whether the kernel refuses its path for its length.
    pub(super) const fn is_too_long(&self) -> bool {
        self.path.len() > LONGEST_PATH
    }

    pub(super) fn lstat(&self, calls: &dyn Calls) -> Result<Found, Errno> {
        let (at, path) = self.target();
        calls.lstat(at, &path)
    }

    /// The target of a symbolic link with these attributes. `None` if another entry has taken its
    /// place; `is_last` accepts that. `ahead`: what was read ahead.
    pub(super) fn link_target(
        &self,
        stat: &Stat,
        is_last: bool,
        ahead: Option<Result<Vec<u8>, Errno>>,
    ) -> Result<Option<Vec<u8>>, Errno> {
        let (at, path) = self.target();
        let read = || rustix::fs::readlinkat(at, &*path, Vec::new()).map(std::ffi::CString::into_bytes);
        match ahead.unwrap_or_else(read) {
            Ok(target) => {
                // Some file systems have no length of links.
                let is_its_own = stat.size == 0 || usize::try_from(stat.size) == Ok(target.len());
                Ok((is_its_own || is_last).then_some(target))
            }
            Err(Errno::NOENT | Errno::INVAL) if !is_last => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether the directory holds a file of this name, symbolic links followed (reference 03
    /// §5.10).
    pub(super) fn holds(&self, name: &[u8]) -> bool {
        directory::exists(&marker_path(&self.read_path(), name))
    }

    /// Whether it is a directory on which the automounter mounts a file system at the first access.
    pub(super) fn is_mounted_on_access(&self) -> bool {
        self.handle().and_then(rustix::fs::fstatfs).is_ok_and(|found| found.f_type == AUTOFS)
    }

    pub(super) fn handle(&self) -> Result<OwnedFd, Errno> {
        let (at, path) = self.target();
        rustix::fs::openat(at, &*path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
    }

    /// The no-dump flag of the inode; `false` if it can't be read.
    pub(super) fn is_no_dump(&self) -> bool {
        let (at, path) = self.target();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let opened = rustix::fs::openat(at, &*path, flags, Mode::empty());
        opened.is_ok_and(|file| rustix::fs::ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::NODUMP)))
    }
}
