//! What a file system can be relied on for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::stat::{SFlag, fstat};
use nix::sys::statfs::{
    BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC,
    fstatfs,
};

/// ext2 and ext3 have the number of ext4; an overlay lies on one of the others as a rule. ZFS has
/// called data a hole that had just been written, so neither it nor a server is among them.
const LOCAL: [FsType; 6] =
    [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC];

/// Whether what is open is on a file system of this host that is known to tell the truth about
/// holes, to close a file without an error, and to keep what was written in the page cache. `false`
/// if the system doesn't tell which one it is.
pub fn is_local(open: impl AsFd) -> bool {
    fstatfs(open).is_ok_and(|found| LOCAL.contains(&found.filesystem_type()))
}

/// Makes sure that what is open is a directory on such a file system, which knows its requests.
///
/// # Errors
/// `ENOTTY` if it is not; what the kernel says.
pub(crate) fn check_directory(open: &OwnedFd, kind: FsType) -> io::Result<()> {
    let is_directory = SFlag::from_bits_truncate(fstat(open)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    if is_directory && fstatfs(open)?.filesystem_type() == kind {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::ENOTTY))
}

/// The bytes of a field in what the kernel has written; zeros if it has written less.
pub fn field<const LEN: usize>(bytes: &[u8], at: usize) -> [u8; LEN] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; LEN])
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_known_file_systems_are_local() {
        let of = |path: &str| is_local(File::open(path).unwrap());
        assert_eq!((of("/dev/shm"), of("/proc/version")), (true, false));
    }
}
