//! The system calls that are made ahead. They change nothing, and never follow a symbolic link.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::attributes::{Found, convert};
use crate::directory::{self, Rest};

/// Bytes of each read ahead. Directories whose names are held ahead are many.
const CHUNK_AHEAD: usize = 16 * 1024;
/// A longer target of a link is not held.
const LONGEST_LINK: usize = 256;

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_field_names, reason = "a name is a name")]
pub(crate) struct Name {
    pub(crate) name: Arc<[u8]>,
    /// The number of its inode, as the directory has it; 0 if that is not known.
    pub(crate) ino: u64,
    /// Whether the directory says that it is no directory.
    pub(crate) is_leaf: bool,
}

/// A buffer for the kernel's answers, made when it is needed.
#[derive(Default)]
pub(crate) struct Buffer(Option<Box<[MaybeUninit<u8>]>>);

impl Buffer {
    fn bytes(&mut self) -> &mut [MaybeUninit<u8>] {
        self.0.get_or_insert_with(|| Box::new_uninit_slice(CHUNK_AHEAD))
    }
}

/// See the module. Tests have others, which are late.
pub(crate) trait Calls: Send + Sync {
    /// The attributes of an entry of the directory `at`.
    fn lstat(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
        directory::stat_at(at, name).map(|found| convert(&found))
    }

    /// Opens the directory with this device and inode; `ESTALE` if another one is there.
    fn open(&self, at: BorrowedFd<'_>, name: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
        directory::open(at, name, identity)
    }

    /// The target of a symbolic link, unless it is long.
    fn link(&self, at: BorrowedFd<'_>, name: &[u8]) -> Option<Result<Vec<u8>, Errno>> {
        let target = rustix::fs::readlinkat(at, name, Vec::new()).map(std::ffi::CString::into_bytes);
        Some(target).filter(|target| target.as_ref().map_or(true, |target| target.len() <= LONGEST_LINK))
    }

    /// Whether there is a file at this path, links followed.
    fn exists(&self, path: &[u8]) -> bool {
        directory::exists(path)
    }

    /// Appends the next names of an open directory.
    fn names(&self, directory: BorrowedFd<'_>, buffer: &mut Buffer, names: &mut Vec<Name>) -> Rest {
        directory::read(directory, buffer.bytes(), |name, ino, is_leaf| {
            names.push(Name { name: Arc::from(name.to_bytes()), ino, is_leaf });
        })
    }
}

/// The kernel's.
pub(crate) struct Kernel;

impl Calls for Kernel {}
