//! The frames of a read session, in batches that the job's own thread receives and decrypts between
//! two writes.
//!
//! A batch is small enough to be in the processor's cache when it is written. A second thread that
//! receives meanwhile costs processor time and made restores no faster (`bench/README.md`). Not
//! here: what a frame means.

use std::time::Duration;

use fd_restore::{RecordSource, SourceError};
use fd_transport::{ChannelError, Fault, Frames, IDLE_LIMIT};

use crate::connection::dialogue;
use crate::connection::storage::{Arrival, StorageConnection};

/// Bytes of a batch: one record of a large file.
const BATCH: usize = 64 * 1024;

/// What comes after the last frame of a batch.
#[derive(Clone, Debug)]
enum Then {
    EndOfData,
    Failed(SourceError),
}

/// The frames, for a restore or the verify of a volume.
pub(crate) struct RecordFeed<'s> {
    storage: &'s mut StorageConnection,
    batch: Frames,
    then: Option<Then>,
    /// The next frame of the batch.
    next: usize,
    why: fn(&ChannelError) -> String,
}

impl<'s> RecordFeed<'s> {
    /// Frames that are received when they are asked for. `why` is what is said of a connection that
    /// failed.
    pub(crate) fn new(storage: &'s mut StorageConnection, why: fn(&ChannelError) -> String) -> Self {
        Self { storage, batch: Frames::default(), then: None, next: 0, why }
    }

    fn has_more(&self) -> bool {
        self.next < self.batch.len() || self.then.is_some()
    }

    /// Receives one frame, if it comes within `patience`, and those that are there already.
    fn receive(&mut self, patience: Duration) {
        self.batch.clear();
        self.next = 0;
        let mut wait = Some(patience);
        while self.batch.total() < BATCH && self.then.is_none() {
            match self.storage.gather(&mut self.batch, wait) {
                Ok(Arrival::Frame) => wait = None,
                Ok(Arrival::Nothing) if wait.is_none() => break,
                // A signal.
                Ok(Arrival::Nothing) => {}
                Ok(Arrival::EndOfData) => self.then = Some(Then::EndOfData),
                Err(error) if error.is_timeout() && patience < IDLE_LIMIT => break,
                Err(error) => self.then = Some(Then::Failed(SourceError((self.why)(&error)))),
            }
        }
        self.storage.deliver(&mut self.batch);
    }
}

impl RecordSource for RecordFeed<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        while self.next >= self.batch.len() {
            match &self.then {
                Some(Then::EndOfData) => return Ok(None),
                Some(Then::Failed(error)) => return Err(error.clone()),
                None => self.receive(IDLE_LIMIT),
            }
        }
        self.next += 1;
        Ok(self.batch.get(self.next - 1))
    }

    fn is_near(&mut self, patience: Duration) -> bool {
        if !self.has_more() {
            self.receive(patience);
        }
        self.has_more()
    }
}

/// What a restore says of a connection that failed.
pub(crate) fn reason(error: &ChannelError) -> String {
    match error.fault {
        Fault::ShortRead { .. } => error.to_string(),
        _ => dialogue::reason(error),
    }
}
