//! LStat: the sixteen base-64 numbers that describe an entry (reference 04 §6.3).

use crate::text::number;
use crate::vocabulary::stream::Stream;

/// The attributes of an entry as the record holds them: whole seconds, no names.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stat {
    /// Device that holds the entry, as the 64 bit Linux number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Number of names.
    pub nlink: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that a special file stands for, as the 64 bit Linux number.
    pub rdev: u64,
    /// Size in bytes; −1 where a plugin cannot tell it.
    pub size: i64,
    /// Preferred block size in bytes.
    pub blksize: i64,
    /// Blocks of 512 bytes.
    pub blocks: i64,
    /// Last access, seconds since 1970.
    pub atime: i64,
    /// Last change of the contents, seconds since 1970.
    pub mtime: i64,
    /// Last change of the inode, seconds since 1970.
    pub ctime: i64,
}

impl Stat {
    /// The type bits of `mode`.
    pub const MODE_TYPE: u32 = 0o170_000;
    /// Type bits of a fifo.
    pub const MODE_FIFO: u32 = 0o010_000;
    /// Type bits of a character device.
    pub const MODE_CHARACTER: u32 = 0o020_000;
    /// Type bits of a directory.
    pub const MODE_DIRECTORY: u32 = 0o040_000;
    /// Type bits of a block device.
    pub const MODE_BLOCK: u32 = 0o060_000;
    /// Type bits of a regular file.
    pub const MODE_REGULAR: u32 = 0o100_000;
    /// Type bits of a symbolic link.
    pub const MODE_SYMLINK: u32 = 0o120_000;
    /// Type bits of a socket.
    pub const MODE_SOCKET: u32 = 0o140_000;

    /// The type bits of the mode, to compare with the `MODE_…` constants.
    pub const fn mode_type(&self) -> u32 {
        self.mode & Self::MODE_TYPE
    }
}

/// [`Stat`] and the three numbers that a record adds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LStat {
    /// The attributes.
    pub stat: Stat,
    /// FileIndex of the first name of a hard-linked file, else 0.
    pub link_fi: i32,
    /// Inode flags; always 0 on Linux.
    pub flags: i64,
    /// The stream that holds the data, recorded without flag bits (reference 04 §7); none in old
    /// records.
    pub data_stream: Stream,
}

/// How many numbers a complete LStat has.
const FIELDS: usize = 16;
/// How many must be there.
const MANDATORY: usize = 13;

impl LStat {
    /// Appends the text, sixteen numbers separated by single blanks, without a final NUL.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let stat = &self.stat;
        let numbers: [i64; FIELDS] = [
            stat.dev.cast_signed(),
            stat.ino.cast_signed(),
            i64::from(stat.mode),
            stat.nlink.cast_signed(),
            i64::from(stat.uid),
            i64::from(stat.gid),
            stat.rdev.cast_signed(),
            stat.size,
            stat.blksize,
            stat.blocks,
            stat.atime,
            stat.mtime,
            stat.ctime,
            i64::from(self.link_fi),
            self.flags,
            i64::from(self.data_stream.kind().number()),
        ];
        out.reserve(FIELDS * 12);
        for (index, value) in numbers.into_iter().enumerate() {
            if index != 0 {
                out.push(b' ');
            }
            number::push(out, value);
        }
    }

    /// Reads a text. The last three numbers may be missing (they then count as 0), what follows the
    /// sixteenth is ignored, and missing digits count as 0. `None` if one of the others is missing,
    /// or if one is not a base-64 number of its range.
    pub fn decode(text: &[u8]) -> Option<Self> {
        let mut numbers = [0_i64; FIELDS];
        let mut found = 0;
        let words = text.strip_suffix(b" ").unwrap_or(text).split(|byte| *byte == b' ');
        for (place, word) in numbers.iter_mut().zip(words) {
            *place = number::parse(word)?;
            found += 1;
        }
        if found < MANDATORY {
            return None;
        }
        let [dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atime, mtime, ctime, link_fi, flags, data] =
            numbers;
        Some(Self {
            stat: Stat {
                dev: dev.cast_unsigned(),
                ino: ino.cast_unsigned(),
                mode: u32::try_from(mode).ok()?,
                nlink: nlink.cast_unsigned(),
                uid: identity(uid)?,
                gid: identity(gid)?,
                rdev: rdev.cast_unsigned(),
                size,
                blksize,
                blocks,
                atime,
                mtime,
                ctime,
            },
            link_fi: i32::try_from(link_fi).ok()?,
            flags,
            data_stream: Stream::new(u32::try_from(data).ok()?),
        })
    }
}

/// A user or group number: unsigned, but clients with signed ones write −1 and −2.
fn identity(value: i64) -> Option<u32> {
    i32::try_from(value).map(i32::cast_unsigned).or_else(|_| u32::try_from(value)).ok()
}

#[cfg(test)]
mod tests;
