//! How many lookups are made at a time: one where the kernel answers at once, more while the walk
//! waits.

use std::time::{Duration, Instant};

use fd_os::waiting::times_waited;

use crate::settings::LookupDepth;

/// The most that are made at a time, unless the settings have a number.
pub(crate) const MOST: usize = 64;
/// After so many calls on the walk's own thread, it is asked whether the thread has waited. That
/// costs less than a hundredth of them. In the beginning it is asked more often.
const WINDOW: u32 = 32;
const FIRST_WINDOW: u32 = 2;
/// If it has, perhaps for something else, so many calls are watched one by one; fewer if several
/// have waited, together for [`ENOUGH`].
const CHECKED: u32 = 512;
const SEVERAL: u32 = 3;
const ENOUGH: Duration = Duration::from_millis(2);
/// After a check that found nothing, nothing is asked for so many calls, and for twice as many
/// after each further one.
const PAUSE: u32 = 512;
const LONGEST_PAUSE: u32 = 16_384;
/// Handing a lookup to another thread pays if lookups wait so long in the mean.
const WORTH: Duration = Duration::from_micros(20);
/// Depth is considered anew after at least so many calls. It shrinks only after more of them.
const STEP: u32 = 16;
const MEMORY: u32 = 512;
/// A thread takes lookups that take this together.
const WORTH_A_TURN: Duration = Duration::from_micros(200);
const MOST_A_TURN: u32 = 16;

/// What calls took.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Taken {
    pub(crate) calls: u32,
    /// The time of those that waited.
    pub(crate) waited: Duration,
}

impl Taken {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.waited = self.waited.saturating_add(other.waited);
    }

    fn mean(self) -> Duration {
        self.waited / self.calls.max(1)
    }
}

/// How calls on the walk's own thread are watched.
#[derive(Clone, Copy, Debug)]
enum Watch {
    /// It is asked whether the thread has waited since it had waited so often.
    Window { length: u32, times_waited: u64 },
    /// Each is watched. So many have waited.
    Check { taken: Taken, have_waited: u32 },
    /// Not at all.
    Off,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Depth {
    is_adaptive: bool,
    at_a_time: usize,
    watch: Watch,
    /// Until the next call that is watched.
    countdown: u32,
    pause: u32,
    /// When the depth was last considered, and what the walk has used since, and waited for.
    since: Option<Instant>,
    used: Taken,
    /// What calls took lately that were made ahead, and their mean when the depth last changed.
    lately: Taken,
    mean: Duration,
}

impl Depth {
    pub(crate) fn new(setting: LookupDepth) -> Self {
        let at_a_time = match setting {
            LookupDepth::Adaptive => None,
            LookupDepth::Fixed(depth) => Some(depth.get().into()),
        };
        Self {
            is_adaptive: at_a_time.is_none(),
            at_a_time: at_a_time.unwrap_or(1),
            watch: if at_a_time.is_some() { Watch::Off } else { Watch::first_window() },
            countdown: 1,
            pause: PAUSE,
            since: None,
            used: Taken::default(),
            lately: Taken::default(),
            mean: WORTH_A_TURN,
        }
    }

    /// Calls at a time, at least 1.
    pub(crate) const fn get(&self) -> usize {
        self.at_a_time
    }

    /// Makes a call on the walk's own thread, and watches it now and then.
    pub(crate) fn watch<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown > 0 {
            return call();
        }
        self.watched(call)
    }

    #[cold]
    fn watched<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let before = if matches!(self.watch, Watch::Off) { 0 } else { times_waited() };
        match self.watch {
            Watch::Off => {
                self.countdown = u32::MAX;
                return call();
            }
            Watch::Window { length, times_waited } if times_waited == before => {
                let length = (length * 2).min(WINDOW);
                self.watch = Watch::Window { length, times_waited };
                self.countdown = length;
                return call();
            }
            Watch::Window { .. } => self.watch = Watch::Check { taken: Taken::default(), have_waited: 0 },
            Watch::Check { .. } => {}
        }
        let begun = Instant::now();
        let result = call();
        let after = times_waited();
        self.checked((after != before).then(|| begun.elapsed()), after);
        result
    }

    /// A call was checked. `waited`: how long it took, if it has waited. `times_waited`: how often
    /// the thread has waited until now.
    fn checked(&mut self, waited: Option<Duration>, times_waited: u64) {
        self.countdown = 1;
        let Watch::Check { taken, have_waited } = &mut self.watch else { return };
        taken.add(Taken { calls: 1, waited: waited.unwrap_or_default() });
        *have_waited += u32::from(waited.is_some());
        let is_clear = *have_waited >= SEVERAL && taken.waited >= ENOUGH;
        if taken.calls < CHECKED && !is_clear {
            return;
        }
        let mean = taken.mean();
        self.watch = Watch::Window { length: FIRST_WINDOW, times_waited };
        if mean >= WORTH {
            self.pause = PAUSE;
            self.change(2);
        } else {
            self.countdown = self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn change(&mut self, at_a_time: usize) {
        self.at_a_time = at_a_time.clamp(1, MOST);
        self.since = None;
        if self.lately.calls > 0 {
            self.mean = self.lately.mean();
        }
        self.lately = Taken::default();
        if self.at_a_time == 1 {
            self.watch = Watch::first_window();
            self.countdown = PAUSE;
        }
    }

    /// The walk has used the result of a call that was made ahead, and has waited so long for it.
    /// `ahead` is asked for what the calls took that were made since. Returns whether the depth has
    /// changed.
    pub(crate) fn used(&mut self, waited: Duration, ahead: impl FnOnce() -> Taken) -> bool {
        if !self.is_adaptive {
            return false;
        }
        self.used.add(Taken { calls: 1, waited });
        let most = u32::try_from(self.at_a_time).unwrap_or(STEP).saturating_mul(2).max(STEP);
        if self.used.calls < most {
            return false;
        }
        self.consider(Instant::now(), ahead())
    }

    fn consider(&mut self, now: Instant, ahead: Taken) -> bool {
        let used = std::mem::take(&mut self.used);
        self.lately.add(ahead);
        let Some(since) = self.since.replace(now) else { return false };
        let before = self.at_a_time;
        let is_idle = self.lately.calls >= MEMORY && self.lately.mean() < WORTH / 2;
        if is_idle {
            self.change(self.at_a_time / 2);
        } else if used.waited * 8 > now.saturating_duration_since(since) && before < MOST {
            self.change(self.at_a_time * 2);
        }
        if self.lately.calls >= MEMORY {
            self.lately = Taken { calls: self.lately.calls / 2, waited: self.lately.waited / 2 };
        }
        self.at_a_time != before
    }

    /// How many lookups one thread takes at a time.
    pub(crate) fn turn(&self) -> usize {
        let mean = self.mean.max(Duration::from_micros(1));
        let lookups = WORTH_A_TURN.as_micros() / mean.as_micros().max(1);
        usize::try_from(lookups.clamp(1, MOST_A_TURN.into())).unwrap_or(1)
    }
}

impl Watch {
    fn first_window() -> Self {
        Self::Window { length: FIRST_WINDOW, times_waited: times_waited() }
    }
}

#[cfg(test)]
mod tests;
