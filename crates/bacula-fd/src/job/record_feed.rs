//! The frames of a read session: received and decrypted by a thread of their own while the job's thread makes files of
//! those that came before, or, where there are few processors, by the job's thread itself.
//!
//! They come in batches, whose memory goes back and forth: the connection receives and decrypts into it, and there a frame
//! may be looked at for as long as somebody holds it. Not here: what a frame means.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_restore::{FrameMemory, KeptFrame, RecordSource, SourceError};
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
/// Batches on their way back. Those that are held for their digests make them more than are on their way to the restore.
const MOST_USED: usize = 8;
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
    Own { storage: &'s mut StorageConnection, used: Vec<Batch> },
}

/// The frames, for the restore.
pub(crate) struct RecordFeed<'s> {
    supply: Supply<'s>,
    /// Those of the present batch.
    frames: Arc<Frames>,
    /// The same, for whoever wants to hold them.
    memory: FrameMemory,
    /// What came behind them.
    then: Option<Then>,
    /// The next one.
    next: usize,
    /// Batches that may still be held, the oldest first.
    held: VecDeque<Arc<Frames>>,
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
    RecordFeed::new(Supply::Own { storage, used: Vec::new() })
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
        Ok(self.next_kept()?.map(|(frame, _memory)| frame))
    }

    fn next_kept(&mut self) -> Result<Option<KeptFrame<'_>>, SourceError> {
        while self.next >= self.frames.len() {
            match &self.then {
                Some(Then::EndOfData) => return Ok(None),
                Some(Then::Failed(error)) => return Err(error.clone()),
                None => self.next_batch()?,
            }
        }
        self.next += 1;
        Ok(self.frames.get(self.next - 1).map(|frame| (frame, Some(&self.memory))))
    }

    fn is_near(&mut self, patience: Duration) -> bool {
        if self.next < self.frames.len() || self.then.is_some() {
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
fn receive(storage: &mut StorageConnection, used: &mut Vec<Batch>, patience: Duration) -> Option<Batch> {
    let mut batch = used.pop().unwrap_or_default();
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
        used.push(batch);
        return None;
    }
    Some(batch)
}

impl<'s> RecordFeed<'s> {
    fn new(supply: Supply<'s>) -> Self {
        let frames: Arc<Frames> = Arc::default();
        let memory: FrameMemory = Arc::<Frames>::clone(&frames);
        Self { supply, frames, memory, then: None, next: 0, held: VecDeque::new() }
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
        let frames = Arc::new(batch.frames);
        self.memory = Arc::<Frames>::clone(&frames);
        self.held.push_back(std::mem::replace(&mut self.frames, frames));
        self.then = batch.then;
        self.next = 0;
        // Whoever holds a batch lets go in the order in which they came.
        while self.held.len() > MOST_USED || self.held.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1) {
            if let Some(frames) = self.held.pop_front().and_then(Arc::into_inner) {
                let batch = Batch { frames, then: None };
                match &mut self.supply {
                    // With enough of them on their way already, this one is not needed.
                    Supply::Line { empty, .. } => drop(empty.try_send(batch)),
                    Supply::Own { used, .. } if used.len() < MOST_USED => used.push(batch),
                    Supply::Own { .. } => {}
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_not_used_again() {
        let (line, mut feed) = feed();
        let next = |feed: &mut RecordFeed<'_>| {
            line.full.send(Batch::default()).unwrap();
            feed.next_batch().unwrap();
            line.empty.try_iter().count()
        };
        assert_eq!(next(&mut feed), 1, "the first one goes back at once");
        let held = FrameMemory::clone(&feed.memory);
        assert_eq!((next(&mut feed), next(&mut feed)), (0, 0), "they go back in their order");
        drop(held);
        assert_eq!(next(&mut feed), 3);
        // Held for ever by somebody who is broken: it is given up, and the others go on.
        let _held = FrameMemory::clone(&feed.memory);
        let came_back: usize = (0..MOST_USED + 5).map(|_| next(&mut feed)).sum();
        assert_eq!(came_back, MOST_USED + 4);
        assert!(feed.held.len() <= MOST_USED);
    }
}
