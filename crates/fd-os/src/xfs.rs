//! The inodes of an XFS, many at a time (`XFS_IOC_BULKSTAT`, Linux 5.5).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::sys::stat::{SFlag, fstat};
use nix::sys::statfs::{XFS_SUPER_MAGIC, fstatfs};

/// Bytes of an inode's record (`struct xfs_bulkstat`).
pub const RECORD: usize = 192;
/// Bytes before the records (`struct xfs_bulk_ireq`): the first inode that is wanted, flags, how
/// many at most, and then how many there are.
const HEADER: usize = 64;
/// So many are asked for at once.
const AT_ONCE: u32 = 1024;
const REQUEST: libc::Ioctl = libc::_IOR::<[u8; HEADER]>(b'X' as u32, 127);

/// Reads the inodes that are in use, in the order of their numbers.
pub struct Inodes {
    directory: Arc<OwnedFd>,
    request: Vec<u8>,
}

impl Inodes {
    /// Those of the file system of this directory.
    ///
    /// # Errors
    /// `ENOTTY` if it is no directory of an XFS; what the kernel says.
    pub fn new(directory: Arc<OwnedFd>) -> io::Result<Self> {
        let is_directory = SFlag::from_bits_truncate(fstat(&directory)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
        if !is_directory || fstatfs(&directory)?.filesystem_type() != XFS_SUPER_MAGIC {
            return Err(io::Error::from_raw_os_error(libc::ENOTTY));
        }
        Ok(Self { directory, request: vec![0; HEADER + RECORD * AT_ONCE as usize] })
    }

    /// The records of the next ones; none at the end.
    ///
    /// # Errors
    /// `ENOTTY` from a kernel before Linux 5.5, `EPERM` without `CAP_SYS_ADMIN`; what else the
    /// kernel says.
    pub fn read(&mut self) -> io::Result<&[[u8; RECORD]]> {
        // The kernel has set the first number to the next one.
        if let Some(most) = self.request.get_mut(12..16) {
            most.copy_from_slice(&AT_ONCE.to_ne_bytes());
        }
        // SAFETY: the directory is one of an XFS, which reads the header, and writes it and at most
        // `AT_ONCE` records behind it: `request` has room for these.
        let result = unsafe { libc::ioctl(self.directory.as_raw_fd(), REQUEST, self.request.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = self.request.get(16..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_ne_bytes);
        let (records, _) = self.request.get(HEADER..).unwrap_or_default().as_chunks();
        Ok(records.get(..found as usize).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_no_directory_of_an_xfs_is_not_asked() {
        for path in ["/proc", "/proc/version", "/dev/null"] {
            let open = Arc::new(OwnedFd::from(File::open(path).unwrap()));
            let refused = Inodes::new(open).err().and_then(|error| error.raw_os_error());
            assert_eq!(refused, Some(libc::ENOTTY), "{path}");
        }
    }

    #[test]
    fn the_request_has_the_number_of_the_kernels_header() {
        // _IOR('X', 127, 64 bytes) where directions are as on most machines.
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(REQUEST, 0x8040_587f);
        }
    }
}
