//! How many workers a job should have, as [`fd_os::depth`] decides: so many that `job.workers` of
//! them would work all the time while the others wait for storage. Waits for other threads are no
//! part of this.
//!
//! Not here: starting and ending threads.

use std::time::{Duration, Instant};

use fd_os::depth::{self, Bounds, Taken};
use fd_os::sync::Mutex;
use fd_os::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
#[derive(Debug)]
pub(crate) struct Depth {
    /// Workers for the processor's work.
    base: usize,
    /// As [`Self::workers`] has it, without its lock.
    allowed: AtomicUsize,
    workers: Mutex<depth::Depth>,
}

impl Depth {
    /// `workers` for the processor's work, and `most` in all.
    pub(crate) fn new(workers: usize, most: usize) -> Self {
        let most = most.max(1);
        let base = workers.clamp(1, most);
        // There are threads anyway, so any wait counts, and no work.
        let bounds = Bounds { least: base, working: base, most, worth: Duration::ZERO, worth_of_work: Duration::ZERO };
        let workers = Mutex::new(depth::Depth::new(bounds));
        Self { base, allowed: AtomicUsize::new(base), workers }
    }

    /// Workers for the processor's work.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// How many workers there may be now, at least 1.
    pub(crate) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Whether there can ever be more workers than the processor needs.
    pub(crate) fn may_grow(&self) -> bool {
        self.workers.lock().bounds().most > self.base
    }

    /// Whether more workers are wanted than the processor needs.
    pub(crate) fn is_deep(&self) -> bool {
        self.allowed() > self.base
    }

    /// As if reports had led to so many workers.
    #[cfg(test)]
    pub(crate) fn want(&self, workers: usize) {
        self.allowed.store(workers.min(self.workers.lock().bounds().most), Ordering::Relaxed);
    }

    /// There can't be more than these workers.
    pub(crate) fn no_more_than(&self, workers: usize) {
        let mut now = self.workers.lock();
        now.no_more_than(workers);
        self.allowed.store(now.get(), Ordering::Relaxed);
    }

    /// One of `active` workers tells what its work has taken since its last report. `true` if there
    /// may be more workers now.
    pub(crate) fn report(&self, taken: Taken, active: usize) -> bool {
        let mut now = self.workers.lock();
        let all_have_begun = active >= now.get();
        if now.took(taken, all_have_begun, Instant::now()) {
            self.allowed.store(now.get(), Ordering::Relaxed);
        }
        now.get() > active
    }
}
