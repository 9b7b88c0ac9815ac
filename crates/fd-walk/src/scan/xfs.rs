//! The inodes of XFS, which the kernel tells of as of lookups (`XFS_IOC_BULKSTAT`): each is in
//! memory then, or is read from the disk into it. Only a file's size is that on the disk, until
//! what was written is there.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fd_os::file_system::field;
use fd_os::xfs::{self, Inodes, RECORD};

use super::table::{Inode, Refusal};

/// See the module.
pub(crate) struct Xfs {
    directory: Arc<OwnedFd>,
    groups: u32,
}

impl Xfs {
    /// The file system of this directory.
    pub(super) fn new(directory: Arc<OwnedFd>) -> Result<Self, Refusal> {
        let groups = xfs::groups(&directory)?;
        Ok(Self { directory, groups })
    }

    pub(super) const fn groups(&self) -> u32 {
        self.groups
    }

    /// Passes on the inodes of one group until it is told to stop.
    pub(super) fn group(&self, group: u32, take: &mut dyn FnMut(Inode) -> bool) -> Result<(), Refusal> {
        let mut inodes = Inodes::new(Arc::clone(&self.directory), group)?;
        loop {
            let records = inodes.read()?;
            if records.is_empty() {
                return Ok(());
            }
            for record in records {
                if !take(inode(record)?) {
                    return Ok(());
                }
            }
        }
    }
}

fn inode(record: &[u8; RECORD]) -> Result<Inode, Refusal> {
    const VERSION: u16 = 5;
    let i64_at = |at| i64::from_ne_bytes(field(record, at));
    let u32_at = |at| u32::from_ne_bytes(field(record, at));
    let u16_at = |at| u16::from_ne_bytes(field(record, at));
    if u16_at(124) != VERSION {
        return Err(Refusal::Unknown("version"));
    }
    Ok(Inode {
        ino: u64::from_ne_bytes(field(record, 0)),
        mtime: i64_at(40),
        ctime: i64_at(48),
        mode: u16_at(132).into(),
        nlink: u32_at(112).into(),
        uid: u32_at(68),
        gid: u32_at(72),
        size: i64_at(8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_fields_where_the_kernel_puts_them() {
        let mut record = [0xee; RECORD];
        let (times, wide) = ((-1_000_000_000_i64).cast_unsigned(), 4_000_000_000);
        for (at, field) in [(0, 0x1_0000_0085_u64), (8, wide + 1), (40, times), (48, wide)] {
            record[at..at + 8].copy_from_slice(&field.to_ne_bytes());
        }
        for (at, field) in [(68, 70_000_u32), (72, 80_000), (112, 90_000)] {
            record[at..at + 4].copy_from_slice(&field.to_ne_bytes());
        }
        for (at, field) in [(124, 5_u16), (132, 0o100_644)] {
            record[at..at + 2].copy_from_slice(&field.to_ne_bytes());
        }
        let (size, mtime, ctime) = (4_000_000_001, -1_000_000_000, 4_000_000_000);
        let (mode, nlink, uid, gid) = (0o100_644, 90_000, 70_000, 80_000);
        assert_eq!(inode(&record).unwrap(), Inode { ino: 0x1_0000_0085, mtime, ctime, mode, nlink, uid, gid, size });
        record[124] = 1;
        assert!(matches!(inode(&record), Err(Refusal::Unknown("version"))));
    }
}
