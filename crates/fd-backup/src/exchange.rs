//! Where walker, workers and sender exchange batches and pieces, in strict order.
//!
//! The walker submits batches; each gets the next *slot*. Workers take the batches in that order
//! and publish [`Piece`]s to the batch's slot. The sender takes the pieces of the first slot only;
//! when that slot is closed, it continues with the next one. So the order of the stream is the
//! order of submission, whatever the number of workers.
//!
//! The same order gives each entry its FileIndex. A worker counts the records of its batch after it
//! has opened the files and before it encodes; later batches wait for that count.
//!
//! Memory is a fixed stock of pieces, of which few are used as long as storage answers at once. The
//! last of them are reserved for the worker of the first slot. That worker always exists, because
//! batches are taken in order, and it gets a piece as soon as the sender returns one. So a shortage
//! of memory never stops the stream.
//!
//! Not here: the contents of batches, and threads.
//!
//! - `piece`: what is exchanged.
//! - `halt`: why a worker can't go on; `pace`: the pauses of a thread; `idle`: how long it has
//!   waited for others.

pub(crate) mod halt;
pub(crate) mod idle;
#[cfg(test)]
#[cfg(feature = "models")]
mod models;
pub(crate) mod pace;
pub(crate) mod piece;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_messages::{CancelToken, Stage, StageTimes};

use crate::exchange::piece::Piece;
use fd_os::sync::atomic::{AtomicBool, Ordering};
use fd_os::sync::{Condvar, Mutex, MutexGuard};

/// How often a sender without pieces checks whether the job is canceled: all workers may wait for
/// storage that does not answer.
const GLANCE: Duration = Duration::from_millis(300);

/// So many batches without a worker start one more; the first worker is started for any batch.
const WORTH_ANOTHER: usize = 2;

/// The sizes of an exchange, fixed for the job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many pieces there are, at least 1.
    pub(crate) pieces: usize,
    /// How many of them are used until there are more workers than `base`: what waits for the
    /// sender makes nothing faster.
    pub(crate) few: usize,
    /// Workers for the processor's work. There are more if storage answers late; then a stock of
    /// pieces bridges its pauses.
    pub(crate) base: usize,
    /// Usual length in bytes of a piece's frames.
    pub(crate) piece_len: usize,
    /// How many batches may wait for a worker, at least 1. With many workers there may be more: two
    /// for each.
    pub(crate) queue: usize,
}

impl Limits {
    /// Number of pieces reserved for the first slot: one being filled, one waiting, one being sent.
    fn reserve(&self) -> usize {
        self.pieces.min(3)
    }

    /// How many pieces may be used, where there have been at most so many workers.
    fn usable(&self, most_workers: usize) -> usize {
        if most_workers > self.base { self.pieces } else { self.pieces.min(self.few.max(self.reserve())) }
    }

    /// Workers that wait for a piece are woken when so many of these are free. It is more than
    /// needed, so that a worker does not wake up for each piece that is sent.
    fn enough(&self, usable: usize) -> usize {
        self.reserve() + 1 + (usable - self.reserve()) / 4
    }
}

/// See the module. `B` is a batch.
pub(crate) struct Exchange<B> {
    state: Mutex<State<B>>,
    limits: Limits,
    /// Waiting times are added here.
    times: Arc<StageTimes>,
    /// Workers: a batch is waiting, or there are no more.
    work: Condvar,
    /// Walker: the queue has room for batches, or all are sent.
    room: Condvar,
    /// Workers: pieces are free, or another slot is the first one.
    memory: Condvar,
    /// Sender: the first slot has a piece, or there are no more.
    ready: Condvar,
    /// Workers: the first FileIndex of more batches is known.
    numbers: Condvar,
    /// Workers: a condition of [`Exchange::wait_for`] may hold now, or another slot is the first.
    news: Condvar,
    stopped: AtomicBool,
}

/// Who waits for what.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions of different threads")]
struct Waiting {
    /// Workers without a batch.
    workers: usize,
    walker: bool,
    walker_for_all: bool,
    sender: bool,
    /// Workers without a piece,
    for_memory: usize,
    /// one of them that of the first slot.
    first_for_memory: bool,
    for_news: usize,
    /// The worker of the first slot, until so few pieces of it wait for the sender.
    for_few: Option<usize>,
}

