//! The attributes of a file as they are on a volume and in the catalog: numbers in Bacula's base
//! 64, with blanks between them (reference 04 §6.2, §6.3).

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
}

fn number(text: &[u8]) -> Option<i64> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    let value = text.iter().try_fold(0_i64, |value, byte| {
        let digit = DIGITS.iter().position(|digit| digit == byte)?;
        value.checked_mul(64)?.checked_add(i64::try_from(digit).ok()?)
    })?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_reference_are_read() {
        let text = b"P0A EAI IGk B Po Po A Gh BAA I BeLkZb BeLkZc BeLkZd A A C";
        let read = LStat::parse(text).unwrap();
        assert_eq!((read.mode, read.uid, read.size, read.mtime), (0o100_644, 1000, 417, 1_580_090_972));
        assert_eq!(LStat::parse(b"A B"), None);
    }
}
