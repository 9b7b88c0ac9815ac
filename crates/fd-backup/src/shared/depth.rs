//! How many workers a job should have: so many that the processor's work is done by about
//! `job.workers` of them while the others wait for storage.
//!
//! Workers report how they spend their time. Where they hardly wait, nothing changes. Where they
//! wait nine tenths of it, ten times as many are wanted. The number at most doubles with each
//! report, and falls as soon as the waits do. Waits for other threads are no part of this.
//!
//! Not here: starting and ending threads.

use std::time::Duration;

use fd_os::sync::Mutex;
use fd_os::sync::atomic::{AtomicUsize, Ordering};

/// Waits below this, all in all, are too few to conclude anything.
const EVIDENCE: f64 = 0.02;
/// Reports count for about so many seconds of each worker.
const MEMORY: f64 = 0.05;

/// See the module.
#[derive(Debug)]
pub(crate) struct Depth {
    /// Workers for the processor's work.
    base: usize,
    /// The most workers.
    most: AtomicUsize,
    wanted: AtomicUsize,
    recent: Mutex<Recent>,
}

/// Seconds of all workers, the last ones most.
#[derive(Default, Debug)]
struct Recent {
    busy: f64,
    waited: f64,
}

impl Depth {
    /// `workers` for the processor's work, and `most` in all.
    pub(crate) fn new(workers: usize, most: usize) -> Self {
        let most = most.max(1);
        let base = workers.clamp(1, most);
        Self { base, most: AtomicUsize::new(most), wanted: AtomicUsize::new(base), recent: Mutex::default() }
    }

    /// Workers for the processor's work.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// How many workers there may be now, at least 1.
    pub(crate) fn allowed(&self) -> usize {
        self.wanted.load(Ordering::Relaxed).max(1)
    }

    /// Whether there can ever be more workers than the processor needs.
    pub(crate) fn may_grow(&self) -> bool {
        self.most.load(Ordering::Relaxed) > self.base
    }

    /// Whether more workers are wanted than the processor needs.
    pub(crate) fn is_deep(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > self.base
    }

    /// As if reports had led to so many workers.
    #[cfg(test)]
    pub(crate) fn want(&self, workers: usize) {
        self.wanted.store(workers.min(self.most.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// There can't be more than these workers.
    pub(crate) fn no_more_than(&self, workers: usize) {
        self.most.fetch_min(workers.max(1), Ordering::Relaxed);
        self.wanted.fetch_min(workers.max(1), Ordering::Relaxed);
    }

    /// One of `active` workers has worked and has waited for storage so long since its last report.
    /// `true` if there may be more workers now.
    pub(crate) fn report(&self, busy: Duration, waited: Duration, active: usize) -> bool {
        let (busy, waited) = (busy.as_secs_f64(), waited.as_secs_f64());
        let mut recent = self.recent.lock();
        let window = MEMORY * as_f64(active.max(1));
        let kept = window / (window + busy + waited);
        recent.busy = recent.busy * kept + busy;
        recent.waited = recent.waited * kept + waited;
        let ideal = self.ideal(&recent);
        drop(recent);
        let before = self.wanted.load(Ordering::Relaxed);
        // A little less than now is no reason to end threads.
        let is_steady = (before - before / 4..=before).contains(&ideal) && ideal > self.base;
        if !is_steady {
            let next = ideal.min(active.max(self.base).saturating_mul(2)).max(self.base);
            // Reports of fewer workers, before those that are wanted have begun.
            let next = if ideal >= before { next.max(before) } else { next };
            self.wanted.store(next.min(self.most.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
        self.allowed() > active
    }

    /// So many workers that `base` of them would work all the time.
    fn ideal(&self, recent: &Recent) -> usize {
        // With less waiting than work, others of the base workers use the processor meanwhile.
        if recent.waited < EVIDENCE || recent.waited < recent.busy {
            return self.base;
        }
        let most = self.most.load(Ordering::Relaxed);
        let each = (recent.waited / recent.busy.max(1e-6)).min(as_f64(most));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to the most workers")]
        let each = each as usize;
        self.base.saturating_mul(each.saturating_add(1)).min(most)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of threads")]
fn as_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn workers_that_do_not_wait_stay_as_they_are() {
        let depth = Depth::new(2, 64);
        for waited in [0, 1, 5, 9] {
            (0..1000).for_each(|_| assert!(!depth.report(10 * MS, waited * MS, 2)));
            assert_eq!((depth.allowed(), depth.is_deep()), (2, false));
        }
        let depth = Depth::new(4, 64);
        assert!(!depth.report(MS, 15 * MS, 4), "one late read is too little");
        (0..20).for_each(|_| assert!(!depth.report(10 * MS, Duration::ZERO, 4)));
    }

    #[test]
    fn the_number_doubles_while_workers_wait_and_falls_when_they_do_not() {
        let depth = Depth::new(2, 64);
        let mut active = 2;
        let mut steps = Vec::new();
        while depth.report(MS / 10, 20 * MS, active) {
            active = depth.allowed();
            steps.push(active);
        }
        assert_eq!(steps, [4, 8, 16, 32, 64]);
        assert!(depth.is_deep());
        let mut reports = 0;
        while depth.is_deep() {
            let _more = depth.report(10 * MS, MS, active);
            active = active.min(depth.allowed());
            reports += 1;
        }
        assert_eq!(depth.allowed(), 2);
        assert!(reports < 2000, "{reports}");
    }

    #[test]
    fn waiting_three_quarters_of_the_time_wants_four_times_as_many() {
        let depth = Depth::new(2, 64);
        let mut active = 2;
        for _ in 0..1000 {
            let _more = depth.report(5 * MS, 16 * MS, active);
            active = depth.allowed();
        }
        assert!((7..=10).contains(&active), "{active}");
    }

    #[test]
    fn limits_hold() {
        let depth = Depth::new(8, 3);
        assert_eq!((depth.base(), depth.allowed()), (3, 3));
        let depth = Depth::new(0, 0);
        assert_eq!((depth.base(), depth.allowed()), (1, 1));
        let depth = Depth::new(2, 64);
        depth.no_more_than(2);
        assert!(!depth.report(MS, 99 * MS, 2));
    }
}
