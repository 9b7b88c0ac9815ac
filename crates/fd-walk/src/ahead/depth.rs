//! How many lookups are made at a time: one where the kernel answers at once, more while the walk
//! waits.

use std::time::{Duration, Instant};

use crate::settings::LookupDepth;

/// The most that are made at a time, unless the settings have a number.
pub(crate) const MOST: usize = 64;
/// One lookup of so many is timed while nothing waits: that costs less than a hundredth.
const SAMPLED: u32 = 8;
/// If those take longer than this in the mean, it is checked whether they wait or only compute.
const SUSPICIOUS: Duration = Duration::from_micros(10);
/// So many lookups are checked, fewer if they have waited for [`ENOUGH`].
const CHECKED: u32 = 64;
const ENOUGH: Duration = Duration::from_millis(2);
/// After a check that found nothing, so many lookups are not timed, and twice as many after each
/// further one.
const PAUSE: u32 = 128;
const LONGEST_PAUSE: u32 = 8192;
/// Handing a lookup to another thread pays if lookups wait so long in the mean.
const WORTH: Duration = Duration::from_micros(20);
/// Depth is considered anew after at least so many lookups.
const STEP: u32 = 16;
/// A thread takes lookups that take this together.
const WORTH_A_TURN: Duration = Duration::from_micros(200);
const MOST_A_TURN: u32 = 16;

/// What lookups took.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Taken {
    pub(crate) lookups: u32,
    /// The time of those that waited.
    pub(crate) waited: Duration,
}

impl Taken {
    pub(crate) fn add(&mut self, other: Self) {
        self.lookups = self.lookups.saturating_add(other.lookups);
        self.waited = self.waited.saturating_add(other.waited);
    }

    fn mean(self) -> Duration {
        self.waited / self.lookups.max(1)
    }
}

/// What is done with the next lookup of the walk's own thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watch {
    /// Its time is taken.
    Sample,
    /// Its time is taken, and whether it waited.
    Check,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Depth {
    setting: LookupDepth,
    at_a_time: usize,
    /// Until the next lookup of the walk's own thread that is timed.
    countdown: u32,
    watch: Watch,
    /// The moving mean of samples.
    mean: Duration,
    checked: Taken,
    pause: u32,
    /// Since the depth was last considered: when that was, lookups that the walk has used, and how
    /// long it waited for them.
    since: Option<Instant>,
    used: Taken,
}

impl Depth {
    pub(crate) fn new(setting: LookupDepth) -> Self {
        let (at_a_time, countdown) = match setting {
            // The first lookup may tell.
            LookupDepth::Adaptive => (1, 1),
            LookupDepth::Fixed(depth) => (depth.get().into(), u32::MAX),
        };
        Self {
            setting,
            at_a_time,
            countdown,
            watch: Watch::Sample,
            mean: Duration::ZERO,
            checked: Taken::default(),
            pause: PAUSE,
            since: None,
            used: Taken::default(),
        }
    }

    /// Lookups at a time, at least 1.
    pub(crate) const fn get(&self) -> usize {
        self.at_a_time
    }

    /// Makes a lookup on the walk's own thread, and times it now and then.
    pub(crate) fn watch<T>(&mut self, look: impl FnOnce() -> T) -> T {
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown > 0 {
            return look();
        }
        self.timed(look)
    }

    #[cold]
    fn timed<T>(&mut self, look: impl FnOnce() -> T) -> T {
        if self.setting != LookupDepth::Adaptive {
            self.countdown = u32::MAX;
            return look();
        }
        let waits = (self.watch == Watch::Check).then(fd_os::waiting::times_waited);
        let begun = Instant::now();
        let result = look();
        let took = begun.elapsed();
        match waits {
            None => self.sampled(took),
            Some(before) => {
                let has_waited = fd_os::waiting::times_waited() != before;
                self.checked(if has_waited { took } else { Duration::ZERO });
            }
        }
        result
    }

    fn sampled(&mut self, took: Duration) {
        self.countdown = SAMPLED;
        // One that lost its processor to others counts like a short one.
        self.mean = (self.mean * 3 + took) / 4;
        if self.mean >= SUSPICIOUS {
            self.watch = Watch::Check;
            self.checked = Taken::default();
            self.countdown = 1;
        }
    }

    fn checked(&mut self, waited: Duration) {
        self.checked.add(Taken { lookups: 1, waited });
        self.countdown = 1;
        if self.checked.lookups < CHECKED && self.checked.waited < ENOUGH {
            return;
        }
        self.watch = Watch::Sample;
        self.mean = Duration::ZERO;
        if self.checked.mean() >= WORTH {
            self.pause = PAUSE;
            self.change(2);
        } else {
            self.countdown = self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn change(&mut self, depth: usize) {
        self.at_a_time = depth.clamp(1, MOST);
        self.since = None;
        if self.at_a_time == 1 {
            self.countdown = PAUSE;
        }
    }

    /// The walk has used a lookup that was made ahead, and has waited so long for it. `ahead` is
    /// asked for what the lookups took that were made since. Returns whether the depth has changed.
    pub(crate) fn used(&mut self, waited: Duration, ahead: impl FnOnce() -> Taken) -> bool {
        if self.setting != LookupDepth::Adaptive {
            return false;
        }
        self.used.add(Taken { lookups: 1, waited });
        let most = u32::try_from(self.at_a_time).unwrap_or(STEP).saturating_mul(2).max(STEP);
        if self.used.lookups < most {
            return false;
        }
        self.consider(Instant::now(), ahead())
    }

    fn consider(&mut self, now: Instant, ahead: Taken) -> bool {
        let used = std::mem::take(&mut self.used);
        let Some(since) = self.since.replace(now) else { return false };
        let before = self.at_a_time;
        if ahead.lookups >= STEP && ahead.mean() < WORTH / 2 {
            self.change(self.at_a_time / 2);
        } else if used.waited * 8 > now.saturating_duration_since(since) {
            self.change(self.at_a_time * 2);
        }
        self.at_a_time != before
    }

    /// How many lookups one thread takes at a time, where lookups take so long.
    pub(crate) fn turn(ahead: Taken) -> usize {
        let mean = ahead.mean().max(Duration::from_micros(1));
        let lookups = WORTH_A_TURN.as_micros() / mean.as_micros().max(1);
        usize::try_from(lookups.clamp(1, MOST_A_TURN.into())).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests;
