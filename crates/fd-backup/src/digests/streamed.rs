//! The digests of the file that is being read, as far as they are not batched.

use fd_crypto::{DigestError, DigestSet, Digesters};
use fd_records::{DigestKind, DigestValue};

use crate::digests::ahead::Follower;

/// Makes the digests of one file after the other.
#[derive(Default)]
pub(crate) struct StreamedDigests<'j> {
    pub(crate) digesters: Digesters,
    /// Takes the digests of the present file from those made ahead.
    follower: Option<Follower<'j>>,
}

impl<'j> StreamedDigests<'j> {
    /// A file begins of which digests of these kinds are wanted.
    pub(crate) fn begin(&mut self, kinds: DigestSet, follower: Option<Follower<'j>>) -> Result<(), DigestError> {
        let ahead = follower.as_ref().map_or(DigestSet::EMPTY, Follower::kinds);
        self.follower = follower;
        self.digesters.begin(kinds.without(ahead))
    }

    /// The next block of it.
    pub(crate) fn update(&mut self, block: &[u8]) {
        if let Some(follower) = &mut self.follower {
            follower.update(block);
        }
        self.digesters.update(block);
    }

    /// The digest of this kind of all of it.
    pub(crate) fn finish(&mut self, kind: DigestKind) -> Result<DigestValue, DigestError> {
        match self.follower.as_ref().and_then(|follower| follower.values().get(kind)) {
            Some(value) => Ok(value),
            None => self.digesters.finish(kind),
        }
    }

    /// The digests of the file are no longer needed.
    pub(crate) fn end(&mut self) {
        self.follower = None;
    }
}
