//! The directory that holds a name of the FileSet, for Directors that may not read everything.
//!
//! The limits are checked for the path that the kernel resolves. If the system calls resolved it
//! anew, a link that is put into it meanwhile, for instance by a restore of the same Director,
//! would lead them elsewhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use fd_fileset::plain_path;
use rustix::io::Errno;

use crate::names::split_path;
use crate::root::{directory_below, open_without_links};

/// See the module.
pub(crate) struct Held {
    directory: OwnedFd,
    /// The name's last component; `.` if the directory is what is named.
    last: Vec<u8>,
    /// The path of what is named, without links on the way to it.
    pub(crate) real: Vec<u8>,
}

impl Held {
    /// Opens the directory of this name.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(name: &[u8]) -> Result<Self, Errno> {
        let (directory, last) = match split_path(name) {
            // With a slash or dots at its end, the kernel resolves all of it.
            (_, b"" | b"." | b"..") => (name, &b"."[..]),
            (b"", last) => (&b"."[..], last),
            (directory, last) => (directory, last),
        };
        let found = std::fs::canonicalize(OsStr::from_bytes(directory));
        let real = found.map_err(|error| errno(&error))?;
        let real = real.into_os_string().into_vec();
        let directory = open_without_links(&real)?;
        Ok(Self { directory, last: last.to_vec(), real: plain_path(&[&real, &b"/"[..], last].concat()) })
    }

    /// Opens the directory of `below`, which may not lead over links, in the snapshot at
    /// `mount_point`, which may. `real` is what the limits are for.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open_below(mount_point: &[u8], below: &[u8], real: &[u8]) -> Result<Self, Errno> {
        let (directory, last) = split_path(below);
        let last = if last.is_empty() { b"." } else { last };
        let directory = directory_below(mount_point, directory)?;
        Ok(Self { directory, last: last.to_vec(), real: real.to_vec() })
    }

    /// Descriptor and path for a system call about what is named.
    pub(crate) fn target(&self) -> (BorrowedFd<'_>, &[u8]) {
        (self.directory.as_fd(), &self.last)
    }
}

/// The kernel's number of an error.
pub(crate) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
