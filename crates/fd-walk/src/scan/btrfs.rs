//! The inodes of a subvolume of btrfs, as they are in its tree (`BTRFS_IOC_TREE_SEARCH_V2`). The
//! kernel brings a change of an inode there some time later. So the file system is written out
//! before: whatever has changed until then is in the tree, and a change that is not there has a
//! time after the scan began.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fd_os::btrfs::{ITEM, Inodes};
use fd_os::file_system::field;

use super::table::{Inode, Refusal};

/// Passes on all inodes of the subvolume of this directory until it is told to stop.
pub(super) fn all(directory: &Arc<OwnedFd>, take: &mut dyn FnMut(Inode) -> bool) -> Result<(), Refusal> {
    let mut inodes = Inodes::new(Arc::clone(directory))?;
    while let Some(mut items) = inodes.read()? {
        if !items.all(|(ino, item)| take(inode(ino, item))) {
            break;
        }
    }
    Ok(())
}

fn inode(ino: u64, item: &[u8; ITEM]) -> Inode {
    let i64_at = |at| i64::from_le_bytes(field(item, at));
    let u32_at = |at| u32::from_le_bytes(field(item, at));
    Inode {
        ino,
        mtime: i64_at(136),
        ctime: i64_at(124),
        mode: u32_at(52),
        nlink: u32_at(40).into(),
        uid: u32_at(44),
        gid: u32_at(48),
        size: i64_at(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_its_fields_where_the_disk_has_them() {
        let mut item = [0xee; ITEM];
        let (size, mtime, ctime) = (4_000_000_001_i64, -1_000_000_000_i64, 4_000_000_000_i64);
        for (at, field) in [(16, size), (124, ctime), (136, mtime)] {
            item[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        for (at, field) in [(40, 90_000_u32), (44, 70_000), (48, 80_000), (52, 0o100_644)] {
            item[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        let (ino, mode, nlink, uid, gid) = (1 << 40, 0o100_644, 90_000, 70_000, 80_000);
        assert_eq!(inode(ino, &item), Inode { ino, mtime, ctime, mode, nlink, uid, gid, size });
    }
}
