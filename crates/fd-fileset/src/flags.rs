//! The on/off settings of an Options block as one small set.

use std::ops::{BitOr, BitOrAssign};

use fd_records::DigestKind;

/// A set of on/off options. The bit numbers are the reference's, because plugins see them (reference 03 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u64);

impl Flags {
    /// Nothing is on.
    pub const NONE: Self = Self(0);
    /// Compress the data (`Z…`).
    pub const COMPRESS: Self = Self::bit(2);
    /// Do not descend into directories (`h`).
    pub const NO_RECURSION: Self = Self::bit(3);
    /// Cross into other file systems (`f`).
    pub const MULTI_FS: Self = Self::bit(4);
    /// Leave blocks of zeros out (`s`).
    pub const SPARSE: Self = Self::bit(5);
    /// Replace if newer (`w`); unused in a backup.
    pub const IF_NEWER: Self = Self::bit(6);
    /// Never replace (`n`); unused in a backup.
    pub const NO_REPLACE: Self = Self::bit(7);
    /// Read FIFOs that are named in the FileSet (`r`).
    pub const READ_FIFO: Self = Self::bit(8);
    /// Portable format (`p`); no effect on Linux.
    pub const PORTABLE: Self = Self::bit(10);
    /// Only the mtime says whether a file changed (`m`).
    pub const MTIME_ONLY: Self = Self::bit(11);
    /// Keep access times (`k`); no effect here, see `docs/differences.md`.
    pub const KEEP_ATIME: Self = Self::bit(12);
    /// The block rejects what it matches (`e`).
    pub const EXCLUDE: Self = Self::bit(13);
    /// Save POSIX ACLs (`A`).
    pub const ACL: Self = Self::bit(14);
    /// No hard-link handling (`H`).
    pub const NO_HARD_LINK: Self = Self::bit(15);
    /// Patterns ignore case (`i`).
    pub const IGNORE_CASE: Self = Self::bit(16);
    /// HFS+ (`R`); no effect on Linux.
    pub const HFS_PLUS: Self = Self::bit(17);
    /// Open files without touching their access time (`K`).
    pub const NO_ATIME: Self = Self::bit(22);
    /// Wild-cards treat `/` as special (`W`).
    pub const ENHANCED_WILD: Self = Self::bit(23);
    /// Look after reading whether the file changed meanwhile (`c`).
    pub const CHECK_CHANGES: Self = Self::bit(24);
    /// Strip leading path components (`P<n>:`).
    pub const STRIP_PATH: Self = Self::bit(25);
    /// Honour the no-dump inode flag (`N`).
    pub const HONOR_NO_DUMP: Self = Self::bit(26);
    /// Save extended attributes (`X`).
    pub const XATTR: Self = Self::bit(27);
    /// Deduplicate (`d<n>`).
    pub const DEDUP: Self = Self::bit(31);

    /// A digest of this kind.
    pub const fn of_digest(kind: DigestKind) -> Self {
        Self::bit(kind.option_bit())
    }

    /// The one digest that is made: of those asked for the first in the order of precedence (reference 03 §2.2).
    pub fn digest(self) -> Option<DigestKind> {
        DigestKind::ALL.into_iter().find(|kind| self.contains(Self::of_digest(*kind)))
    }

    const fn bit(number: u32) -> Self {
        Self(1 << number)
    }

    /// Whether every option of `other` is on.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as a number, bit numbers as in reference 03 §2.1.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set that this number stands for. Unknown bits are kept.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What is on in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Flags({:#x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_asks_for_all_of_them() {
        let flags = Flags::XATTR | Flags::SPARSE;
        assert!(flags.contains(Flags::XATTR));
        assert!(!flags.contains(Flags::XATTR | Flags::ACL));
        assert!(flags.contains(Flags::NONE));
    }

    #[test]
    fn bit_numbers_are_those_of_the_plugin_interface() {
        assert_eq!(Flags::of_digest(DigestKind::Md5).bits(), 1 << 1);
        assert_eq!(Flags::EXCLUDE.bits(), 1 << 13);
        assert_eq!(Flags::of_digest(DigestKind::Xxh3_128).bits(), 1 << 34);
        assert_eq!(Flags::from_bits(1 << 27), Flags::XATTR);
    }
}
