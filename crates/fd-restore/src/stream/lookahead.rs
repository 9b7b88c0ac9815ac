//! Records that are looked at before it is their turn.

use std::collections::VecDeque;
use std::time::Duration;

use fd_messages::{CancelToken, Progress};
use fd_records::RecordHeader;

use super::records::{End, Next, SequenceError, next_record};
use super::source::RecordSource;

/// A record that was looked at.
pub(crate) type Seen = (RecordHeader, Vec<u8>);

/// The records of a read session. What was looked at is kept until it is taken; who looks bounds
/// how much that is.
pub(crate) struct Lookahead<'s> {
    source: &'s mut dyn RecordSource,
    progress: &'s Progress,
    cancel: &'s CancelToken,
    seen: VecDeque<Seen>,
    /// The record that was taken last, if it was looked at before.
    taken: Vec<u8>,
    /// What comes after those that were seen, if that is no record.
    then: Option<Result<End, SequenceError>>,
}

impl<'s> Lookahead<'s> {
    pub(crate) fn new(source: &'s mut dyn RecordSource, progress: &'s Progress, cancel: &'s CancelToken) -> Self {
        Self { source, progress, cancel, seen: VecDeque::new(), taken: Vec::new(), then: None }
    }

    /// Takes the next record.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, SequenceError> {
        if self.cancel.is_canceled() {
            return Ok(Next::End(End::Canceled));
        }
        if let Some((header, record)) = self.seen.pop_front() {
            self.taken = record;
            return Ok(Next::Record(header, &self.taken));
        }
        match self.then.take() {
            Some(then) => then.map(Next::End),
            None => next_record(self.source, self.progress, self.cancel),
        }
    }

    /// Takes the next records, of those that were looked at.
    pub(crate) fn take(&mut self, count: usize) -> impl Iterator<Item = Seen> {
        self.seen.drain(..count.min(self.seen.len()))
    }

    /// The record that comes after `before` others; `None` if there is none, or if it does not come
    /// within about `patience`.
    pub(crate) fn look(&mut self, before: usize, patience: Duration) -> Option<(RecordHeader, &[u8])> {
        while self.seen.len() <= before && self.then.is_none() && self.source.is_near(patience) {
            match next_record(self.source, self.progress, self.cancel) {
                Ok(Next::Record(header, record)) => self.seen.push_back((header, record.to_vec())),
                Ok(Next::End(end)) => self.then = Some(Ok(end)),
                Err(error) => self.then = Some(Err(error)),
            }
        }
        self.seen.get(before).map(|(header, record)| (*header, record.as_slice()))
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
