//! Which kind of digest the next file has, by the files before.

use fd_crypto::DigestSet;
use fd_records::DigestKind;

use super::taken::SMALL;

/// After so many files in a row without a digest nothing is prepared for one, until one comes; for
/// a file that can be read again after one that is not small.
pub(super) const PATIENCE: u32 = 32;

/// The kinds of one sort of record.
struct Kinds {
    /// The kind of the last one.
    last: Option<DigestKind>,
    /// The kinds of the first one, the likely one first.
    first: Vec<DigestKind>,
}

impl Kinds {
    /// Those of which one is expected of data that can be read again, or can't be.
    fn of(&self, can_be_read_again: bool) -> &[DigestKind] {
        match &self.last {
            Some(_) => self.last.as_slice(),
            None if can_be_read_again => self.first.get(..1).unwrap_or_default(),
            None => &self.first,
        }
    }
}

/// What is expected of the next file.
pub(crate) struct Expected {
    recorded: Kinds,
    signed: Kinds,
    /// Whether a signature that can be checked is expected, as the last file had one.
    signature: bool,
    /// Files in a row that had no digest.
    without: u32,
    /// The size of the longest of them.
    longest_without: u64,
}

impl Expected {
    /// Digests of files are of one of the kinds of `first`, if they are known, until the first one
    /// has come. With `signatures_count`, there will be signatures.
    pub(super) fn new(first: Option<Vec<DigestKind>>, signatures_count: bool) -> Self {
        let guessed = || DigestKind::ALL.into_iter().filter(|kind| kind.is_guessed()).collect();
        let first = first.unwrap_or_else(guessed);
        let signed = if signatures_count { DigestKind::SIGNED.to_vec() } else { Vec::new() };
        Self {
            recorded: Kinds { last: None, first },
            signed: Kinds { last: None, first: signed },
            signature: signatures_count,
            without: 0,
            longest_without: 0,
        }
    }

    /// The file has a digest record of this kind, and so will the next ones.
    pub(crate) const fn record(&mut self, kind: DigestKind) {
        (self.without, self.longest_without) = (0, 0);
        self.signature = false;
        self.recorded.last = Some(kind);
    }

    /// The file has a signature that can be checked, so its digest record does not matter.
    pub(crate) const fn signature(&mut self) {
        (self.without, self.longest_without) = (0, 0);
        self.signature = true;
    }

    /// The signature is over a digest of this kind.
    pub(super) const fn signed_with(&mut self, kind: DigestKind) {
        self.signed.last = Some(kind);
    }

    /// Whether a signature that can be checked is expected.
    pub(super) const fn expects_signature(&self) -> bool {
        self.signature
    }

    /// A file with this size in its attributes begins. Returns whether it is worth to prepare for
    /// its digest.
    pub(super) fn file(&mut self, size: u64, can_be_read_again: bool) -> bool {
        self.without = self.without.saturating_add(1);
        let gives_up = self.has_given_up() || self.longest_without > SMALL && can_be_read_again;
        self.longest_without = self.longest_without.max(size);
        self.signature || !gives_up
    }

    /// Whether so many files had no digest that nothing is prepared for one. Where signatures count
    /// that is never so: one that can't be checked is an error.
    pub(super) const fn has_given_up(&self) -> bool {
        self.without > PATIENCE && self.signed.first.is_empty()
    }

    /// The kinds of which one is expected, the likely one first.
    pub(super) fn kinds(&self, can_be_read_again: bool) -> &[DigestKind] {
        if self.signature { &self.signed } else { &self.recorded }.of(can_be_read_again)
    }

    /// All kinds of which one may be needed: of what can't be read again, each that a signature can
    /// be over, whatever those before are over.
    pub(super) fn all(&self, can_be_read_again: bool) -> DigestSet {
        let signed = if can_be_read_again { self.signed.of(true) } else { &self.signed.first };
        self.kinds(can_be_read_again).iter().chain(signed).copied().collect()
    }
}
