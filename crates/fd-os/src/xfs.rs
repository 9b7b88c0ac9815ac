//! The inodes of an XFS, many at a time (`XFS_IOC_BULKSTAT`, Linux 5.5), by its allocation groups.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::sys::statfs::XFS_SUPER_MAGIC;

use crate::file_system::{check_directory, field};

/// Bytes of an inode's record (`struct xfs_bulkstat`).
pub const RECORD: usize = 192;
/// Bytes before the records (`struct xfs_bulk_ireq`): the first inode that is wanted, flags, how
/// many at most, and then how many there are; the group.
const HEADER: usize = 64;
/// The flag: those of one group.
const OF_GROUP: u32 = 1;
/// So many are asked for at once.
const AT_ONCE: u32 = 1024;
const REQUEST: libc::Ioctl = libc::_IOR::<[u8; HEADER]>(b'X' as u32, 127);
/// Bytes of what the kernel says of the whole file system (`struct xfs_fsop_geom`).
const GEOMETRY: usize = 256;
const GET_GEOMETRY: libc::Ioctl = libc::_IOR::<[u8; GEOMETRY]>(b'X' as u32, 126);

/// How many allocation groups the file system of this directory has.
///
/// # Errors
/// `ENOTTY` if it is no directory of an XFS, and from a kernel before Linux 5.2; what the kernel
/// says.
pub fn groups(directory: &OwnedFd) -> io::Result<u32> {
    check_directory(directory, XFS_SUPER_MAGIC)?;
    let mut geometry = [0_u8; GEOMETRY];
    // SAFETY: the directory is one of an XFS, which writes no more than `geometry` has room for.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), GET_GEOMETRY, geometry.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::from_ne_bytes(field(&geometry, 12)))
}

/// Reads the inodes of an allocation group that are in use, in the order of their numbers, which
/// are greater than those of the groups before.
pub struct Inodes {
    directory: Arc<OwnedFd>,
    request: Vec<u8>,
}

impl Inodes {
    /// Those of this group of the file system of this directory.
    ///
    /// # Errors
    /// `ENOTTY` if it is no directory of an XFS; what the kernel says.
    pub fn new(directory: Arc<OwnedFd>, group: u32) -> io::Result<Self> {
        check_directory(&directory, XFS_SUPER_MAGIC)?;
        let mut request = vec![0; HEADER + RECORD * AT_ONCE as usize];
        for (at, field) in [(8, OF_GROUP), (12, AT_ONCE), (20, group)] {
            if let Some(bytes) = request.get_mut(at..at + 4) {
                bytes.copy_from_slice(&field.to_ne_bytes());
            }
        }
        Ok(Self { directory, request })
    }

    /// The records of the next ones; none at the end.
    ///
    /// # Errors
    /// `ENOTTY` from a kernel before Linux 5.5, `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` if there
    /// is no such group; what else the kernel says.
    pub fn read(&mut self) -> io::Result<&[[u8; RECORD]]> {
        // The kernel has set the first number to the next one.
        // SAFETY: the directory is one of an XFS, which reads the header, and writes it and at most
        // `AT_ONCE` records behind it: `request` has room for these.
        let result = unsafe { libc::ioctl(self.directory.as_raw_fd(), REQUEST, self.request.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = u32::from_ne_bytes(field(&self.request, 16));
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
            let refused = |error: io::Error| error.raw_os_error() == Some(libc::ENOTTY);
            assert!(groups(&open).is_err_and(refused), "{path}");
            assert!(Inodes::new(open, 0).is_err_and(refused), "{path}");
        }
    }

    #[test]
    fn requests_have_the_numbers_of_the_kernels_header() {
        // _IOR('X', 127, 64 bytes) and _IOR('X', 126, 256 bytes) where directions are as on most
        // machines.
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!((REQUEST, GET_GEOMETRY), (0x8040_587f, 0x8100_587e));
        }
    }
}
