//! What a file system can be relied on for.

use std::os::fd::AsFd;

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
