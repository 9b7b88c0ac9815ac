//! How many lookups are made at a time: one where the kernel answers at once, more while the walk
//! waits and each doubling makes it faster, and one for each processor where the kernel has much to
//! do for an answer, because it makes each inode of what was read from a disk.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use fd_os::waiting::{time_worked, times_waited};

use crate::settings::LookupDepth;

/// The most that are made at a time, unless the settings have a number.
pub(crate) const MOST: usize = 64;
/// And the most with which that begins, also where each lookup is late.
const FIRST: usize = 2;
const FIRST_OF_LATE: usize = 4;
const LATE: Duration = Duration::from_millis(1);
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
/// Depth is considered anew after at least so many calls. It shrinks only after more of them.
const STEP: u32 = 16;
const MEMORY: u32 = 512;
/// Twice the depth has paid if a lookup takes at most so many tenths of its time with half of it:
/// threads that wait for each other in the kernel wait twice as long if they are twice as many.
/// That is seen after a few that took this together, or after many.
const PAID: u32 = 15;
const SEEN: Duration = Duration::from_millis(20);
/// If it has not, a quarter is next, in case that half does not pay any more, either. It is tried
/// again after this time, and after twice as long each time.
const RETRY: Duration = Duration::from_millis(250);
/// A thread takes lookups that take this together.
const WORTH_A_TURN: Duration = Duration::from_millis(1);
const MOST_A_TURN: usize = 128;

/// Asked for once: the answer takes longer than many lookups.
static PROCESSORS: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, NonZeroUsize::get).min(MOST));

/// What calls took.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Taken {
    pub(crate) calls: u32,
    /// What those that waited took beside the processor's time.
    pub(crate) waited: Duration,
    /// The processor's time of all.
    pub(crate) worked: Duration,
}

