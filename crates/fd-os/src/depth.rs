//! How many calls are made at a time that may wait: for a disk, for a server.
//!
//! Where nothing waits, nothing changes. Where calls wait nine tenths of their time, ten times as
//! many keep the processors at work. The number grows while that is so, and each step has to pay:
//! calls that wait for each other in the kernel take twice as long if they are twice as many. What
//! has paid need not pay for ever, so half as many are tried now and then.
//!
//! Not here: threads, and which calls are measured.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::waiting::{Queued, time_worked, times_waited};

/// It begins with so many, or with more where each call is late.
const FIRST: usize = 2;
const FIRST_OF_LATE: usize = 4;
const LATE: Duration = Duration::from_millis(1);
/// A step makes so many times as many, a smaller one so many.
const STEP: usize = 4;
const SMALL_STEP: usize = 2;
/// What a call takes is known after so many for each that is made at a time, and at least so many,
/// if that has taken so long.
const ROUNDS: u32 = 2;
const FEW: u32 = 8;
const LONG: Duration = Duration::from_millis(20);
/// That calls no longer wait is seen after so many.
const MANY: u32 = 512;
/// If more have not paid, they are tried again after this time, and after twice as long each time.
/// If they have, half of them are tried so long after that.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// The processors that there are, at least 1. Asked for once: the answer takes longer than many
/// calls.
pub fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get));
    *PROCESSORS
}

/// What calls took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Taken {
    /// Their number.
    pub calls: u32,
    /// What those that waited took beside the processor's time.
    pub waited: Duration,
    /// The processor's time of all.
    pub worked: Duration,
}

impl Taken {
    /// Does some work of one call, and tells what it took. Waits for a processor are left out. It
    /// costs several microseconds.
    pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let queued = Queued::from_now();
        let (result, taken) = Self::measure_short(work);
        (result, taken.without(queued))
    }

    /// The same for a short call: waits for a processor may be among those of a call that waited.
    pub fn measure_short<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (before, begun, worked) = (times_waited(), Instant::now(), time_worked());
        let result = work();
        let worked = time_worked().saturating_sub(worked);
        let waited = if times_waited() == before { Duration::ZERO } else { begun.elapsed().saturating_sub(worked) };
        let taken = Self { calls: 1, waited, worked };
        (result, taken)
    }

    /// What these took without what they waited for a processor.
    #[must_use]
    pub fn without(self, queued: Queued) -> Self {
        if self.waited.is_zero() {
            return self;
        }
        Self { waited: self.waited.saturating_sub(queued.waited()), ..self }
    }

    /// Counts these, too.
    pub fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.waited = self.waited.saturating_add(other.waited);
        self.worked = self.worked.saturating_add(other.worked);
    }

    /// The time of one call in the mean.
    pub fn mean(self) -> Duration {
        self.time() / self.calls.max(1)
    }

    const fn time(self) -> Duration {
        self.waited.saturating_add(self.worked)
    }

    fn half(self) -> Self {
        Self { calls: self.calls / 2, waited: self.waited / 2, worked: self.worked / 2 }
    }
}

/// Between which numbers the depth is, and what it has to do with the calls.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Calls at a time where nothing waits, at least 1.
    pub least: usize,
    /// So many at a time do the processors' work.
    pub working: usize,
    /// The most at a time. A depth with equal bounds never changes.
    pub most: usize,
    /// More pay if a call waits so long in the mean, and as long as it works.
    pub worth: Duration,
    /// Otherwise [`Self::working`] pay if it waits and works so long together.
    pub worth_of_work: Duration,
}

impl Bounds {
    /// Whether the depth never changes.
    pub const fn is_fixed(self) -> bool {
        self.least == self.most
    }

    /// So many at a time pay at most where calls take this.
    fn pays(self, taken: Taken) -> usize {
        let times = taken.waited.as_nanos() / taken.worked.as_nanos().max(1);
        let pays = if times >= 1 && taken.waited / taken.calls.max(1) >= self.worth {
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            self.working.saturating_mul(times.saturating_add(1))
        } else if taken.mean() >= self.worth_of_work {
            self.working
        } else {
            self.least
        };
        pays.min(self.most).max(self.least)
    }

    /// The same for what is made at a time already: a little less is no reason for a change.
    fn still_pays(self, taken: Taken) -> usize {
        let less = |time: Duration| time.saturating_mul(3) / 4;
        let eased = Self { worth: less(self.worth), worth_of_work: less(self.worth_of_work), ..self };
        eased.pays(Taken { waited: taken.waited.saturating_mul(4) / 3, ..taken })
    }
}

/// Until then, and so long in all.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Instant,
    length: Duration,
}

impl Pause {
    /// The one after this, which begins now.
    fn next(before: Option<Self>, now: Instant) -> Option<Self> {
        let length = before.map_or(PAUSE, |pause| pause.length.saturating_mul(2).min(LONGEST_PAUSE));
        Some(Self { until: now.checked_add(length)?, length })
    }
}

