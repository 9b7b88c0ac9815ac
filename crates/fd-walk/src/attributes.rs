//! Attributes of an entry, from the kernel's types to those of the record.

use std::os::fd::BorrowedFd;

use fd_fileset::{EffectiveOptions, Flags};
use fd_records::{FileType, Stat};
use rustix::fs::fstat;
use rustix::io::Errno;

/// Nanoseconds of the three times, 0 to 999,999,999. Records hold whole seconds only.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Nanoseconds {
    /// Of the last access.
    pub atime: u32,
    /// Of the last change of the contents.
    pub mtime: u32,
    /// Of the last change of the inode.
    pub ctime: u32,
}

/// Attributes that were read.
pub(crate) type Found = (Stat, Nanoseconds);

/// The type of an entry in its record; not for directories.
pub(crate) fn file_type(stat: &Stat, is_top: bool, options: &EffectiveOptions) -> FileType {
    const ALL_MAY_READ: u32 = 0o444;
    match stat.mode_type() {
        Stat::MODE_REGULAR if stat.size == 0 && stat.mode & ALL_MAY_READ == ALL_MAY_READ => FileType::EmptyFile,
        Stat::MODE_REGULAR => FileType::Regular,
        Stat::MODE_SYMLINK => FileType::Symlink,
        Stat::MODE_BLOCK if is_top => FileType::Raw,
        Stat::MODE_FIFO if is_top && options.has(Flags::READ_FIFO) => FileType::Fifo,
        _ => FileType::Special,
    }
}

/// Converts the kernel's types.
#[expect(clippy::useless_conversion, reason = "the kernel's types differ between architectures")]
pub(crate) fn convert(found: &rustix::fs::Stat) -> Found {
    let nanoseconds = |part: u64| u32::try_from(part).unwrap_or(0);
    let stat = Stat {
        dev: found.st_dev,
        ino: found.st_ino,
        mode: found.st_mode,
        nlink: found.st_nlink.try_into().unwrap_or(u64::MAX),
        uid: found.st_uid,
        gid: found.st_gid,
        rdev: found.st_rdev,
        size: found.st_size,
        blksize: found.st_blksize.try_into().unwrap_or(i64::MAX),
        blocks: found.st_blocks,
        atime: found.st_atime.try_into().unwrap_or(i64::MAX),
        mtime: found.st_mtime.try_into().unwrap_or(i64::MAX),
        ctime: found.st_ctime.try_into().unwrap_or(i64::MAX),
    };
    let fractions = Nanoseconds {
        atime: nanoseconds(found.st_atime_nsec),
        mtime: nanoseconds(found.st_mtime_nsec),
        ctime: nanoseconds(found.st_ctime_nsec),
    };
    (stat, fractions)
}

/// The attributes of an open file or handle.
pub(crate) fn stat_of(file: BorrowedFd<'_>) -> Result<Found, Errno> {
    fstat(file).map(|found| convert(&found))
}
