//! The frames of a read session: received and decrypted by a thread of their own while the job's thread makes files of
//! those that came before, or, where there are few processors, by the job's thread itself.
//!
//! They come in batches, whose memory goes back and forth: the connection receives and decrypts into it. Not here: what a
//! frame means.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_restore::{RecordSource, SourceError};
use fd_transport::{ChannelError, Fault, Frames, IDLE_LIMIT};

use crate::connection::dialogue;
use crate::connection::storage::{Arrival, StorageConnection};

/// A batch that travels is handed on when it holds so many bytes, or when nothing more has come for a [`PAUSE`].
const BATCH: usize = 256 * 1024;
/// A batch that does not travel: one record of a large file. Little enough to be still in the processor's own cache when it
/// is written.
const OWN_BATCH: usize = 64 * 1024;
/// How long more is waited for where there is no more. Without that, each 16 KiB of an encrypted connection would wake this
/// thread, and it the next one.
const PAUSE: Duration = Duration::from_micros(100);
/// Batches that wait. With the one in each hand they are the memory of a restore's stream.
const WAITING: usize = 3;
/// Batches on their way back.
const MOST_USED: usize = WAITING + 1;
/// How often it is waited for one batch.
const MOST_PAUSES: u32 = 16;
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

/// Where the restore's batches come from.
enum Supply<'s> {
    /// From the thread that receives.
    Line { full: Receiver<Batch>, empty: Sender<Batch>, unwanted: Arc<AtomicBool> },
    /// From the connection, into those that were used.
    Own { storage: &'s mut StorageConnection, used: Batch },
}

/// The frames, for the restore.
pub(crate) struct RecordFeed<'s> {
    supply: Supply<'s>,
    /// The present one.
    batch: Batch,
    /// The next frame of it.
    next: usize,
}

/// A line between two threads.
pub(crate) fn feed<'s>() -> (FeedLine, RecordFeed<'s>) {
    let (full, frames) = bounded(WAITING);
    let (empty, used) = bounded(MOST_USED);
    let unwanted = Arc::new(AtomicBool::new(false));
    let line = FeedLine { full, empty: used, unwanted: Arc::clone(&unwanted) };
    (line, RecordFeed::new(Supply::Line { full: frames, empty, unwanted }))
}

/// Frames that are received when the restore wants them.
pub(crate) fn own_feed(storage: &mut StorageConnection) -> RecordFeed<'_> {
    RecordFeed::new(Supply::Own { storage, used: Batch::default() })
}

impl FeedLine {
    /// Receives until the data ends, the connection fails, or nobody wants more.
    pub(crate) fn receive(&self, storage: &mut StorageConnection) {
        loop {
            let mut batch = self.empty.try_recv().unwrap_or_default();
            batch.frames.clear();
            batch.then = None;
            self.fill(storage, &mut batch);
            storage.deliver(&mut batch.frames);
            let ended = batch.then.is_some();
            if self.full.send(batch).is_err() || ended {
                return;
            }
        }
    }

    /// Waits for one frame, and takes what comes with it and soon after it.
    fn fill(&self, storage: &mut StorageConnection, batch: &mut Batch) {
        let deadline = Instant::now() + IDLE_LIMIT;
        let mut flow = Flow::Unknown;
        let mut pauses = 0;
        while batch.frames.total() < BATCH && batch.then.is_none() {
            let patience = match flow {
                Flow::Dry if !batch.frames.is_empty() => return,
                Flow::Dry => Some(LOOK_EVERY),
                Flow::Unknown | Flow::Paused => None,
            };
            let before = storage.received_bytes();
            match storage.gather(&mut batch.frames, patience) {
                Ok(Arrival::Frame) => flow = Flow::Unknown,
                Ok(Arrival::Nothing) => {
                    let is_dry = flow == Flow::Paused && storage.received_bytes() == before;
                    flow = if is_dry || pauses == MOST_PAUSES { Flow::Dry } else { Flow::Paused };
                    if flow == Flow::Paused {
                        thread::sleep(PAUSE);
                        pauses += 1;
                    }
                }
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

/// How frames come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    /// There may be more.
    Unknown,
    /// There was no more, and it was waited a moment.
    Paused,
    /// That brought nothing.
    Dry,
}

/// What a restore says of a connection that failed.
fn source_error(error: &ChannelError) -> SourceError {
    SourceError(match error.fault {
        Fault::Frame(_) | Fault::ShortRead { .. } => error.to_string(),
        _ => dialogue::reason(error),
    })
}

impl RecordSource for RecordFeed<'_> {
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
        let came = match &mut self.supply {
            Supply::Line { full, .. } => full.recv_timeout(patience),
            Supply::Own { storage, used } => receive(storage, used, patience).ok_or(RecvTimeoutError::Timeout),
        };
        match came {
            Ok(batch) => self.take(batch),
            Err(RecvTimeoutError::Timeout) => return false,
            // The next call says so.
            Err(RecvTimeoutError::Disconnected) => {}
        }
        true
    }
}

/// Receives one frame, if it comes within `patience`, and those that are there already.
fn receive(storage: &mut StorageConnection, used: &mut Batch, patience: Duration) -> Option<Batch> {
    let mut batch = std::mem::take(used);
    batch.frames.clear();
    batch.then = None;
    let mut wait = Some(patience);
    while batch.frames.total() < OWN_BATCH && batch.then.is_none() {
        match storage.gather(&mut batch.frames, wait) {
            Ok(Arrival::Frame) => wait = None,
            Ok(Arrival::Nothing) if wait.is_none() => break,
            // A signal.
            Ok(Arrival::Nothing) => {}
            Ok(Arrival::EndOfData) => batch.then = Some(Then::EndOfData),
            Err(error) if error.is_timeout() && patience < IDLE_LIMIT => break,
            Err(error) => batch.then = Some(Then::Failed(source_error(&error))),
        }
    }
    storage.deliver(&mut batch.frames);
    if batch.frames.is_empty() && batch.then.is_none() {
        *used = batch;
        return None;
    }
    Some(batch)
}

impl<'s> RecordFeed<'s> {
    fn new(supply: Supply<'s>) -> Self {
        Self { supply, batch: Batch::default(), next: 0 }
    }

    fn next_batch(&mut self) -> Result<(), SourceError> {
        // Who receives always says how it ends; without that its thread is gone, which a panic alone can do.
        let batch = match &mut self.supply {
            Supply::Line { full, .. } => full.recv().ok(),
            Supply::Own { storage, used } => receive(storage, used, IDLE_LIMIT),
        };
        let batch = batch.ok_or_else(|| SourceError("Input/output error".to_owned()))?;
        self.take(batch);
        Ok(())
    }

    fn take(&mut self, batch: Batch) {
        let used_up = std::mem::replace(&mut self.batch, batch);
        self.next = 0;
        match &mut self.supply {
            // With enough of them on their way already, this one is not needed.
            Supply::Line { empty, .. } => drop(empty.try_send(used_up)),
            Supply::Own { used, .. } => *used = used_up,
        }
    }
}

impl Drop for RecordFeed<'_> {
    fn drop(&mut self) {
        if let Supply::Line { unwanted, .. } = &self.supply {
            unwanted.store(true, Ordering::Relaxed);
        }
    }
}
