//! The digest of the current file: how it is made, and of which kind it is.
//!
//! The stock daemon ignores digest records; here the data is compared with them. The record follows
//! the data, so its kind is known in time only from the files before. What there is of the data
//! then decides: of a small file the bytes are kept, a long one is read back, and what is neither
//! is digested while it comes. Digests of the first two are made later, of many files together. A
//! file whose signature is checked needs no digest record: the signature is over the same data.
//!
//! The kind of the first one is guessed, and a file for which the guess was wrong is read again.
//! Where it can't be, all likely kinds are made. A job without digests soon stops preparing for
//! them; when one comes, its file is read again, too.

use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, Digester};
use fd_messages::CancelToken;
use fd_records::{DigestKind, DigestValue};

use super::checked::{Checked, Finding, Recorded, Ticket};
use super::expected::{Expected, SMALL, Taker};
use super::long::LongFiles;
use super::small::SmallFiles;
use super::streamed::StreamedDigests;
use crate::output_file::OutputFile;

/// The largest file that is read back together with others, by the size in its attributes. A group
/// of files takes as long as its longest one.
const MOST_LEFT: u64 = 64 << 20;

/// A longer file is not read again alone: the job would stand still for minutes.
const AGAIN: u64 = 16 << 30;

/// Whether a file with this size in its attributes is to be opened so that it can be read back.
pub(crate) fn may_be_read_back(size: i64) -> bool {
    u64::try_from(size).is_ok_and(|size| size > SMALL)
}

/// What the digest of the current file is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Basis {
    /// The file is not checked.
    Nothing,
    /// No digest is expected. If there is one, the file is read again.
    Unprepared,
    /// Its bytes, which are kept.
    Kept,
    /// The file itself, which is read back.
    Left,
    /// The data while it comes.
    Streamed,
}

/// When the outcome for a file is known.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Later, together with those of other files; it has this ticket.
    Later(Ticket),
    /// At once; with what the volume records.
    Now(Recorded, Finding),
}

/// Makes digests of what is restored.
pub(crate) struct DigestCheck {
    /// Whether digest records are compared.
    records_count: bool,
    expected: Expected,
    /// What takes the data of the current file.
    taker: Taker,
    basis: Basis,
    /// Bytes of the current file.
    length: u64,
    /// Whether the current file holds what came, in that order, and is not too long to be read
    /// again.
    is_readable: bool,
    /// The next ticket.
    next: Ticket,
    small: SmallFiles,
    long: LongFiles,
    streamed: StreamedDigests,
    cancel: CancelToken,
}

impl DigestCheck {
    /// With `records_count`, digest records are compared; with `signatures_count`, there will be
    /// signatures.
    pub(crate) fn new(records_count: bool, signatures_count: bool, processor: Processor) -> Self {
        Self {
            records_count,
            expected: Expected::new(signatures_count),
            taker: Taker::Disk,
            basis: Basis::Nothing,
            length: 0,
            is_readable: false,
            next: 0,
            small: SmallFiles::new(processor),
            long: LongFiles::new(processor),
            streamed: StreamedDigests::default(),
            cancel: CancelToken::default(),
        }
    }

    /// Which digests are expected.
    pub(crate) const fn expected(&mut self) -> &mut Expected {
        &mut self.expected
    }

    /// The kinds of which one is expected, the likely one first.
    fn kinds(&self) -> &[DigestKind] {
        self.expected.kinds(self.taker, self.is_readable)
    }

    /// All kinds of which one may be needed.
    fn all_expected(&self) -> DigestSet {
        self.expected.all(self.taker, self.is_readable)
    }

    /// A file with this size in its attributes begins; `None` if a plugin takes its data.
    pub(crate) fn begin(&mut self, size: i64, file: Option<&OutputFile>) {
        self.taker = if file.is_some() { Taker::Disk } else { Taker::Plugin };
        self.abandon();
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.is_readable = size <= AGAIN && file.is_some_and(OutputFile::is_of_this_job);
        let is_likely = self.expected.file(size, self.is_readable);
        let likely = self.kinds().first().copied();
        let can_be_left = || likely.is_some_and(|kind| self.long.can_take(kind, size));
        if !self.expected.expects_signature() && !self.records_count {
            self.basis = Basis::Nothing;
        } else if self.all_expected().is_empty() || !is_likely {
            self.basis = Basis::Unprepared;
        } else if size <= SMALL {
            self.small.begin(self.all_expected());
            self.basis = Basis::Kept;
        } else if size <= MOST_LEFT && can_be_left() && file.is_some_and(OutputFile::can_be_read_later) {
            self.basis = Basis::Left;
        } else {
            self.stream();
        }
    }

    /// The current file is digested from here on.
    fn stream(&mut self) {
        self.streamed.begin(self.all_expected());
        self.basis = Basis::Streamed;
    }

    /// Stops checking the current file.
    pub(crate) fn abandon(&mut self) {
        self.small.forget();
        self.streamed.take_back();
        self.basis = Basis::Nothing;
        self.length = 0;
    }

