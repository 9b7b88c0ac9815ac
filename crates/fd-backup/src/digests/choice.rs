//! Which digests an entry's data has, and which of them are batched.

use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, suits_batch};
use fd_records::{DigestKind, FileType};
use fd_walk::Entry;

/// The largest file whose digests are batched, in bytes as far as its attributes tell.
const LARGEST: i64 = 256 << 10;

/// The digests of one entry.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Digests {
    /// The kind of its digest record.
    pub(crate) record: Option<DigestKind>,
    /// The kind that is signed.
    pub(crate) signed: Option<DigestKind>,
    /// The kinds that are computed later, together with those of other files.
    pub(crate) batched: DigestSet,
}

impl Digests {
    /// Batches the kinds that are cheaper in a batch and may wait.
    pub(crate) fn new(
        record: Option<DigestKind>,
        signed: Option<DigestKind>,
        entry: &Entry,
        processor: Processor,
    ) -> Self {
        let is_small = entry.file_type != FileType::Raw && (0..=LARGEST).contains(&entry.stat.size);
        let suits = |kind: &DigestKind| is_small && suits_batch(*kind, processor);
        // A record that the other names of an inode share may not wait.
        let waiting = |kind: &DigestKind| suits(kind) && (record != Some(*kind) || entry.hard_link.is_none());
        let batched = [record, signed].into_iter().flatten().filter(waiting).collect();
        Self { record, signed, batched }
    }

    /// The kinds that are computed while the data is read.
    pub(crate) fn streamed(self) -> DigestSet {
        let all: DigestSet = [self.record, self.signed].into_iter().flatten().collect();
        all.without(self.batched)
    }
}
