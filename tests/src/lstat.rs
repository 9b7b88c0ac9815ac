//! The attributes of a file as they are on a volume and in the catalog: numbers in Bacula's base
//! 64, with blanks between them (reference 04 §6.2, §6.3).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Those that the tests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LStat {
    /// Inode number.
    pub inode: i64,
    /// Type and permissions.
    pub mode: i64,
    /// Owner.
    pub uid: i64,
    /// Group.
    pub gid: i64,
    /// Size in bytes.
    pub size: i64,
    /// Last change of the contents, in seconds since 1970.
    pub mtime: i64,
}

impl LStat {
    /// Reads the text of an attribute record or of a row of the catalog. `None` if it is none.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let numbers = Self::numbers(text)?;
        let [_dev, inode, mode, _links, uid, gid, _rdev, size, _blksize, _blocks, _atime, mtime, ..] = numbers[..]
        else {
            return None;
        };
        Some(Self { inode, mode, uid, gid, size, mtime })
    }

    /// All numbers of such a text, in its order.
    pub fn numbers(text: &[u8]) -> Option<Vec<i64>> {
        text.split(|byte| *byte == b' ').map(number).collect()
    }

    /// The numbers that a file has on the disk: all but the last three.
    pub fn of(file: &Metadata) -> [i64; 13] {
        let [dev, inode, links, rdev] = [file.dev(), file.ino(), file.nlink(), file.rdev()].map(u64::cast_signed);
        let [size, block, blocks] = [file.size(), file.blksize(), file.blocks()].map(u64::cast_signed);
        let [mode, uid, gid] = [file.mode(), file.uid(), file.gid()].map(i64::from);
        [dev, inode, mode, links, uid, gid, rdev, size, block, blocks, file.atime(), file.mtime(), file.ctime()]
    }

    /// Numbers, none of them negative, as such a text.
    pub fn text(numbers: &[i64]) -> String {
        numbers.iter().map(|&number| base64(number)).collect::<Vec<_>>().join(" ")
    }
}

fn number(text: &[u8]) -> Option<i64> {
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let value = text.iter().try_fold(0_i64, |value, byte| {
        let digit = DIGITS.iter().position(|digit| digit == byte)?;
        value.checked_mul(64)?.checked_add(i64::try_from(digit).ok()?)
    })?;
    Some(if negative { -value } else { value })
}

fn base64(number: i64) -> String {
    let before = if number < 64 { String::new() } else { base64(number >> 6) };
    let digit = usize::try_from(number & 63).ok().and_then(|at| DIGITS.get(at)).copied().unwrap_or_default();
    before + char::from(digit).encode_utf8(&mut [0; 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_reference_are_read() {
        let text = b"P0A EAI IGk B Po Po A Gh BAA I BeLkZb BeLkZc BeLkZd A A C";
        let read = LStat::parse(text).unwrap();
        assert_eq!((read.mode, read.uid, read.size, read.mtime), (0o100_644, 1000, 417, 1_580_090_972));
        assert_eq!(LStat::text(&LStat::numbers(text).unwrap()).as_bytes(), text);
        assert_eq!(LStat::parse(b"A B"), None);
    }
}
