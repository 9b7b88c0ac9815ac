//! Which digests are made of an entry's data, and in which way. Not here: making them.

use fd_crypto::processor::Processor;
use fd_records::{DigestKind, FileType};
use fd_walk::Entry;

use crate::digests::late::LateDigests;
use crate::digests::long::LongDigests;
use crate::file::kinds::is_read;

/// How a digest is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// While the data is read.
    Alone,
    /// Later, with those of other files.
    Late,
    /// Together with those of other large files.
    Together,
}

/// One digest of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest {
    pub(crate) kind: DigestKind,
    pub(crate) way: Way,
}

/// The digests of one entry. If both are of the same kind, there is one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Digests {
    /// For its digest record.
    pub(crate) record: Option<Digest>,
    /// For its signature.
    pub(crate) signed: Option<Digest>,
}

impl Digests {
    /// The fastest way to these digests.
    pub(crate) fn new(
        record: Option<DigestKind>,
        signed: Option<DigestKind>,
        entry: &Entry,
        processor: Processor,
    ) -> Self {
        let can_wait = entry.file_type != FileType::Raw;
        let is_large = is_read(entry.file_type, &entry.stat) && entry.stat.size > LateDigests::LARGEST;
        let digest = |kind, can_wait: bool| {
            let way = if can_wait && LateDigests::suits(kind, entry.stat.size, processor) {
                Way::Late
            } else if is_large && LongDigests::suits(kind, processor) {
                Way::Together
            } else {
                Way::Alone
            };
            Digest { kind, way }
        };
        // The other names of an inode have the same record.
        let record = record.map(|kind| digest(kind, can_wait && entry.hard_link.is_none()));
        let same = |kind| record.filter(|record| record.kind == kind);
        let signed = signed.map(|kind| same(kind).unwrap_or_else(|| digest(kind, can_wait)));
        Self { record, signed }
    }

    /// The kinds that are made in this way, each once.
    pub(crate) fn kinds(self, way: Way) -> [Option<DigestKind>; 2] {
        let of = |digest: Option<Digest>| digest.filter(|digest| digest.way == way).map(|digest| digest.kind);
        let (record, signed) = (of(self.record), of(self.signed));
        [record, signed.filter(|kind| record != Some(*kind))]
    }

    /// Whether there are such.
    pub(crate) fn any(self, way: Way) -> bool {
        self.kinds(way) != [None, None]
    }

    /// Whether what is signed is the digest of the record.
    pub(crate) fn is_one(self) -> bool {
        matches!((self.record, self.signed), (Some(record), Some(signed)) if record.kind == signed.kind)
    }
}
