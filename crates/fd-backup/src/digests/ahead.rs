//! Digests of large files ahead of their turn: of eight or sixteen files that wait for a worker,
//! side by side.
//!
//! A single digest leaves most of a processor idle; eight side by side cost hardly more. Workers
//! seldom read eight large files at a time, because data must be kept until it is sent. So a thread
//! reads files that are in the page cache before it is their turn, and keeps only *marks*: for each
//! block its fingerprint, and the digests up to its end. The worker that reads the file for the
//! stream compares each block with its mark. As long as they are equal, there is nothing left to
//! digest. From the first block on that differs or has no mark, the worker digests itself. So the
//! digest is always that of the data that was sent.
//!
//! Not here: files that are not in the page cache, and fewer than three files. Their digests are
//! streamed. What this saves is in `bench/DIGESTS.md`.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fd_crypto::multi_buffer::{BLOCK, SideBySide};
use fd_crypto::processor::Processor;
use fd_crypto::{DigestSet, DigestValues, Fingerprints};
use fd_fileset::Flags;
use fd_os::page_cache::is_nearly_resident;
use fd_records::{DigestKind, FileType};
use fd_walk::{Entry, Identity};

use crate::exchange::idle;
use crate::source::{Opened, Source};
use fd_os::sync::{Condvar, Mutex};

/// With fewer files, the workers are as fast.
const WORTH_IT: usize = 3;
/// The largest file in bytes. The worker of a longer one would wait for the other files.
const LARGEST: u64 = 256 << 20;
/// Of shorter blocks there would be too many marks.
const SHORTEST_BLOCK: usize = 64 << 10;
/// The lead of the thread over the workers, in bytes of files, about. It bounds the marks, 100
/// bytes per block. At the bound the thread waits until the lead is half of it, so that it takes
/// several files again.
const LEAD: u64 = 1 << 30;
/// A worker that waits for marks waits for so many.
const HEAD_START: usize = 16;
/// A worker that has waited so long without a new mark digests itself.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// How often a thread without work checks whether the job goes on.
const GLANCE: Duration = Duration::from_millis(200);

/// The files between the walker, the thread and the workers.
pub(crate) struct DigestsAhead {
    processor: Processor,
    state: Mutex<State>,
    /// Signals the thread: there are files, or there will be none.
    news: Condvar,
    fingerprints: Fingerprints,
    /// Bytes of files that the thread has taken and whose workers are not done.
    lead: Arc<AtomicU64>,
    /// Bytes of a block, a multiple of [`BLOCK`].
    block_len: usize,
}

#[expect(clippy::struct_excessive_bools, reason = "each is one condition of its own")]
#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<FileAhead>>,
    /// How many files the thread reads.
    taken: usize,
    /// A worker waits for a file that the thread has not taken.
    is_urgent: bool,
    /// The lead was at its bound and is not yet half of it.
    is_far_ahead: bool,
    /// There is a thread, or it is being started.
    has_thread: bool,
    no_more: bool,
}

/// A file on its way from the walker to its worker.
#[derive(Debug)]
pub(crate) struct FileAhead {
    entry: Entry,
    /// The kinds of digests that are wanted and can be computed side by side.
    kinds: DigestSet,
    /// The digests at the beginning of the file.
    begun: SideBySide,
    marks: Mutex<Marks>,
    /// Signals the worker: there are more marks.
    more: Condvar,
}

#[derive(Default, Debug)]
struct Marks {
    of_blocks: Vec<Mark>,
    /// How many marks the worker waits for.
    wanted: Option<usize>,
    /// There will be no more marks.
    is_over: bool,
    /// Set when the thread has taken the file.
    lead: Option<Lead>,
}

/// A file's bytes of the lead, until this is dropped.
#[derive(Debug)]
struct Lead {
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The fingerprint of a block, and the digests of the file up to its end.
#[derive(Clone, Copy, Debug)]
struct Mark {
    fingerprint: u128,
    digests: SideBySide,
}

impl DigestsAhead {
    /// For blocks of this length. `None` if they are short, or digests are not faster side by side.
    pub(crate) fn new(block_len: usize, processor: Processor) -> Option<Self> {
        let is_help = DigestKind::ALL.into_iter().any(|kind| SideBySide::suits(kind, processor));
        (is_help && block_len >= SHORTEST_BLOCK && block_len.is_multiple_of(BLOCK)).then(|| Self {
            processor,
            state: Mutex::default(),
            news: Condvar::new(),
            fingerprints: Fingerprints::new(),
            lead: Arc::default(),
            block_len,
        })
    }

    /// Walker: adds an entry with digests of these kinds. `None` if they are streamed.
    pub(crate) fn announce(&self, entry: &Entry, kinds: DigestSet) -> Option<Arc<FileAhead>> {
        let size = u64::try_from(entry.stat.size).unwrap_or_default();
        let suits = entry.file_type == FileType::Regular
            // A block that is left out of the stream is left out of the digest.
            && !entry.options.has(Flags::SPARSE)
            && (self.block_len as u64..=LARGEST).contains(&size);
        if suits { self.push(entry.clone(), kinds) } else { None }
    }

