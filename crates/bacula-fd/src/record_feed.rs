//! The frames of a read session, received and decrypted by a thread of their own while the job's thread makes files of
//! those that came before.
//!
//! They travel in batches of a few hundred kilobytes, whose memory goes back and forth: a frame is copied once, from
//! the connection into its batch. Not here: what a frame means.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_restore::{RecordSource, SourceError};
use fd_transport::{ChannelError, Fault, Frames, IDLE_LIMIT};

use crate::exchange;
use crate::storage::{Arrival, StorageConnection};

/// A batch is handed on when it holds so many bytes, or when nothing more is there.
const BATCH: usize = 256 * 1024;
/// Batches that wait. With the one in each hand they are the memory of a restore's stream.
const WAITING: usize = 3;
/// How often a receiver that waits for the Storage Daemon looks whether anybody still wants its frames.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Frames on their way.
#[derive(Default, Debug)]
struct Batch {
    frames: Frames,
    /// What came behind the last frame.
    then: Option<Then>,
}

#[derive(Clone, Debug)]
enum Then {
    EndOfData,
    Failed(SourceError),
}

/// The receiving end.
pub(crate) struct FeedLine {
    full: Sender<Batch>,
    empty: Receiver<Batch>,
    unwanted: Arc<AtomicBool>,
}

/// The frames, for the restore.
pub(crate) struct RecordFeed {
    full: Receiver<Batch>,
    empty: Sender<Batch>,
    unwanted: Arc<AtomicBool>,
    batch: Batch,
    /// The next frame of the batch.
    next: usize,
}

/// A line between two threads.
pub(crate) fn feed() -> (FeedLine, RecordFeed) {
    let (full, frames) = bounded(WAITING);
    let (empty, used) = bounded(WAITING + 2);
    let unwanted = Arc::new(AtomicBool::new(false));
    let line = FeedLine { full, empty: used, unwanted: Arc::clone(&unwanted) };
    (line, RecordFeed { full: frames, empty, unwanted, batch: Batch::default(), next: 0 })
}

impl FeedLine {
    /// Receives until the data ends, the connection fails, or nobody wants more.
    pub(crate) fn receive(&self, storage: &mut StorageConnection) {
        loop {
            let mut batch = self.empty.try_recv().unwrap_or_default();
            batch.frames.clear();
            batch.then = None;
            self.fill(storage, &mut batch);
            let ended = batch.then.is_some();
            if self.full.send(batch).is_err() || ended {
                return;
            }
        }
    }

    /// Waits for one frame and takes what has come with it.
    fn fill(&self, storage: &mut StorageConnection, batch: &mut Batch) {
        let deadline = Instant::now() + IDLE_LIMIT;
        while batch.frames.total() < BATCH && batch.then.is_none() {
            let patience = if batch.frames.is_empty() { Some(LOOK_EVERY) } else { None };
            match storage.gather(&mut batch.frames, patience) {
                Ok(Arrival::Frame) => {}
                Ok(Arrival::Nothing) if batch.frames.is_empty() => {}
                Ok(Arrival::Nothing) => return,
                Ok(Arrival::EndOfData) => batch.then = Some(Then::EndOfData),
                Err(error) if error.is_timeout() && Instant::now() < deadline => {
                    if self.unwanted.load(Ordering::Relaxed) {
                        return;
                    }
                }
                Err(error) => batch.then = Some(Then::Failed(source_error(&error))),
            }
        }
    }
}

/// What a restore says of a connection that failed.
fn source_error(error: &ChannelError) -> SourceError {
    SourceError(match error.fault {
        Fault::Frame(_) | Fault::ShortRead { .. } => error.to_string(),
        _ => exchange::reason(error),
    })
}

impl RecordSource for RecordFeed {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        while self.next >= self.batch.frames.len() {
            match &self.batch.then {
                Some(Then::EndOfData) => return Ok(None),
                Some(Then::Failed(error)) => return Err(error.clone()),
                None => self.next_batch()?,
            }
        }
        self.next += 1;
        Ok(self.batch.frames.get(self.next - 1))
    }

    fn is_near(&mut self, patience: Duration) -> bool {
        if self.next < self.batch.frames.len() || self.batch.then.is_some() {
            return true;
        }
        match self.full.recv_timeout(patience) {
            Ok(batch) => self.take(batch),
            Err(RecvTimeoutError::Timeout) => return false,
            // The next call says so.
            Err(RecvTimeoutError::Disconnected) => {}
        }
        true
    }
}

impl RecordFeed {
    fn next_batch(&mut self) -> Result<(), SourceError> {
        // The receiver always says how it ends; without that its thread is gone, which a panic alone can do.
        let batch = self.full.recv().map_err(|_gone| SourceError("Input/output error".to_owned()))?;
        self.take(batch);
        Ok(())
    }

    fn take(&mut self, batch: Batch) {
        let used = std::mem::replace(&mut self.batch, batch);
        // With every batch on its way already, this one is not needed.
        let _surplus = self.empty.try_send(used);
        self.next = 0;
    }
}

impl Drop for RecordFeed {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}
