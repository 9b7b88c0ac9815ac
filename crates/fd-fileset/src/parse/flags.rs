//! The on/off settings of an Options block as one small set.

use std::ops::{BitOr, BitOrAssign};

use fd_records::DigestKind;

/// A set of on/off options. The bit numbers are the reference's, because plugins see them
/// (reference 03 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u64);

/// Makes the constants and the list of letters from one row for each option.
macro_rules! options {
    ($($(#[$doc:meta])* $constant:ident = $bit:literal $(, $letter:literal)?;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $constant: Self = Self::bit($bit);)*

            #[cfg(test)]
            const LISTED: &[Self] = &[$(Self::$constant),*];

            /// The option that a letter of an `O` line switches on by itself; [`Self::NONE`] for
            /// the letters that stand for the defaults, `None` for all others.
            pub(crate) const fn of_letter(letter: u8) -> Option<Self> {
                match letter {
                    b'0' | b'a' => Some(Self::NONE),
                    $($($letter => Some(Self::$constant),)?)*
                    _ => None,
                }
            }
        }
    };
}

// The number is that of the option's bit. The letters of digests stand in `DigestKind`, those with
// an argument in `letters.rs`.
options! {
    /// Compress the data (`Z…`).
    COMPRESS = 2;
    /// Do not descend into directories.
    NO_RECURSION = 3, b'h';
    /// Cross into other file systems.
    MULTI_FS = 4, b'f';
    /// Leave blocks of zeros out.
    SPARSE = 5, b's';
    /// Replace if newer; unused in a backup.
    IF_NEWER = 6, b'w';
    /// Never replace; unused in a backup.
    NO_REPLACE = 7, b'n';
    /// Read FIFOs that are named in the FileSet.
    READ_FIFO = 8, b'r';
    /// Portable format; no effect on Linux.
    PORTABLE = 10, b'p';
    /// Only the mtime says whether a file changed.
    MTIME_ONLY = 11, b'm';
    /// Keep access times: of files that a Verify job reads (`docs/differences.md`).
    KEEP_ATIME = 12, b'k';
    /// The block rejects what it matches.
    EXCLUDE = 13, b'e';
    /// Save POSIX ACLs.
    ACL = 14, b'A';
    /// No hard-link handling.
    NO_HARD_LINK = 15, b'H';
    /// Patterns ignore case.
    IGNORE_CASE = 16, b'i';
    /// HFS+; no effect on Linux.
    HFS_PLUS = 17, b'R';
    /// Open files without touching their access time.
    NO_ATIME = 22, b'K';
    /// Wild-cards treat `/` as special.
    ENHANCED_WILD = 23, b'W';
    /// Look after reading whether the file changed meanwhile.
    CHECK_CHANGES = 24, b'c';
    /// Strip leading path components (`P<n>:`).
    STRIP_PATH = 25;
    /// Honor the no-dump inode flag.
    HONOR_NO_DUMP = 26, b'N';
    /// Save extended attributes.
    XATTR = 27, b'X';
    /// Deduplicate (`d<n>`).
    DEDUP = 31;
}

impl Flags {
    /// No option.
    pub const NONE: Self = Self(0);

    /// A digest of this kind.
    pub const fn of_digest(kind: DigestKind) -> Self {
        Self::bit(kind.option_bit())
    }

    /// The one digest that is made: of those set, the first in the order of precedence (reference
    /// 03 §2.2).
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

    /// The set without the options of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The options of both sets.
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn contains_needs_every_option() {
        let flags = Flags::XATTR | Flags::SPARSE;
        assert!(flags.contains(Flags::XATTR));
        assert!(!flags.contains(Flags::XATTR | Flags::ACL));
        assert!(flags.contains(Flags::NONE));
    }

    #[test]
    fn no_two_options_share_a_bit_or_a_letter() {
        let digests = DigestKind::ALL.map(Flags::of_digest);
        let all = [Flags::LISTED, &digests].concat();
        let bits: HashSet<u64> = all.iter().map(|flag| flag.bits()).collect();
        assert_eq!(bits.len(), all.len());
        for kind in DigestKind::ALL {
            let letter = kind.option().as_bytes()[0];
            assert_eq!(Flags::of_letter(letter), None, "{kind}: {} is another option", kind.option());
        }
    }

    #[test]
    fn bit_numbers_are_those_of_the_plugin_interface() {
        assert_eq!(Flags::of_digest(DigestKind::Md5).bits(), 1 << 1);
        assert_eq!(Flags::EXCLUDE.bits(), 1 << 13);
        assert_eq!(Flags::of_digest(DigestKind::Xxh3_128).bits(), 1 << 34);
        assert_eq!(Flags::XATTR.bits(), 1 << 27);
    }
}