    fn push(&self, entry: Entry, kinds: DigestSet) -> Option<Arc<FileAhead>> {
        let kinds = self.suiting(kinds);
        let begun = SideBySide::begin(kinds, self.processor)?;
        let file = Arc::new(FileAhead { entry, kinds, begun, marks: Mutex::default(), more: Condvar::new() });
        let mut state = self.state.lock();
        state.waiting.push_back(Arc::clone(&file));
        if state.has_thread {
            self.news.notify_all();
        }
        Some(file)
    }

    /// The kinds of these that can be computed side by side.
    fn suiting(&self, kinds: DigestSet) -> DigestSet {
        kinds.iter().filter(|kind| SideBySide::suits(*kind, self.processor)).collect()
    }

    /// Walker: whether to start a thread now that calls [`Self::run`].
    pub(crate) fn wants_thread(&self) -> bool {
        let mut state = self.state.lock();
        let wants = !state.has_thread && state.waiting.len() >= WORTH_IT;
        state.has_thread |= wants;
        wants
    }

    /// Walker: there are no more files.
    pub(crate) fn no_more(&self) {
        let mut state = self.state.lock();
        state.no_more = true;
        if !state.has_thread {
            state.waiting.drain(..).for_each(|file| file.end());
        }
        self.news.notify_all();
    }

    /// Walker: the thread could not be started.
    pub(crate) fn no_thread(&self) {
        self.state.lock().has_thread = false;
        self.no_more();
    }

    /// Worker: begins to read this file, with digests of these kinds. `None` if there are no marks
    /// to follow: then they are streamed.
    pub(crate) fn follow(&self, file: Arc<FileAhead>, kinds: DigestSet) -> Option<Follower<'_>> {
        let mut state = self.state.lock();
        if let Some(place) = state.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, &file)) {
            if !state.has_thread || state.taken + state.waiting.len() < WORTH_IT {
                state.waiting.remove(place);
                return None;
            }
            state.is_urgent = true;
            self.news.notify_all();
        }
        drop(state);
        // The kernel is slower than OpenSSL for a single file. So without marks the file is
        // streamed.
        (file.kinds == self.suiting(kinds) && file.mark(0).is_some()).then(|| Follower {
            ahead: self,
            digests: file.begun,
            file,
            next: 0,
            is_marked: true,
            rest: Vec::new(),
            length: 0,
        })
    }

    /// Thread: makes marks until there are no more files. `each_round` is called before each block.
    pub(crate) fn run(&self, is_stopped: &dyn Fn() -> bool, mut each_round: impl FnMut()) {
        let _all_is_over = Leaving(self);
        let mut files: Vec<Reading> = Vec::new();
        while !is_stopped() && self.fill(&mut files, is_stopped) {
            each_round();
            files.retain_mut(|file| file.read(self.block_len, is_stopped));
            self.advance(&mut files);
        }
    }

    /// Takes files up to the number that is read side by side. Waits if there are none. Returns
    /// `false` if there will be none.
    fn fill(&self, files: &mut Vec<Reading>, is_stopped: &dyn Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        loop {
            state.taken = files.len();
            if files.len() < SideBySide::width(self.processor)
                && let Some(file) = self.take(&mut state)
            {
                drop(state);
                files.extend(Reading::open(file));
                state = self.state.lock();
                continue;
            }
            match files.len() {
                0 if is_stopped() || state.no_more && state.waiting.is_empty() => return false,
                0 if state.no_more && state.waiting.len() < WORTH_IT && !state.is_urgent => return false,
                0 => (state, _) = self.news.wait_timeout(state, GLANCE),
                // The worker of a single file is as fast.
                1 => files.clear(),
                _ => return true,
            }
        }
    }

    /// Takes the next file, if it should be read now.
    fn take(&self, state: &mut State) -> Option<Taken> {
        let lead = self.lead.load(Ordering::Relaxed);
        state.is_far_ahead = lead >= if state.is_far_ahead { LEAD / 2 } else { LEAD };
        let worth_it = !state.is_far_ahead && state.taken + state.waiting.len() >= WORTH_IT;
        let file = if worth_it || state.is_urgent { state.waiting.pop_front() } else { None }?;
        state.is_urgent &= !state.waiting.is_empty();
        // Before the lock is released: workers compare the number with `WORTH_IT`.
        state.taken += 1;
        let bytes = u64::try_from(file.entry.stat.size).unwrap_or_default();
        self.lead.fetch_add(bytes, Ordering::Relaxed);
        file.marks.lock().lead = Some(Lead { bytes, all: Arc::clone(&self.lead) });
        Some(Taken(file))
    }

    /// Digests the present block of each file and leaves a mark for it.
    fn advance(&self, files: &mut [Reading]) {
        SideBySide::advance(files.iter_mut().map(|Reading { digests, block, .. }| (digests, block.as_chunks().0)));
        for Reading { file, digests, block, .. } in files {
            file.0.leave(Mark { fingerprint: self.fingerprints.of(block), digests: *digests });
        }
    }
}

