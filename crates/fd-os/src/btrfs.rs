//! The inodes of a subvolume of a btrfs, many at a time (`BTRFS_IOC_TREE_SEARCH_V2`, Linux 3.16).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::sys::statfs::BTRFS_SUPER_MAGIC;

use crate::file_system::{check_directory, field};

/// Bytes of an inode's item (`struct btrfs_inode_item`).
pub const ITEM: usize = 160;
/// Bytes before the items (`struct btrfs_ioctl_search_args_v2`): between which places of the tree
/// the items are, how many at most, and then how many there are; the room for them.
const HEADER: usize = 112;
/// Bytes before an item (`struct btrfs_ioctl_search_header`).
const ITEM_HEADER: usize = 32;
/// The room: that for the largest item, and for many others.
const ROOM: usize = 256 << 10;
const REQUEST: libc::Ioctl = libc::_IOWR::<[u8; HEADER]>(0x94, 17);
/// The type of an inode's item.
const INODE: u32 = 1;
/// The numbers of files. Others are the kernel's own.
const FIRST: u64 = 256;
const LAST: u64 = u64::MAX - 256;

/// Reads the inodes that are in use, in the order of their numbers. The kernel keeps changes of an
/// inode back from the tree until the file system is written out.
pub struct Inodes {
    directory: Arc<OwnedFd>,
    request: Vec<u8>,
    /// From this number on.
    next: u64,
}

impl Inodes {
    /// Those of the subvolume of this directory.
    ///
    /// # Errors
    /// `ENOTTY` if it is no directory of a btrfs; what the kernel says.
    pub fn new(directory: Arc<OwnedFd>) -> io::Result<Self> {
        check_directory(&directory, BTRFS_SUPER_MAGIC)?;
        Ok(Self { directory, request: vec![0; HEADER + ROOM], next: FIRST })
    }

    /// The numbers and items of the next ones, perhaps of none; `None` at the end.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN`; what else the kernel says.
    pub fn read(&mut self) -> io::Result<Option<impl Iterator<Item = (u64, &[u8; ITEM])>>> {
        let found = self.search(self.next, u32::MAX)?;
        let Some((last, ..)) = self.items(found).last() else { return Ok(None) };
        // The first item of an inode is its own. So the rest of the last one's, which are names and
        // pieces of data, need not be read.
        self.next = last.saturating_add(1);
        let inodes = self.items(found).filter(|(_, kind, _)| *kind == INODE);
        Ok(Some(inodes.filter_map(|(ino, _, item)| Some((ino, item.first_chunk()?)))))
    }

    /// A number that none of the subvolume's inodes exceeds, at most twice as large as the greatest
    /// one. Numbers are never used again.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn bound(&mut self) -> io::Result<u64> {
        let mut bound = FIRST;
        while bound < LAST && self.search(bound, 1)? > 0 {
            bound = bound.saturating_mul(2);
        }
        Ok(bound)
    }

    /// Asks for so many items at most from this inode on, and says how many there are.
    fn search(&mut self, from: u64, most: u32) -> io::Result<u32> {
        let (header, _) = self.request.split_at_mut(HEADER);
        // The tree is that of the directory's subvolume, and may be as new as it likes.
        let wide = [0, from, LAST, 0, u64::MAX, 0, u64::MAX];
        let narrow = [0, u32::MAX, most, 0];
        let fields = wide.into_iter().flat_map(u64::to_ne_bytes).chain(narrow.into_iter().flat_map(u32::to_ne_bytes));
        let room = [0, 0, 0, 0, ROOM as u64].into_iter().flat_map(u64::to_ne_bytes);
        for (byte, field) in header.iter_mut().zip(fields.chain(room)) {
            *byte = field;
        }
        // SAFETY: the directory is one of a btrfs, which reads the header, and writes it and at
        // most `ROOM` bytes behind it: `request` has room for these.
        let result = unsafe { libc::ioctl(self.directory.as_raw_fd(), REQUEST, self.request.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u32::from_ne_bytes(field(&self.request, 64)))
    }

    /// So many items behind the header: inode, type and content of each.
    fn items(&self, found: u32) -> impl Iterator<Item = (u64, u32, &[u8])> {
        let mut rest = self.request.get(HEADER..).unwrap_or_default();
        (0..found).map_while(move |_| {
            let (header, behind) = rest.split_at_checked(ITEM_HEADER)?;
            let number = |at| u32::from_ne_bytes(field(header, at));
            let (item, behind) = behind.split_at_checked(number(28) as usize)?;
            rest = behind;
            Some((u64::from_ne_bytes(field(header, 8)), number(24), item))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_no_directory_of_a_btrfs_is_not_asked() {
        for path in ["/proc", "/proc/version", "/dev/null"] {
            let open = Arc::new(OwnedFd::from(File::open(path).unwrap()));
            let refused = Inodes::new(open).err().and_then(|error| error.raw_os_error());
            assert_eq!(refused, Some(libc::ENOTTY), "{path}");
        }
    }

    #[test]
    fn the_request_has_the_number_of_the_kernels_header() {
        // _IOWR(0x94, 17, 112 bytes) where directions are as on most machines.
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(REQUEST, 0xc070_9411);
        }
    }

    #[test]
    fn items_end_where_their_bytes_end() {
        let directory = Arc::new(OwnedFd::from(File::open("/").unwrap()));
        let mut inodes = Inodes { directory, request: vec![0; HEADER], next: FIRST };
        for (ino, kind, len) in [(257_u64, 1_u32, 160_u32), (257, 12, 5), (258, 1, 160)] {
            let words = [0, ino, 7].map(u64::to_ne_bytes);
            inodes.request.extend(words.as_flattened());
            inodes.request.extend([kind, len].map(u32::to_ne_bytes).as_flattened());
            inodes.request.extend(vec![0xee; len as usize]);
        }
        let found =
            |inodes: &Inodes| inodes.items(9).map(|(ino, kind, item)| (ino, kind, item.len())).collect::<Vec<_>>();
        assert_eq!(found(&inodes), [(257, 1, 160), (257, 12, 5), (258, 1, 160)]);
        inodes.request.pop();
        assert_eq!(found(&inodes), [(257, 1, 160), (257, 12, 5)]);
    }
}
