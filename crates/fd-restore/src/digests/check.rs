//! The digest of the current file: how it is made, and of which kind it is.
//!
//! The stock daemon ignores digest records; here the data is compared with them. The record follows
//! the data, so its kind is known in time only from the files before. There are two ways: the data
//! is taken while it comes (`taken`), or the file is read back (`read_back`), which costs less
//! where several can be digested together. A file whose signature is checked needs no digest
//! record: the signature is over the same data.
//!
//! The kind of the first one is guessed, and a file for which the guess was wrong is read again.
//! Where it can't be, all likely kinds are made. A job without digests soon stops preparing for
//! them; when one comes, its file is read again, too.

use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, Digester};
use fd_messages::CancelToken;
use fd_records::DigestKind;

use super::checked::{Checked, Finding, Recorded, Ticket};
use super::expected::Expected;
use super::read_back::LongFiles;
use super::taken::{SMALL, TakenData};
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
    /// The data while it comes.
    Taken,
    /// The file itself, which is read back.
    ReadBack,
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
    basis: Basis,
    /// Bytes of the current file.
    length: u64,
    /// Whether the current file holds what came, in that order, and is not too long to be read
    /// again.
    is_readable: bool,
    /// The next ticket.
    next: Ticket,
    taken: TakenData,
    long: LongFiles,
    cancel: CancelToken,
}

impl DigestCheck {
    /// With `records_count`, digest records are compared, the first of which is of one of the kinds
    /// of `first`, if that is known; with `signatures_count`, there will be signatures.
    pub(crate) fn new(
        records_count: bool,
        first: Option<Vec<DigestKind>>,
        signatures_count: bool,
        processor: Processor,
    ) -> Self {
        Self {
            records_count,
            expected: Expected::new(first, signatures_count),
            basis: Basis::Nothing,
            length: 0,
            is_readable: false,
            next: 0,
            taken: TakenData::new(processor),
            long: LongFiles::new(processor),
            cancel: CancelToken::default(),
        }
    }

    /// Which digests are expected.
    pub(crate) const fn expected(&mut self) -> &mut Expected {
        &mut self.expected
    }

    /// A file with this size in its attributes begins; `None` if a plugin takes its data.
    pub(crate) fn begin(&mut self, size: i64, file: Option<&OutputFile>) {
        self.abandon();
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.is_readable = size <= AGAIN && file.is_some_and(OutputFile::is_new);
        let is_likely = self.expected.file(size, self.is_readable);
        let all = self.expected.all(self.is_readable);
        self.basis = if !self.expected.expects_signature() && !self.records_count {
            Basis::Nothing
        } else if all.is_empty() || !is_likely {
            Basis::Unprepared
        } else if self.suits_reading_back(size, file) {
            Basis::ReadBack
        } else {
            self.taken.begin(all);
            Basis::Taken
        };
    }

    /// Whether a file of this size is better read back, together with others.
    fn suits_reading_back(&self, size: u64, file: Option<&OutputFile>) -> bool {
        let likely = self.expected.kinds(self.is_readable).first();
        size > SMALL
            && size <= MOST_LEFT
            && likely.is_some_and(|kind| self.long.can_take(*kind, size))
            && file.is_some_and(OutputFile::can_be_read_later)
    }

    /// Stops checking the current file.
    pub(crate) fn abandon(&mut self) {
        self.taken.begin(DigestSet::EMPTY);
        self.basis = Basis::Nothing;
        self.length = 0;
    }

    /// The next bytes of the current file, before they are written. `in_order`: whether they are
    /// appended unchanged to those before.
    pub(crate) fn update(&mut self, data: &[u8], in_order: bool, file: Option<&OutputFile>) {
        if !in_order && self.is_readable {
            self.begin_again(file);
        }
        if self.basis == Basis::Taken {
            self.taken.update(data);
        }
        self.length = self.length.saturating_add(data.len() as u64);
        self.is_readable &= in_order && self.length <= AGAIN;
    }

    /// The current file can't be read again from here on: what counted on that is taken while it
    /// comes, from the beginning.
    fn begin_again(&mut self, file: Option<&OutputFile>) {
        self.is_readable = false;
        let needed = self.expected.all(false);
        let is_enough = match self.basis {
            Basis::Nothing => true,
            Basis::Unprepared => needed.is_empty() || self.expected.has_given_up(),
            Basis::Taken => self.taken.change_kinds(needed),
            Basis::ReadBack => false,
        };
        if is_enough {
            return;
        }
        self.taken.begin(needed);
        let again = file.and_then(|file| file.read_again(&self.cancel, |data| self.taken.update(data)).ok());
        let is_whole = self.length == 0 || again == Some(self.length);
        self.basis = if is_whole { Basis::Taken } else { Basis::Nothing };
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
        if self.basis == Basis::Taken && self.taken.is_kept() {
            self.taken.add(ticket, kind, recorded, name);
        } else if self.basis == Basis::ReadBack
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
        let basis = std::mem::replace(&mut self.basis, Basis::Nothing);
        let taken = if basis == Basis::Taken { self.taken.make_now(kind) } else { None };
        match taken {
            Some(value) => Finding::Has(value),
            None if basis != Basis::Nothing && self.is_readable => self.read_again(kind, file),
            None => Finding::None,
        }
    }

    /// Digests what is in the current file.
    fn read_again(&self, kind: DigestKind, file: Option<&OutputFile>) -> Finding {
        let (Some(file), Ok(mut digester)) = (file, Digester::new(kind)) else { return Finding::None };
        match (file.read_again(&self.cancel, |data| digester.update(data)), digester.finish()) {
            (Err(_), _) if self.cancel.is_canceled() => Finding::Canceled,
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
        self.taken.has_waiting()
    }

    /// Whether there are so many that their digests should be made now.
    pub(crate) const fn small_are_many(&self) -> bool {
        self.taken.has_many()
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
        self.taken.settle(&mut each);
        self.long.settle(&mut each);
    }

    /// Whether the outcome for this ticket is not known yet.
    pub(crate) fn is_unknown(&self, ticket: Ticket) -> bool {
        self.long.is_unknown(ticket)
    }
}

#[cfg(test)]
mod tests;