/// Ends all waiting for the thread when it ends, also by a panic.
struct Leaving<'a>(&'a DigestsAhead);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.has_thread = false;
        state.no_more = true;
        state.waiting.drain(..).for_each(|file| file.end());
    }
}

impl FileAhead {
    fn leave(&self, mark: Mark) {
        let mut marks = self.marks.lock();
        marks.of_blocks.push(mark);
        if marks.wanted.is_some_and(|wanted| marks.of_blocks.len() >= wanted) {
            marks.wanted = None;
            self.more.notify_all();
        }
    }

    fn end(&self) {
        self.marks.lock().is_over = true;
        self.more.notify_all();
    }

    /// The mark of a block, counted from 0. Waits for it, but not for a thread that hangs: another
    /// file may be on storage that does not respond.
    fn mark(&self, number: usize) -> Option<Mark> {
        let mut marks = self.marks.lock();
        while marks.of_blocks.len() <= number && !marks.is_over {
            let had = marks.of_blocks.len();
            marks.wanted = Some(number.saturating_add(HEAD_START));
            let begun = Instant::now();
            let (now, is_late) = self.more.wait_timeout(marks, LONGEST_WAIT);
            idle::add(begun.elapsed());
            marks = now;
            marks.is_over |= is_late && marks.of_blocks.len() == had;
        }
        marks.of_blocks.get(number).copied()
    }
}

/// A file that the thread has taken. There are no more marks when this is dropped.
struct Taken(Arc<FileAhead>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A file that the thread reads.
struct Reading {
    file: Taken,
    source: Source,
    digests: SideBySide,
    block: Vec<u8>,
}

impl Reading {
    /// Opens a file, if it is still the one that the walk has found and nearly all of it is in the
    /// page cache.
    fn open(file: Taken) -> Option<Self> {
        let FileAhead { entry, begun, .. } = &*file.0;
        let opened = entry.open().ok()?;
        let (Identity::Unchanged, stat) = entry.identify(opened.as_fd()).ok()? else { return None };
        let size = u64::try_from(stat.size).ok()?;
        if !is_nearly_resident(opened.as_fd(), size).is_ok_and(|is_resident| is_resident) {
            return None;
        }
        let digests = *begun;
        let source = Source::new(Opened::new(opened, Duration::ZERO), FileType::Regular, &stat);
        Some(Self { file, source, digests, block: Vec::new() })
    }

    /// Reads the next block. Returns `false` if there is no whole one, or the file's worker has
    /// dropped the file.
    fn read(&mut self, block_len: usize, is_stopped: &dyn Fn() -> bool) -> bool {
        self.block.clear();
        let is_followed = Arc::strong_count(&self.file.0) > 1;
        is_followed && self.source.read(&mut self.block, block_len, is_stopped) == Ok(Some(block_len))
    }
}

/// Computes a worker's digests of a file, from its marks as far as possible.
pub(crate) struct Follower<'a> {
    ahead: &'a DigestsAhead,
    file: Arc<FileAhead>,
    next: usize,
    /// Whether all blocks so far were equal to those of the marks.
    is_marked: bool,
    digests: SideBySide,
    /// Bytes that are not digested yet: less than a block of the algorithm.
    rest: Vec<u8>,
    /// Bytes of the file so far.
    length: u64,
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if self.ahead.lead.load(Ordering::Relaxed) >= LEAD / 2 {
            self.file.marks.lock().lead = None;
            // Under the lock, so that the thread does not miss it between its check and its wait.
            let _state = self.ahead.state.lock();
            self.ahead.news.notify_all();
        }
    }
}

impl Follower<'_> {
    /// The kinds of digests that it computes.
    pub(crate) fn kinds(&self) -> DigestSet {
        self.file.kinds
    }

    /// Takes the next block of the file.
    pub(crate) fn update(&mut self, block: &[u8]) {
        self.length = self.length.wrapping_add(block.len() as u64);
        self.is_marked = self.is_marked && self.passes(block);
        if !self.is_marked {
            self.rest.extend_from_slice(block);
            let (blocks, rest) = self.rest.as_chunks();
            SideBySide::advance([(&mut self.digests, blocks)]);
            let digested = self.rest.len() - rest.len();
            self.rest.drain(..digested);
        }
    }

    /// The digests of all blocks so far.
    pub(crate) fn values(&self) -> DigestValues {
        self.digests.finish(&self.rest, self.length)
    }

    /// Whether this block is equal to that of the next mark. If so, the digests include it.
    fn passes(&mut self, block: &[u8]) -> bool {
        if block.len() != self.ahead.block_len {
            return false;
        }
        let Some(mark) = self.file.mark(self.next) else { return false };
        let is_same = mark.fingerprint == self.ahead.fingerprints.of(block);
        if is_same {
            self.next += 1;
            self.digests = mark.digests;
        }
        is_same
    }
}

#[cfg(test)]
mod tests;