/// See the module.
#[derive(Debug)]
pub struct Depth {
    bounds: Bounds,
    at_a_time: usize,
    /// What calls have taken since the last change, the last ones most.
    lately: Taken,
    /// What they have taken since the depth was considered last.
    window: Taken,
    /// What a call took with fewer, and with how many, until it is known whether these pay.
    with_fewer: Option<(usize, Duration)>,
    /// More than this has not paid, and is not tried meanwhile.
    ceiling: Option<(usize, Pause)>,
    /// This has paid, and half of it is not tried meanwhile.
    settled: Option<(usize, Pause)>,
}

impl Depth {
    /// The least within these bounds.
    pub const fn new(bounds: Bounds) -> Self {
        let none = Taken { calls: 0, waited: Duration::ZERO, worked: Duration::ZERO };
        let at_a_time = bounds.least;
        Self { bounds, at_a_time, lately: none, window: none, with_fewer: None, ceiling: None, settled: None }
    }

    /// Calls at a time, at least 1.
    pub const fn get(&self) -> usize {
        self.at_a_time
    }

    /// The bounds.
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What calls have taken lately.
    pub const fn lately(&self) -> Taken {
        self.lately
    }

    /// There can't be more at a time than these, at least 1.
    pub fn no_more_than(&mut self, most: usize) {
        let most = most.max(1);
        self.bounds.most = self.bounds.most.min(most);
        self.bounds.least = self.bounds.least.min(most);
        self.at_a_time = self.at_a_time.min(most);
    }

    /// Begins with several at a time, if that pays where calls take this. Returns whether it does.
    pub fn begin(&mut self, taken: Taken) -> bool {
        let first = if taken.mean() < LATE { FIRST } else { FIRST_OF_LATE };
        let pays = self.bounds.pays(taken).min(first.max(self.bounds.least));
        let begins = pays > self.at_a_time;
        if begins {
            self.change(pays);
        }
        begins
    }

    /// Counts what calls took, by now, and considers how many are to be made. `more`: as many are
    /// made as may be, and others would be made if they might. Returns whether the depth has
    /// changed.
    pub fn took(&mut self, taken: Taken, more: bool, now: Instant) -> bool {
        let before = self.at_a_time;
        self.lately.add(taken);
        let are_many = self.lately.calls >= MANY;
        if are_many && self.bounds.still_pays(self.lately) < before {
            self.change(before / 2);
        } else if !self.bounds.is_fixed() {
            self.window.add(taken);
            if self.is_known() {
                self.consider(more, now);
            }
        }
        if are_many {
            self.lately = self.lately.half();
        }
        self.at_a_time != before
    }

    /// Whether the window is long enough to tell what a call takes.
    fn is_known(&self) -> bool {
        let at_a_time = u32::try_from(self.at_a_time).unwrap_or(u32::MAX);
        self.window.calls >= at_a_time.saturating_mul(ROUNDS).max(FEW)
            && self.window.time() >= LONG.saturating_mul(at_a_time)
    }

    fn consider(&mut self, more: bool, now: Instant) {
        let before = self.at_a_time;
        let taken = std::mem::take(&mut self.window);
        let mean = taken.mean();
        if more && let Some((fewer, with_fewer)) = self.with_fewer.take() {
            // More pay if they do a third more in the same time. Less may be chance: calls differ.
            let (with_more, with_fewer) = (mean.as_nanos() * fewer as u128, with_fewer.as_nanos() * before as u128);
            if with_more * 4 > with_fewer * 3 {
                self.ceiling = Pause::next(self.ceiling.map(|(_, pause)| pause), now).map(|pause| (fewer, pause));
                // The fewer may not pay any more, either.
                return self.change((fewer / 2).max(FIRST));
            }
            let again = self.settled.filter(|(depth, _)| *depth == before).map(|(_, pause)| pause);
            self.settled = Pause::next(again, now).map(|pause| (before, pause));
        }
        let ceiling = self.ceiling.filter(|(_, pause)| now < pause.until).map_or(self.bounds.most, |(most, _)| most);
        // Smaller steps where one has gone too far.
        let step = if self.ceiling.is_some() { SMALL_STEP } else { STEP };
        let next = before.saturating_mul(step).min(ceiling).min(self.bounds.pays(taken));
        if more && next > before {
            self.change(next);
            self.with_fewer = Some((before, mean));
        } else if before > FIRST && self.settled.is_some_and(|(depth, pause)| depth == before && now >= pause.until) {
            self.change((before / 2).max(FIRST));
        }
    }

    fn change(&mut self, at_a_time: usize) {
        self.at_a_time = at_a_time.min(self.bounds.most).max(self.bounds.least);
        self.lately = Taken::default();
        self.window = Taken::default();
        self.with_fewer = None;
    }
}

#[cfg(test)]
mod tests;
