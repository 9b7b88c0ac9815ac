//! Digests of small files, made many at a time, which costs a fifth of making them one by one.
//!
//! The data of a file is kept, and what the volume records about it. Once there is enough, all are
//! digested together. Until then it is not known which files are wrong, so later messages are held
//! (see [`crate::report`]).

use std::convert::Infallible;
use std::ops::Range;

use fd_crypto::processor::Processor;
use fd_crypto::{DigestBatch, DigestSet};
use fd_records::{DigestKind, DigestValue};

use super::checked::{Checked, Finding, Recorded, Ticket};

/// Small files whose digests are not made yet.
pub(super) struct SmallFiles {
    batch: DigestBatch<Waiting>,
    /// The names of the files that wait.
    names: Vec<u8>,
}

struct Waiting {
    ticket: Ticket,
    name: Range<usize>,
    kind: DigestKind,
    recorded: Recorded,
}

impl SmallFiles {
    pub(super) fn new(processor: Processor) -> Self {
        Self { batch: DigestBatch::new(processor), names: Vec::new() }
    }

    /// A file begins. If it is longer than its attributes say, digests of these kinds are made
    /// while it is written.
    pub(super) fn begin(&mut self, expected: DigestSet) {
        self.batch.begin(expected);
    }

    /// Keeps the next data of the file that is being written.
    pub(super) fn keep(&mut self, data: &[u8]) {
        self.batch.push(data);
    }

    /// Whether a digest of this kind can be made of the file that is being written.
    pub(super) const fn can_make(&self, kind: DigestKind) -> bool {
        self.batch.can_make(kind)
    }

    /// The digest of the file that is being written, which is dropped.
    pub(super) fn make_now(&mut self, kind: DigestKind) -> Option<DigestValue> {
        self.batch.end_alone(kind)
    }

    /// Drops the file that is being written.
    pub(super) fn forget(&mut self) {
        self.batch.begin(DigestSet::EMPTY);
    }

    /// Adds the file that is being written, which is complete, under this name.
    pub(super) fn add(&mut self, ticket: Ticket, kind: DigestKind, recorded: Recorded, name: &[u8]) {
        let begin = self.names.len();
        self.names.extend_from_slice(name);
        let name = begin..self.names.len();
        self.batch.end(DigestSet::EMPTY.with(kind), Waiting { ticket, name, kind, recorded });
    }

    /// Whether there are files that wait.
    pub(super) const fn is_empty(&self) -> bool {
        !self.batch.has_messages()
    }

    /// Whether there are enough for [`Self::settle`].
    pub(super) const fn are_many(&self) -> bool {
        self.batch.is_full()
    }

    /// Digests all files that wait, and passes their outcomes on.
    pub(super) fn settle(&mut self, each: &mut dyn FnMut(Checked<'_>)) {
        let names = &self.names;
        let Ok(()) = self.batch.finish(|file, values| {
            let name = names.get(file.name.clone()).unwrap_or_default();
            let finding = values.get(file.kind).map_or(Finding::None, Finding::Has);
            each(Checked { ticket: file.ticket, name, recorded: &file.recorded, finding });
            Ok::<_, Infallible>(())
        });
        self.names.clear();
    }
}
