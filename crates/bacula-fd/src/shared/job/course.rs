//! What a job does right now, since when, and how far it is. A status reads it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use fd_os::lock::Mutex;

use super::outlook::Expected;
use super::words::Phase;

/// The last rate that a status has computed (reference 02 §11.1).
#[derive(Clone, Copy, Debug)]
struct Rate {
    bytes_per_second: Option<u64>,
    bytes: u64,
    time: i64,
}

/// The course of a job.
#[derive(Debug)]
pub(crate) struct Course {
    phase: AtomicU8,
    phase_since: AtomicI64,
    /// When it has begun with its files, seconds since 1970; 0 before that.
    files_since: AtomicI64,
    /// A thread waits for the process that matches heavy expressions.
    is_asking: AtomicBool,
    /// Locked by statuses only.
    rate: Mutex<Rate>,
    expected: Mutex<Expected>,
}

impl Course {
    /// That of a job that has begun at `started`, seconds since 1970.
    pub(super) fn new(started: i64) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Waiting as u8),
            phase_since: AtomicI64::new(started),
            files_since: AtomicI64::new(0),
            is_asking: AtomicBool::new(false),
            rate: Mutex::new(Rate { bytes_per_second: None, bytes: 0, time: started }),
            expected: Mutex::default(),
        }
    }

    /// What it does right now.
    pub(crate) fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Relaxed);
        Phase::ALL.into_iter().find(|known| *known as u8 == phase).unwrap_or(Phase::Waiting)
    }

    /// Since when, seconds since 1970.
    pub(crate) fn phase_since(&self) -> i64 {
        self.phase_since.load(Ordering::Relaxed)
    }

    /// Notes what it does from `now` on.
    pub(crate) fn enter(&self, phase: Phase, now: i64) {
        if phase == Phase::Files {
            let _since_the_first = self.files_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.phase_since.store(now, Ordering::Relaxed);
    }

    /// Notes whether a thread waits for the process that matches heavy expressions.
    pub(crate) fn set_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    /// Whether a thread does. A cancel ends that process, and so the wait.
    pub(crate) fn is_asking(&self) -> bool {
        self.is_asking.load(Ordering::Relaxed)
    }

    /// Notes how much it may have.
    pub(crate) fn expect(&self, note: impl FnOnce(&mut Expected)) {
        note(&mut self.expected.lock());
    }

    /// How much it may have.
    pub(super) fn expected(&self) -> Expected {
        *self.expected.lock()
    }

    /// For so many seconds it has been at its files; `None` before that.
    pub(super) fn seconds_of_files(&self, now: i64) -> Option<u64> {
        let since = self.files_since.load(Ordering::Relaxed);
        (since != 0).then(|| u64::try_from(now.saturating_sub(since)).unwrap_or(0))
    }

    /// Recent bytes per second, smoothed as the stock daemon does it: only a plain status more than
    /// ten seconds after the one before moves the base. `bytes`: of the job until now.
    pub(super) fn last_rate(&self, now: i64, bytes: u64) -> u64 {
        const BASE_MOVES_AFTER: i64 = 10;
        let mut rate = self.rate.lock();
        let seconds = u64::try_from(now.saturating_sub(rate.time)).unwrap_or(0).max(1);
        let current = bytes.saturating_sub(rate.bytes) / seconds;
        let last = rate.bytes_per_second.unwrap_or(current);
        let smoothed = last.saturating_mul(2).saturating_add(current) / 3;
        if now.saturating_sub(rate.time) > BASE_MOVES_AFTER {
            *rate = Rate { bytes_per_second: Some(smoothed), bytes, time: now };
        }
        smoothed
    }
}