impl Taken {
    /// Does some work of one call, and tells what it took.
    pub(crate) fn measure<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let (before, begun, worked) = (times_waited(), Instant::now(), time_worked());
        let result = work();
        let worked = time_worked().saturating_sub(worked);
        let waited = if times_waited() == before { Duration::ZERO } else { begun.elapsed().saturating_sub(worked) };
        let taken = Self { calls: 1, waited, worked };
        (result, taken)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.waited = self.waited.saturating_add(other.waited);
        self.worked = self.worked.saturating_add(other.worked);
    }

    fn half(self) -> Self {
        Self { calls: self.calls / 2, waited: self.waited / 2, worked: self.worked / 2 }
    }

    fn mean(self) -> Duration {
        self.waited.saturating_add(self.worked) / self.calls.max(1)
    }

    /// So many calls are worth a turn.
    fn turn(self) -> usize {
        let calls = WORTH_A_TURN.as_nanos() / self.mean().as_nanos().max(1);
        usize::try_from(calls).unwrap_or(MOST_A_TURN).clamp(1, MOST_A_TURN)
    }

    /// So many calls at a time pay, if that begins with such means of waits, and of waits and work.
    fn pays(self, waited: Duration, all: Duration) -> usize {
        if self.waited / self.calls.max(1) >= waited {
            MOST
        } else if self.mean() >= all {
            // Beside them, the walk's thread only waits for the answers.
            *PROCESSORS
        } else {
            1
        }
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

/// More has not paid, and is not tried until then, which was so long after it.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    most: usize,
    until: Instant,
    pause: Duration,
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
    /// What a lookup took with half the depth, until it is known whether this one pays.
    with_half: Option<Duration>,
    ceiling: Option<Ceiling>,
    /// What calls took lately that were made ahead.
    lately: Taken,
    /// How many of them one thread takes at a time.
    turn: usize,
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
            with_half: None,
            ceiling: None,
            lately: Taken::default(),
            turn: 1,
        }
    }

    /// Calls at a time, at least 1.
    pub(crate) const fn get(&self) -> usize {
        self.at_a_time
    }

    /// So many threads beside the walk's, which is one of two, and only waits for more.
    pub(crate) const fn scouts(&self) -> usize {
        if self.at_a_time == 2 { 1 } else { self.at_a_time }
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
            Watch::Window { .. } => self.watch = Watch::Check { taken: Taken::default(), have_waited: 0 },
            Watch::Check { .. } => {}
        }
        let (result, taken) = Taken::measure(call);
        self.checked(taken);
        result
    }

    /// A call was checked.
    fn checked(&mut self, one: Taken) {
        self.countdown = 1;
        let Watch::Check { taken, have_waited } = &mut self.watch else { return };
        taken.add(one);
        *have_waited += u32::from(one.waited > Duration::ZERO);
        let is_clear = *have_waited >= SEVERAL && taken.waited >= ENOUGH;
        if taken.calls < CHECKED && !is_clear {
            return;
        }
        let taken = *taken;
        self.watch = Watch::Window { length: FIRST_WINDOW, times_waited: times_waited() };
        let pays = taken.pays(WORTH, WORTH_OF_WORK);
        if pays > 1 {
            self.pause = PAUSE;
            self.turn = taken.turn();
            self.change(pays.min(if taken.mean() < LATE { FIRST } else { FIRST_OF_LATE }));
        } else {
            self.countdown = self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn change(&mut self, at_a_time: usize) {
        self.at_a_time = at_a_time.clamp(1, MOST);
        self.since = None;
        self.with_half = None;
        self.lately = Taken::default();
        if self.at_a_time == 1 {
            self.watch = Watch::first_window();
            self.countdown = PAUSE;
        }
    }

    /// The walk has used the result of a call that was made ahead, and has waited so long for it.
    /// `ahead` is asked for what the calls took that were made since. Returns whether the depth or
    /// the turn has changed.
    pub(crate) fn used(&mut self, waited: Duration, ahead: impl FnOnce() -> Taken) -> bool {
        self.used.add(Taken { calls: 1, waited, worked: Duration::ZERO });
        let most = u32::try_from(self.at_a_time).unwrap_or(STEP).saturating_mul(2).max(STEP);
        if self.used.calls < most {
            return false;
        }
        self.consider(Instant::now(), ahead())
    }

    fn consider(&mut self, now: Instant, ahead: Taken) -> bool {
        let used = std::mem::take(&mut self.used);
        self.lately.add(ahead);
        let before = (self.at_a_time, self.turn);
        if self.lately.calls >= STEP {
            self.turn = self.lately.turn();
        }
        if let Some(since) = self.since.replace(now)
            && self.is_adaptive
        {
            self.adapt(now, used.waited, now.saturating_duration_since(since));
        }
        if self.lately.calls >= MEMORY {
            self.lately = self.lately.half();
        }
        (self.at_a_time, self.turn) != before
    }

    /// The walk has waited so long of this time, which has ended now.
    fn adapt(&mut self, now: Instant, waited: Duration, time: Duration) {
        let before = self.at_a_time;
        let is_enough = self.lately.calls >= MEMORY;
        if is_enough && self.lately.pays(WORTH / 2, WORTH_OF_WORK * 3 / 4) < before {
            self.change(before / 2);
            return;
        }
        let mean = self.lately.mean();
        let is_seen = is_enough || self.lately.calls >= STEP && mean * self.lately.calls >= SEEN;
        if waited * 8 <= time || !is_seen {
            return;
        }
        if self.with_half.take().is_some_and(|half| mean * 10 > half * PAID) {
            let pause = self.ceiling.map_or(RETRY, |ceiling| ceiling.pause.saturating_mul(2));
            let until = now.checked_add(pause);
            self.ceiling = until.map(|until| Ceiling { most: before / 2, until, pause });
            self.change((before / 4).max(FIRST));
            return;
        }
        let most = self.ceiling.filter(|ceiling| now < ceiling.until).map_or(MOST, |ceiling| ceiling.most);
        let more = (before * 2).min(most).min(self.lately.pays(WORTH, WORTH_OF_WORK));
        if more > before {
            self.change(more);
            self.with_half = Some(mean);
        }
    }

    /// How many lookups one thread takes at a time.
    pub(crate) const fn turn(&self) -> usize {
        self.turn
    }
}

impl Watch {
    fn first_window() -> Self {
        Self::Window { length: FIRST_WINDOW, times_waited: times_waited() }
    }
}

#[cfg(test)]
mod tests;
