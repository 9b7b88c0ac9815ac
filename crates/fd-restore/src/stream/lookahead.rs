//! Records that are looked at before it is their turn.

use std::collections::VecDeque;
use std::time::Duration;

use fd_messages::CancelToken;
use fd_records::{RecordHeader, Stream, StreamClass};

use super::records::{End, Next, SequenceError, next_record};
use super::source::RecordSource;

/// The stream of a record that stands among those of a file and is of another file or backup.
pub(crate) const STRAY: Stream = Stream::new(u32::MAX);

/// Which file of which backup a record is of: its session, when that began, and the file's index.
type Origin = (i64, i64, i64);

/// The records of a read session. What was looked at is kept until it is taken; who looks bounds
/// how much that is.
pub(crate) struct Lookahead<'s> {
    source: &'s mut dyn RecordSource,
    cancel: &'s CancelToken,
    /// The file whose records come.
    file: Option<Origin>,
    seen: VecDeque<(RecordHeader, Vec<u8>)>,
    /// The record that was taken last, if it was looked at before.
    taken: Vec<u8>,
    /// What comes after those that were seen, if that is no record.
    then: Option<Result<End, SequenceError>>,
}

impl<'s> Lookahead<'s> {
    pub(crate) fn new(source: &'s mut dyn RecordSource, cancel: &'s CancelToken) -> Self {
        Self { source, cancel, file: None, seen: VecDeque::new(), taken: Vec::new(), then: None }
    }

    /// Takes the next record.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, SequenceError> {
        if self.cancel.is_cancelled() {
            return Ok(Next::End(End::Cancelled));
        }
        if let Some((header, record)) = self.seen.pop_front() {
            self.taken = record;
            return Ok(Next::Record(header, &self.taken));
        }
        match self.then.take() {
            Some(then) => then.map(Next::End),
            None => next_record(self.source, self.cancel).map(|next| checked(&mut self.file, next)),
        }
    }

    /// Takes the next record if it was looked at, even if the job is cancelled.
    pub(crate) fn take(&mut self) -> Option<(Stream, Vec<u8>)> {
        self.seen.pop_front().map(|(header, record)| (header.stream, record))
    }

    /// The record that comes after `before` others; `None` if there is none, or if it does not come
    /// within about `patience`.
    pub(crate) fn look(&mut self, before: usize, patience: Duration) -> Option<(Stream, &[u8])> {
        while self.seen.len() <= before && self.then.is_none() && self.source.is_near(patience) {
            match next_record(self.source, self.cancel).map(|next| checked(&mut self.file, next)) {
                Ok(Next::Record(header, record)) => self.seen.push_back((header, record.to_vec())),
                Ok(Next::End(end)) => self.then = Some(Ok(end)),
                Err(error) => self.then = Some(Err(error)),
            }
        }
        self.seen.get(before).map(|(header, record)| (header.stream, record.as_slice()))
    }

    /// Whether the data ends after the records that were seen, as it should.
    pub(crate) fn ends_well(&self) -> bool {
        self.then == Some(Ok(End::EndOfData))
    }

    /// Whether something comes within about `patience`.
    pub(crate) fn is_near(&mut self, patience: Duration) -> bool {
        !self.seen.is_empty() || self.then.is_some() || self.source.is_near(patience)
    }
}

/// What comes next, with the stream [`STRAY`] if it is a record of another file than that whose
/// attributes came last.
fn checked<'a>(file: &mut Option<Origin>, next: Next<'a>) -> Next<'a> {
    let Next::Record(mut header, record) = next else { return next };
    let origin = (header.vol_session_id, header.vol_session_time, header.file_index);
    match header.stream.class() {
        StreamClass::Attributes | StreamClass::AttributesUpdate => *file = Some(origin),
        StreamClass::Data(_)
        | StreamClass::SessionData
        | StreamClass::SignedDigest
        | StreamClass::Digest(_)
        | StreamClass::Metadata(_)
        | StreamClass::PluginMetadata
        | StreamClass::PluginXacl(_)
            if file.is_some_and(|file| file != origin) =>
        {
            header.stream = STRAY;
        }
        _ => {}
    }
    Next::Record(header, record)
}
