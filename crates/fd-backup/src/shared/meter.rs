//! How much of its time a worker waits for storage.
//!
//! That is time in which its thread has given its processor up by itself, and not for another
//! thread. So it covers everything that a file costs: opening, reading, attributes, closing. A
//! thread that loses its processor to others, or has used up what its control group grants, does
//! not wait for storage.

use std::time::{Duration, Instant};

use fd_os::depth::Taken;
use fd_os::waiting::{Scheduled, scheduled, time_worked, times_waited};

use crate::exchange::idle::{self, Idle};
use crate::shared::job::Job;

/// The time of one sample, about. Cheap work is not measured more often than that.
const SAMPLE: Duration = Duration::from_millis(10);

/// The present sample of a worker.
#[derive(Debug)]
pub(crate) struct Meter {
    begun: Instant,
    /// Steps of work since.
    steps: u32,
    /// What was idle before.
    idle: Idle,
    /// The processor's time before.
    busy: Duration,
    /// How often the thread had waited before.
    waits: u64,
    /// What was looked up last.
    scheduled: Scheduled,
}

impl Meter {
    /// For the present thread.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            steps: 0,
            idle: idle::total(),
            busy: time_worked(),
            waits: times_waited(),
            scheduled: Scheduled::default(),
        }
    }

    /// To be called between two steps of work. Tells the job from time to time, and has it start
    /// workers.
    pub(crate) fn step(&mut self, job: &Job) {
        self.steps = self.steps.saturating_add(1);
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.begun);
        if passed < SAMPLE || !job.workers.depth.may_grow() {
            return;
        }
        let next = Self { begun: now, scheduled: self.scheduled, ..Self::new() };
        let before = std::mem::replace(self, next);
        let worked = self.busy.saturating_sub(before.busy);
        let idle = self.idle.time.saturating_sub(before.idle.time);
        let mut waited = passed.saturating_sub(idle).saturating_sub(worked);
        if waited > worked {
            self.scheduled = scheduled().unwrap_or_default();
            let waits = self.waits.saturating_sub(before.waits);
            let for_storage = waits.saturating_sub(self.idle.times.saturating_sub(before.idle.times));
            waited = for_those(self.scheduled, before.scheduled, waited, waits, for_storage);
        }
        let taken = Taken { calls: before.steps, waited, worked };
        if job.workers.depth.report(taken, job.exchange.workers()) {
            job.more_workers();
        }
    }

    /// Drops the present sample: what waited was a plugin.
    pub(crate) fn skip(&mut self) {
        *self = Self { scheduled: self.scheduled, ..Self::new() };
    }
}

/// The part of a time without a processor that belongs to waits for storage. There were as many as
/// `for_storage` of `waits` waits.
fn for_those(now: Scheduled, before: Scheduled, time: Duration, waits: u64, for_storage: u64) -> Duration {
    let time = time.saturating_sub(now.delayed.saturating_sub(before.delayed));
    // It got its processor back after each wait, and each time that it had lost it.
    let lost = now.times.saturating_sub(before.times).saturating_sub(waits);
    let part = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let whole = part(for_storage.saturating_add(lost));
    time.saturating_mul(part(for_storage)).checked_div(whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn time_without_a_processor_is_that_of_storage_by_its_part_of_the_waits() {
        let before = Scheduled { delayed: 7 * MS, times: 50 };
        let times = |times| Scheduled { delayed: 7 * MS, times };
        assert_eq!(for_those(times(53), before, 30 * MS, 3, 3), 30 * MS, "three waits for storage");
        assert_eq!(for_those(times(53), before, 30 * MS, 0, 0), Duration::ZERO, "the processor was taken away");
        assert_eq!(for_those(times(53), before, 30 * MS, 1, 1), 10 * MS, "and twice beside one wait");
        assert_eq!(for_those(times(53), before, 30 * MS, 3, 0), Duration::ZERO, "all waits were for other threads");
        assert_eq!(for_those(times(53), before, 30 * MS, 3, 1), 30 * MS, "whose time is not in this one");
        let delayed = Scheduled { delayed: 27 * MS, times: 53 };
        assert_eq!(for_those(delayed, before, 30 * MS, 3, 3), 10 * MS, "it waited 20 ms for a processor");
        assert_eq!(for_those(Scheduled::default(), Scheduled::default(), 30 * MS, 3, 3), 30 * MS, "nothing is counted");
    }
}