struct State<B> {
    batches: VecDeque<(Slot, B)>,
    outputs: VecDeque<Output>,
    /// The slot of the first element of `outputs`.
    first: u64,
    /// The first slot whose number of records is not known yet.
    numbered: u64,
    /// FileIndex of the first record of that slot.
    next_file: u32,
    /// Used pieces, for the next use.
    spare: Vec<Piece>,
    /// How many pieces are taken.
    taken: usize,
    no_more_batches: bool,
    /// Workers that are there or are being started.
    workers: usize,
    /// The most that there were.
    most_workers: usize,
    waiting: Waiting,
}

/// The position of a batch in the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u64);

#[derive(Default)]
struct Output {
    pieces: VecDeque<Piece>,
    closed: bool,
    /// How many records with a FileIndex the batch makes, once that is known.
    files: Option<u32>,
    /// FileIndex of the first of them, once the counts of all earlier slots are known.
    first_file: Option<u32>,
}

impl<B> State<B> {
    /// The output of a slot, which exists until its worker closes it.
    fn output(&mut self, slot: Slot) -> Option<&mut Output> {
        let index = usize::try_from(slot.0.checked_sub(self.first)?).ok()?;
        self.outputs.get_mut(index)
    }

    /// Assigns the first FileIndex of each slot in order, as far as the counts are known.
    fn assign_file_indexes(&mut self) {
        let mut next_file = self.next_file;
        while let Some(output) = self.output(Slot(self.numbered)) {
            output.first_file = Some(next_file);
            let Some(files) = output.files else { break };
            next_file = next_file.saturating_add(files);
            self.numbered += 1;
        }
        self.next_file = next_file;
    }
}

/// The pipeline is stopped: the thread has to leave it.
#[derive(Debug)]
pub(crate) struct Stopped;

