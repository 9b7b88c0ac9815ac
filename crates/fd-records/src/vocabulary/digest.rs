//! Kinds of digests with all facts about them except the algorithm, and values of digests.

use std::fmt;

/// The facts about a kind of digest.
struct Facts {
    name: &'static str,
    len: usize,
    option: &'static str,
    option_bit: u32,
    verify_letter: u8,
    directive: Option<&'static str>,
    is_guessed: bool,
    is_quick: bool,
}

/// Makes the type, the list of its values and the table of their facts from one row for each kind.
macro_rules! digest_kinds {
    ($($(#[$doc:meta])* $kind:ident { $($fact:ident: $value:expr),* $(,)? })*) => {
        /// The digest algorithms that a FileSet can ask for (reference 03 §2.2, 04 §9).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum DigestKind {
            $($(#[$doc])* $kind,)*
        }

        impl DigestKind {
            /// Every kind, in the order of precedence: of those set in a FileSet the first is made.
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];

            const fn facts(self) -> Facts {
                match self {
                    $(Self::$kind => Facts { $($fact: $value),* },)*
                }
            }
        }
    };
}

// The stream of a kind, whose name is also that of the digest in messages, is in the table of
// streams (`stream.rs`).
digest_kinds! {
    /// MD5.
    Md5 {
        name: "MD5", len: 16, option: "M", option_bit: 1, verify_letter: b'5',
        directive: Some("md5"), is_guessed: true, is_quick: false,
    }
    /// SHA-1.
    Sha1 {
        name: "SHA1", len: 20, option: "S1", option_bit: 9, verify_letter: b'1',
        directive: Some("sha1"), is_guessed: true, is_quick: false,
    }
    /// SHA-256.
    Sha256 {
        name: "SHA256", len: 32, option: "S2", option_bit: 19, verify_letter: b'2',
        directive: Some("sha256"), is_guessed: true, is_quick: false,
    }
    /// SHA-512.
    Sha512 {
        name: "SHA512", len: 64, option: "S3", option_bit: 20, verify_letter: b'3',
        directive: None, is_guessed: false, is_quick: false,
    }
    /// XXH64 with seed 0.
    Xxh64 {
        name: "XXHASH64", len: 8, option: "S5", option_bit: 32, verify_letter: b'6',
        directive: Some("xxhash64"), is_guessed: true, is_quick: true,
    }
    /// XXH3 with 64 bits.
    Xxh3_64 {
        name: "XXH3_64", len: 8, option: "S6", option_bit: 33, verify_letter: b'7',
        directive: None, is_guessed: true, is_quick: true,
    }
    /// XXH3 with 128 bits.
    Xxh3_128 {
        name: "XXH3_128", len: 16, option: "S7", option_bit: 34, verify_letter: b'8',
        directive: Some("xxh3_128"), is_guessed: true, is_quick: true,
    }
}

impl DigestKind {
    /// Length in bytes of the longest digest.
    pub const LONGEST: usize = 64;

    /// The kinds that a signature can be over, the default of `PKI Digest` first (reference 04
    /// §12.4).
    pub const SIGNED: [Self; 3] = [Self::Sha256, Self::Md5, Self::Sha1];

    /// The algorithm's name in messages and verify packets, without the word "digest".
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Length of the value in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the length of a digest is never zero")]
    pub const fn len(self) -> usize {
        self.facts().len
    }

    /// The letters of an `O` line that ask for it.
    pub const fn option(self) -> &'static str {
        self.facts().option
    }

    /// The number of its bit among the options of a FileSet, which plugins see.
    pub const fn option_bit(self) -> u32 {
        self.facts().option_bit
    }

    /// The letter of the `verify` and `accurate` options that asks for a comparison of digests.
    pub const fn verify_letter(self) -> u8 {
        self.facts().verify_letter
    }

    /// Its word in the directive `PKI Digest`; `None` where the stock daemon has none.
    pub const fn directive(self) -> Option<&'static str> {
        self.facts().directive
    }

    /// Whether a restore makes it while no record has told the kind and the data can't be read
    /// again: the record of a digest is only behind the data. Not a kind that is rare and costs
    /// much.
    pub const fn is_guessed(self) -> bool {
        self.facts().is_guessed
    }

    /// Whether making it takes less than handing the data to another thread.
    pub const fn is_quick(self) -> bool {
        self.facts().is_quick
    }
}

impl fmt::Display for DigestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A finished digest: its bytes in the order of the record.
#[derive(Clone, Copy)]
pub struct DigestValue {
    kind: DigestKind,
    bytes: [u8; DigestKind::LONGEST],
}

impl DigestValue {
    /// The value of `kind` with these bytes in the order of the record; `None` if their number is
    /// not that of the kind.
    pub fn from_bytes(kind: DigestKind, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == kind.len()).then(|| Self::from_start(kind, bytes))
    }

    /// The value of `kind` with the first [`DigestKind::len`] of `bytes`; missing bytes are 0.
    pub fn from_start(kind: DigestKind, bytes: &[u8]) -> Self {
        let mut value = [0; DigestKind::LONGEST];
        for (slot, byte) in value.iter_mut().zip(bytes) {
            *slot = *byte;
        }
        Self { kind, bytes: value }
    }

    /// Which algorithm made it.
    pub const fn kind(&self) -> DigestKind {
        self.kind
    }

    /// The bytes, [`DigestKind::len`] of them.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.kind.len()).unwrap_or(&self.bytes)
    }
}

impl PartialEq for DigestValue {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for DigestValue {}

impl fmt::Debug for DigestValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind)?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_kinds_share_a_name_an_option_or_a_letter() {
        let unique = |fact: &dyn Fn(DigestKind) -> String| {
            let facts: HashSet<_> = DigestKind::ALL.iter().map(|kind| fact(*kind)).collect();
            assert_eq!(facts.len(), DigestKind::ALL.len(), "{facts:?}");
        };
        unique(&|kind| kind.name().to_owned());
        unique(&|kind| kind.option().to_owned());
        unique(&|kind| kind.option_bit().to_string());
        unique(&|kind| kind.verify_letter().to_string());
        unique(&|kind| kind.directive().unwrap_or(kind.name()).to_owned());
    }

    #[test]
    fn every_length_is_within_the_longest() {
        assert_eq!(DigestKind::ALL.iter().map(|kind| kind.len()).max(), Some(DigestKind::LONGEST));
    }

    #[test]
    fn a_value_needs_as_many_bytes_as_its_kind_has() {
        assert!(DigestValue::from_bytes(DigestKind::Md5, &[0; 15]).is_none());
        assert_eq!(DigestValue::from_bytes(DigestKind::Md5, &[7; 16]).unwrap().as_bytes(), [7; 16]);
    }
}
