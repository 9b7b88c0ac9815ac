//! The digests of a file that are computed while it is read.

use fd_crypto::{DigestError, DigestSet, Digesters};
use fd_records::{DigestKind, DigestValue};

use crate::digests::ahead::Follower;

/// Computes the digests of one file after the other.
#[derive(Default)]
pub(crate) struct StreamedDigests<'j> {
    /// Also for data that is read before its entry is saved.
    pub(crate) digesters: Digesters,
    /// Set if digests of the present file are made ahead.
    follower: Option<Follower<'j>>,
}

impl<'j> StreamedDigests<'j> {
    /// Begins a file with digests of these kinds.
    pub(crate) fn begin(&mut self, kinds: DigestSet, follower: Option<Follower<'j>>) -> Result<(), DigestError> {
        let ahead = follower.as_ref().map_or(DigestSet::EMPTY, Follower::kinds);
        self.follower = follower;
        self.digesters.begin(kinds.without(ahead))
    }

    /// Takes the next block of the file.
    pub(crate) fn update(&mut self, block: &[u8]) {
        if let Some(follower) = &mut self.follower {
            follower.update(block);
        }
        self.digesters.update(block);
    }

    /// The digest of this kind of the whole file.
    pub(crate) fn finish(&mut self, kind: DigestKind) -> Result<DigestValue, DigestError> {
        match self.follower.as_ref().and_then(|follower| follower.values().get(kind)) {
            Some(value) => Ok(value),
            None => self.digesters.finish(kind),
        }
    }

    /// Ends the file: its digests are no longer needed.
    pub(crate) fn end(&mut self) {
        self.follower = None;
    }
}