impl<B> Exchange<B> {
    /// An exchange whose first record gets the FileIndex `first_file`.
    pub(crate) fn new(limits: Limits, first_file: u32, times: Arc<StageTimes>) -> Self {
        Self {
            state: Mutex::new(State {
                batches: VecDeque::new(),
                outputs: VecDeque::new(),
                first: 0,
                next_file: first_file,
                numbered: 0,
                spare: Vec::new(),
                taken: 0,
                no_more_batches: false,
                workers: 0,
                most_workers: 0,
                waiting: Waiting::default(),
            }),
            limits,
            times,
            work: Condvar::new(),
            room: Condvar::new(),
            memory: Condvar::new(),
            ready: Condvar::new(),
            numbers: Condvar::new(),
            news: Condvar::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Walker: submits the next batch; waits while the queue is full.
    pub(crate) fn submit(&self, batch: B) -> Result<(), Stopped> {
        let mut state = self.lock();
        while state.batches.len() >= self.queue(&state) && !self.is_stopped() {
            state.waiting.walker = true;
            state = self.wait(&self.room, Stage::WalkWaits, state);
        }
        if self.is_stopped() {
            return Err(Stopped);
        }
        let slot = Slot(state.first + state.outputs.len() as u64);
        state.outputs.push_back(Output::default());
        state.batches.push_back((slot, batch));
        state.assign_file_indexes();
        if state.waiting.workers > 0 {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Walker: waits until all batches that were submitted are sent.
    pub(crate) fn wait_until_sent(&self) -> Result<(), Stopped> {
        let mut state = self.lock();
        while !state.outputs.is_empty() && !self.is_stopped() {
            state.waiting.walker_for_all = true;
            state = self.wait(&self.room, Stage::WalkWaits, state);
        }
        state.waiting.walker_for_all = false;
        if self.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    /// Worker: waits until all slots before `slot` are sent.
    pub(crate) fn wait_for_turn(&self, slot: Slot) -> Result<(), Stopped> {
        let mut state = self.lock();
        while state.first != slot.0 {
            if self.is_stopped() {
                return Err(Stopped);
            }
            state.waiting.for_news += 1;
            state = self.wait(&self.news, Stage::WorkWaitsForSender, state);
            state.waiting.for_news -= 1;
        }
        Ok(())
    }

    /// Counts one more worker, of `allowed` ones, if one is to be started, and returns how many
    /// there are then. It counts as idle until it arrives. Beyond the `base` of the limits, only if
    /// it would not wait for the sender.
    pub(crate) fn hire(&self, allowed: usize) -> Option<usize> {
        let mut state = self.lock();
        let enough = if state.workers == 0 { 1 } else { WORTH_ANOTHER };
        let has_memory = state.workers < self.limits.base || state.waiting.for_memory == 0;
        let hires = state.workers < allowed
            && state.batches.len().saturating_sub(state.waiting.workers) >= enough
            && has_memory
            && !self.is_stopped();
        if hires {
            state.workers += 1;
            state.most_workers = state.most_workers.max(state.workers);
            state.waiting.workers += 1;
        }
        hires.then_some(state.workers)
    }

    /// Walker: works itself from now on, if there are fewer workers than these.
    pub(crate) fn join_workers(&self, fewer_than: usize) -> bool {
        let mut state = self.lock();
        let joins = state.workers < fewer_than;
        if joins {
            state.workers += 1;
            state.most_workers = state.most_workers.max(state.workers);
        }
        joins
    }

    /// Worker: has started.
    pub(crate) fn worker_arrived(&self) {
        let mut state = self.lock();
        state.waiting.workers = state.waiting.workers.saturating_sub(1);
    }

    /// A worker could not be started. Returns how many there are.
    pub(crate) fn no_worker(&self) -> usize {
        let mut state = self.lock();
        state.waiting.workers = state.waiting.workers.saturating_sub(1);
        state.workers = state.workers.saturating_sub(1);
        state.workers
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.lock().workers
    }

    /// The most workers that there were at a time.
    pub(crate) fn most_workers(&self) -> usize {
        self.lock().most_workers
    }

    /// Walker: has submitted its last batch.
    pub(crate) fn no_more_batches(&self) {
        self.lock().no_more_batches = true;
        self.work.notify_all();
        self.ready.notify_all();
    }

    /// Worker: takes the next batch; `None` if there are no more, or more workers than `allowed`.
    pub(crate) fn take_batch(&self, allowed: usize) -> Option<(Slot, B)> {
        let mut state = self.lock();
        loop {
            if self.is_stopped() {
                return None;
            }
            if state.workers > allowed.max(1) {
                state.workers -= 1;
                if state.waiting.workers > 0 && !state.batches.is_empty() {
                    // This worker may have been woken for it.
                    self.work.notify_one();
                }
                return None;
            }
            if let Some(batch) = state.batches.pop_front() {
                if state.waiting.walker && state.batches.len() <= self.queue(&state) / 2 {
                    state.waiting.walker = false;
                    self.room.notify_one();
                }
                return Some(batch);
            }
            if state.no_more_batches {
                return None;
            }
            state.waiting.workers += 1;
            state = self.wait(&self.work, Stage::WorkWaitsForEntries, state);
            state.waiting.workers -= 1;
        }
    }

    /// Worker: the FileIndex of the first record of `slot`. Waits until the earlier slots have
    /// counted their records.
    pub(crate) fn first_file(&self, slot: Slot) -> Result<u32, Stopped> {
        let mut state = self.lock();
        loop {
            if self.is_stopped() {
                return Err(Stopped);
            }
            if let Some(first_file) = state.output(slot).and_then(|output| output.first_file) {
                return Ok(first_file);
            }
            state = self.wait(&self.numbers, Stage::WorkWaitsForEntries, state);
        }
    }

    /// Worker: sets the number of records with a FileIndex of `slot`.
    pub(crate) fn count_files(&self, slot: Slot, files: u32) {
        let mut state = self.lock();
        if let Some(output) = state.output(slot) {
            output.files = Some(files);
            state.assign_file_indexes();
            self.numbers.notify_all();
        }
    }

    /// Worker: waits until `look` returns something that the worker of an earlier slot announces.
    /// Earlier slots never wait for later ones, so the wait ends.
    pub(crate) fn wait_for<T>(&self, look: impl Fn() -> Option<T>) -> Result<T, Stopped> {
        if let Some(found) = look() {
            return Ok(found);
        }
        let mut state = self.lock();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if self.is_stopped() {
                return Err(Stopped);
            }
            state.waiting.for_news += 1;
            state = self.wait(&self.news, Stage::WorkWaitsForEntries, state);
            state.waiting.for_news -= 1;
        }
    }

    /// Worker: conditions of [`Self::wait_for`] may hold now.
    pub(crate) fn announce(&self) {
        if self.lock().waiting.for_news > 0 {
            self.news.notify_all();
        }
    }

    /// Worker: an empty piece for the frames of `slot`; waits while memory is short.
    pub(crate) fn obtain(&self, slot: Slot) -> Result<Piece, Stopped> {
        self.obtain_locked(self.lock(), slot)
    }

    /// Worker: publishes a piece of `slot` and obtains the next one. If more than `most_ahead`
    /// pieces of the first slot wait for the sender then, it waits until half of them are sent, so
    /// that it does not wake up for each.
    pub(crate) fn publish(&self, slot: Slot, piece: Piece, most_ahead: Option<usize>) -> Result<Piece, Stopped> {
        let mut state = self.lock();
        self.push(&mut state, slot, piece, false);
        if let Some(most) = most_ahead {
            state = self.wait_for_sender(state, slot, most);
        }
        self.obtain_locked(state, slot)
    }

    /// Worker: a piece for events beside the one that it fills. Where the stock has none for that,
    /// it is an extra one. All pieces are for the first slot then, whose worker waits for the
    /// sender before it gets the next.
    pub(crate) fn obtain_beside(&self, slot: Slot) -> Result<Piece, Stopped> {
        if self.limits.pieces > 2 { self.obtain(slot) } else { Ok(Piece::extra()) }
    }

    /// Worker: publishes a piece of [`Self::obtain_beside`], as [`Self::publish`] does.
    pub(crate) fn publish_beside(&self, slot: Slot, piece: Piece, most_ahead: usize) {
        let mut state = self.lock();
        self.push(&mut state, slot, piece, false);
        drop(self.wait_for_sender(state, slot, most_ahead));
    }

    /// Worker: publishes the last piece of `slot`.
    pub(crate) fn close(&self, slot: Slot, piece: Piece) {
        let mut state = self.lock();
        self.push(&mut state, slot, piece, true);
    }

    /// Worker: whether the sender waits for a piece of this slot.
    pub(crate) fn is_waited_for(&self, slot: Slot) -> bool {
        let state = self.lock();
        state.waiting.sender && slot.0 == state.first
    }

    /// Sender: returns the piece that was sent and takes the next one of the stream; `None` at the
    /// end. Where nothing comes for a [`GLANCE`], this is called.
    pub(crate) fn next(&self, sent: Option<Piece>, cancel: &CancelToken, when_quiet: impl FnOnce()) -> Option<Piece> {
        let mut when_quiet = Some(when_quiet);
        // Kept over waits that only the clock has ended: none of them is a move.
        let mut waiting = None;
        let mut state = self.lock();
        if let Some(mut piece) = sent.filter(|piece| !piece.is_extra) {
            piece.recycle(self.limits.piece_len);
            state.spare.push(piece);
            state.taken -= 1;
            let usable = self.limits.usable(state.most_workers);
            let is_enough = state.taken + self.limits.enough(usable) <= usable;
            if state.waiting.first_for_memory || (state.waiting.for_memory > 0 && is_enough) {
                self.memory.notify_all();
            }
        }
        loop {
            if self.is_stopped() {
                return None;
            }
            let no_more = state.no_more_batches;
            match state.outputs.front_mut() {
                Some(output) => {
                    if let Some(piece) = output.pieces.pop_front() {
                        let waiting = output.pieces.len();
                        if state.waiting.for_few.is_some_and(|few| waiting <= few) {
                            self.memory.notify_all();
                        }
                        return Some(piece);
                    }
                    if output.closed {
                        state.outputs.pop_front();
                        state.first += 1;
                        if state.waiting.for_memory > 0 {
                            self.memory.notify_all();
                        }
                        if state.waiting.for_news > 0 {
                            self.news.notify_all();
                        }
                        if state.waiting.walker_for_all && state.outputs.is_empty() {
                            self.room.notify_one();
                        }
                        continue;
                    }
                }
                None if no_more => return None,
                None => {}
            }
            if cancel.is_canceled() {
                return None;
            }
            state.waiting.sender = true;
            let is_quiet;
            waiting.get_or_insert_with(|| self.times.wait());
            (state, is_quiet) = self.wait_for_piece(state);
            state.waiting.sender = false;
            if !is_quiet {
                waiting = None;
            } else if let Some(when_quiet) = when_quiet.take() {
                waiting = None;
                drop(state);
                when_quiet();
                state = self.lock();
            }
        }
    }

    /// Any thread: stops everything. All waiting threads wake up and leave.
    pub(crate) fn stop(&self) {
        // Under the lock, so that no thread tests the flag before and sleeps after this.
        let state = self.lock();
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        for condition in [&self.work, &self.room, &self.memory, &self.ready, &self.numbers, &self.news] {
            condition.notify_all();
        }
        drop(state);
    }

    /// Frees the memory of all pieces after [`Self::stop`].
    pub(crate) fn free_pieces(&self) {
        let mut state = self.lock();
        state.spare = Vec::new();
        state.outputs = VecDeque::new();
    }

    /// Whether [`Self::stop`] was called; cheap enough for each block.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn wait_for_sender<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<B>>,
        slot: Slot,
        most: usize,
    ) -> MutexGuard<'a, State<B>> {
        let waiting = |state: &mut State<B>| state.output(slot).map_or(0, |output| output.pieces.len());
        if slot.0 == state.first && waiting(&mut state) > most {
            let few = most / 2;
            while !self.is_stopped() && waiting(&mut state) > few {
                state.waiting.for_few = Some(few);
                state = self.wait(&self.memory, Stage::WorkWaitsForSender, state);
            }
            state.waiting.for_few = None;
        }
        state
    }

    fn obtain_locked(&self, mut state: MutexGuard<'_, State<B>>, slot: Slot) -> Result<Piece, Stopped> {
        loop {
            if self.is_stopped() {
                return Err(Stopped);
            }
            let is_first = slot.0 == state.first;
            let kept_back = if is_first { 0 } else { self.limits.reserve() };
            if state.taken + kept_back < self.limits.usable(state.most_workers) {
                state.taken += 1;
                return Ok(state.spare.pop().unwrap_or_else(|| Piece {
                    frames: Vec::with_capacity(self.limits.piece_len),
                    ..Piece::default()
                }));
            }
            state.waiting.first_for_memory |= is_first;
            state.waiting.for_memory += 1;
            state = self.wait(&self.memory, Stage::WorkWaitsForSender, state);
            state.waiting.for_memory -= 1;
            if is_first {
                state.waiting.first_for_memory = false;
            }
        }
    }

    fn push(&self, state: &mut State<B>, slot: Slot, piece: Piece, closed: bool) {
        let Some(output) = state.output(slot) else { return };
        output.pieces.push_back(piece);
        output.closed = closed;
        if state.waiting.sender && slot.0 == state.first {
            self.ready.notify_one();
        }
    }

    /// How many batches may wait for a worker.
    fn queue(&self, state: &State<B>) -> usize {
        self.limits.queue.max(state.workers.saturating_mul(2))
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // No panic in here leaves a half-changed state.
        self.state.try_lock().unwrap_or_else(|| {
            let begun = Instant::now();
            let state = self.state.lock();
            idle::add(begun.elapsed());
            state
        })
    }

    fn wait<'a>(
        &self,
        condition: &Condvar,
        counts_as: Stage,
        state: MutexGuard<'a, State<B>>,
    ) -> MutexGuard<'a, State<B>> {
        let begun = Instant::now();
        let _waiting = self.times.wait();
        let state = condition.wait(state);
        let waited = begun.elapsed();
        self.times.add(counts_as, waited);
        idle::add(waited);
        state
    }

    /// As [`Self::wait`] for the sender, for a moment: it looks again by itself. A piece that comes
    /// when the time is just over wakes nobody, and a cancel is seen. The caller holds the
    /// [`Waiting`]. Also tells whether nothing has come in a [`GLANCE`].
    fn wait_for_piece<'a>(&'a self, state: MutexGuard<'a, State<B>>) -> (MutexGuard<'a, State<B>>, bool) {
        let begun = Instant::now();
        let (state, is_over) = self.ready.wait_timeout(state, GLANCE);
        self.times.add(Stage::SendWaits, begun.elapsed());
        (state, is_over)
    }
}