    /// The next bytes of the current file, before they are written. `in_order`: whether they are
    /// appended unchanged to those before.
    pub(crate) fn update(&mut self, data: &[u8], in_order: bool, file: Option<&OutputFile>) {
        if !in_order && self.is_readable {
            self.begin_again(file);
        }
        match self.basis {
            Basis::Kept => self.small.keep(data),
            Basis::Streamed => self.streamed.update(data),
            Basis::Nothing | Basis::Unprepared | Basis::Left => {}
        }
        self.length = self.length.saturating_add(data.len() as u64);
        self.is_readable &= in_order && self.length <= AGAIN;
    }

    /// The current file can't be read again from here on: what counted on that is digested while it
    /// comes, from the beginning.
    fn begin_again(&mut self, file: Option<&OutputFile>) {
        let prepared = self.all_expected();
        self.is_readable = false;
        let needed = self.all_expected();
        let is_enough = match self.basis {
            Basis::Nothing | Basis::Kept => true,
            Basis::Unprepared => needed.is_empty() || self.expected.has_given_up(),
            Basis::Left => false,
            Basis::Streamed => needed == prepared,
        };
        if is_enough {
            return;
        }
        self.stream();
        let before = self.length;
        let again = file.and_then(|file| file.read_again(&self.cancel, |data| self.streamed.update(data)).ok());
        if before > 0 && again != Some(before) {
            self.basis = Basis::Nothing;
        }
    }

    /// Digests the current file, all of which is written, to compare it with what the volume
    /// records.
    pub(crate) fn check(
        &mut self,
        kind: DigestKind,
        recorded: Recorded,
        name: &[u8],
        file: Option<&OutputFile>,
    ) -> Answer {
        if matches!(recorded, Recorded::Signature(_)) {
            self.expected.signed_with(kind);
        }
        let ticket = self.next;
        if self.basis == Basis::Kept && self.small.can_make(kind) {
            self.small.add(ticket, kind, recorded, name);
        } else if self.basis == Basis::Left
            && self.long.can_take(kind, self.length)
            && let Some(Ok(reader)) = file.map(OutputFile::reader)
        {
            self.long.add(ticket, reader, self.length, kind, recorded, name);
        } else {
            return Answer::Now(recorded, self.make_now(kind, file));
        }
        self.next += 1;
        self.basis = Basis::Nothing;
        Answer::Later(ticket)
    }

    /// Digests the current file, all of which is written. It can be done only once.
    pub(crate) fn make_now(&mut self, kind: DigestKind, file: Option<&OutputFile>) -> Finding {
        let made = |value: Option<DigestValue>| value.map_or(Finding::None, Finding::Has);
        match std::mem::replace(&mut self.basis, Basis::Nothing) {
            Basis::Nothing => Finding::None,
            Basis::Kept if self.small.can_make(kind) => made(self.small.make_now(kind)),
            Basis::Kept | Basis::Unprepared if !self.is_readable => Finding::None,
            Basis::Kept | Basis::Unprepared | Basis::Left => self.read_again(kind, file),
            Basis::Streamed => match self.streamed.finish(kind) {
                None if self.is_readable => self.read_again(kind, file),
                value => made(value),
            },
        }
    }

    /// Digests what is in the current file.
    fn read_again(&self, kind: DigestKind, file: Option<&OutputFile>) -> Finding {
        let (Some(file), Ok(mut digester)) = (file, Digester::new(kind)) else { return Finding::None };
        match (file.read_again(&self.cancel, |data| digester.update(data)), digester.finish()) {
            (Err(_), _) if self.cancel.is_cancelled() => Finding::Cancelled,
            (Err(errno), _) => Finding::Unreadable(errno),
            (Ok(length), Ok(digest)) if length == self.length => Finding::Has(digest),
            (Ok(_), Ok(digest)) => Finding::Changed(digest),
            (Ok(_), Err(_)) => Finding::None,
        }
    }

    /// The job does not change the current file any more.
    pub(crate) fn leave(&mut self) {
        self.long.leave();
    }

    /// Sets the token that stops the reading of files.
    pub(crate) fn belong_to(&mut self, cancel: &CancelToken) {
        self.cancel = cancel.clone();
        self.long.belong_to(cancel);
    }

    /// Whether small files wait for their digests.
    pub(crate) const fn has_small(&self) -> bool {
        !self.small.is_empty()
    }

    /// Whether there are so many that their digests should be made now.
    pub(crate) const fn small_are_many(&self) -> bool {
        self.small.are_many()
    }

    /// Whether long files wait for their digests or were not reported yet.
    pub(crate) fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Whether this is a long file that waits for its digest.
    pub(crate) fn waits_for(&self, device: u64, inode: u64) -> bool {
        self.long.has(device, inode)
    }

    /// Goes on with long files. Returns whether there are outcomes to report.
    pub(crate) fn go_on(&mut self) -> bool {
        self.long.go_on()
    }

    /// Makes all digests of long files.
    pub(crate) fn finish(&mut self) {
        self.long.finish();
    }

    /// Makes the digests of small files, and passes on their outcomes and those of long files that
    /// are known.
    pub(crate) fn settle(&mut self, mut each: impl FnMut(Checked<'_>)) {
        self.small.settle(&mut each);
        self.long.settle(&mut each);
    }

    /// Whether the outcome for this ticket is not known yet.
    pub(crate) fn is_unknown(&self, ticket: Ticket) -> bool {
        self.long.is_unknown(ticket)
    }
}

#[cfg(test)]
mod tests;
