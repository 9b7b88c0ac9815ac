//! Which digests are made of an entry's data, and which of them in a batch. Not here: making them.

use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, suits_batch};
use fd_records::{DigestKind, FileType};
use fd_walk::Entry;

/// The largest file whose digests are batched, in bytes as far as its attributes tell.
const LARGEST: i64 = 256 << 10;

/// The digests of one entry.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Digests {
    /// For its digest record.
    pub(crate) record: Option<DigestKind>,
    /// For its signature.
    pub(crate) signed: Option<DigestKind>,
    /// Those that are made later, together with those of other files.
    pub(crate) batched: DigestSet,
}

impl Digests {
    /// Batches what is cheaper in a batch and may wait.
    pub(crate) fn new(
        record: Option<DigestKind>,
        signed: Option<DigestKind>,
        entry: &Entry,
        processor: Processor,
    ) -> Self {
        let is_small = entry.file_type != FileType::Raw && (0..=LARGEST).contains(&entry.stat.size);
        let suits = |kind: &DigestKind| is_small && suits_batch(*kind, processor);
        // The other names of an inode have the same record.
        let waiting = |kind: &DigestKind| suits(kind) && (record != Some(*kind) || entry.hard_link.is_none());
        let batched = [record, signed].into_iter().flatten().filter(waiting).collect();
        Self { record, signed, batched }
    }

    /// Those that are made while the data is read.
    pub(crate) fn streamed(self) -> DigestSet {
        let all: DigestSet = [self.record, self.signed].into_iter().flatten().collect();
        all.without(self.batched)
    }
}
