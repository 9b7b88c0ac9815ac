//! How many lookups are made at a time: one where the kernel answers at once, more while the walk
//! waits and each doubling makes it faster, and one for each processor where the kernel has much to
//! do for an answer, because it makes each inode of what was read from a disk.
//!
//! [`fd_os::depth`] decides. Here is what it is told: of lookups on the walk's own thread, where
//! watching each would cost more than most of them, and of those that are made ahead.

use std::time::{Duration, Instant};

use fd_os::depth::{self, Bounds, Taken, processors};
use fd_os::waiting::{Queued, times_waited};

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
/// It pays for processors that are idle if lookups wait and work so long together. Where inodes are
/// in memory a lookup works for 1 to 2 µs.
const WORTH_OF_WORK: Duration = Duration::from_micros(4);
/// Those that are made ahead are considered after at least so many calls.
const STEP: u32 = 16;
/// A thread takes lookups that take this together.
const WORTH_A_TURN: Duration = Duration::from_millis(1);
const MOST_A_TURN: usize = 128;

/// How calls on the walk's own thread are watched.
#[derive(Clone, Copy, Debug)]
enum Watch {
    /// It is asked whether the thread has waited since it had waited so often.
    Window { length: u32, times_waited: u64 },
    /// Each is watched. So many have waited.
    Check { taken: Taken, have_waited: u32, queued: Queued },
    /// Not at all.
    Off,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Depth {
    lookups: depth::Depth,
    watch: Watch,
    /// Until the next call that is watched.
    countdown: u32,
    pause: u32,
    /// When the depth was last considered, and what the walk has used since, and waited for.
    since: Option<Instant>,
    used: u32,
    waited: Duration,
    /// How many lookups one thread takes at a time.
    turn: usize,
}

impl Depth {
    pub(crate) fn new(setting: LookupDepth) -> Self {
        let (least, most) = match setting {
            LookupDepth::Adaptive => (1, MOST),
            LookupDepth::Fixed(depth) => (depth.get().into(), depth.get().into()),
        };
        // Beside one for each processor, the walk's thread only waits for the answers.
        let working = processors().min(MOST);
        Self {
            lookups: depth::Depth::new(Bounds { least, working, most, worth: WORTH, worth_of_work: WORTH_OF_WORK }),
            watch: if least == most { Watch::Off } else { Watch::first_window() },
            countdown: 1,
            pause: PAUSE,
            since: None,
            used: 0,
            waited: Duration::ZERO,
            turn: 1,
        }
    }

    /// Calls at a time, at least 1.
    pub(crate) const fn get(&self) -> usize {
        self.lookups.get()
    }

    /// So many threads beside the walk's, which is one of two, and only waits for more.
    pub(crate) const fn scouts(&self) -> usize {
        if self.get() == 2 { 1 } else { self.get() }
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
        match self.watch {
            Watch::Off => {
                self.countdown = u32::MAX;
                return call();
            }
            Watch::Window { length, times_waited: before } if times_waited() == before => {
                let length = (length * 2).min(WINDOW);
                self.watch = Watch::Window { length, times_waited: before };
                self.countdown = length;
                return call();
            }
            Watch::Window { .. } => {
                let (taken, queued) = (Taken::default(), Queued::from_now());
                self.watch = Watch::Check { taken, have_waited: 0, queued };
            }
            Watch::Check { .. } => {}
        }
        let (result, taken) = Taken::measure_short(call);
        self.checked(taken);
        result
    }

    /// A call was checked.
    fn checked(&mut self, one: Taken) {
        self.countdown = 1;
        let Watch::Check { taken, have_waited, queued } = &mut self.watch else { return };
        taken.add(one);
        *have_waited += u32::from(one.waited > Duration::ZERO);
        let is_clear = *have_waited >= SEVERAL && taken.waited >= ENOUGH;
        if taken.calls < CHECKED && !is_clear {
            return;
        }
        let taken = taken.without(*queued);
        self.watch = Watch::first_window();
        if self.lookups.begin(taken) {
            self.pause = PAUSE;
            self.turn = turn(taken);
            self.since = None;
        } else {
            self.countdown = self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The walk has used the result of a call that was made ahead, and has waited so long for it.
    /// `ahead` is asked for what the calls took that were made since. Returns whether the depth or
    /// the turn has changed.
    pub(crate) fn used(&mut self, waited: Duration, ahead: impl FnOnce() -> Taken) -> bool {
        self.used = self.used.saturating_add(1);
        self.waited = self.waited.saturating_add(waited);
        let most = u32::try_from(self.get()).unwrap_or(STEP).saturating_mul(2).max(STEP);
        if self.used < most {
            return false;
        }
        self.consider(Instant::now(), ahead())
    }

    fn consider(&mut self, now: Instant, ahead: Taken) -> bool {
        self.used = 0;
        let waited = std::mem::take(&mut self.waited);
        let waits = self.since.replace(now).is_some_and(|since| waited * 8 > now.saturating_duration_since(since));
        let before = (self.get(), self.turn);
        if self.lookups.took(ahead, waits, now) {
            self.since = None;
            if self.get() == 1 {
                self.watch = Watch::first_window();
                self.countdown = PAUSE;
            }
        }
        let lately = self.lookups.lately();
        if lately.calls >= STEP {
            self.turn = turn(lately);
        }
        (self.get(), self.turn) != before
    }

    /// How many lookups one thread takes at a time.
    pub(crate) const fn turn(&self) -> usize {
        self.turn
    }
}

/// So many calls are worth a turn.
fn turn(taken: Taken) -> usize {
    let calls = WORTH_A_TURN.as_nanos() / taken.mean().as_nanos().max(1);
    usize::try_from(calls).unwrap_or(MOST_A_TURN).clamp(1, MOST_A_TURN)
}

impl Watch {
    fn first_window() -> Self {
        Self::Window { length: FIRST_WINDOW, times_waited: times_waited() }
    }
}

#[cfg(test)]
mod tests;
