//! How much of its time a job can give away. It shall never take longer than the stock daemon's,
//! which has one thread.

use std::time::Duration;

/// How considerate jobs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Manners {
    /// They use what they get.
    Off,
    /// They give way as long as they stay faster than one thread would be.
    #[default]
    Auto,
    /// They give way to others whatever it costs them, but for a tenth of the time.
    Generous,
}

/// A job's times so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    /// Since its beginning.
    pub(crate) wall: Duration,
    /// Given away.
    pub(crate) given: Duration,
    /// Walking, reading, encoding, and the processor's part of sending, of all threads together:
    /// what one thread would need. Waiting for a processor is part of it, because one thread would
    /// wait, too.
    pub(crate) work: Duration,
    /// Sending, waits included.
    pub(crate) sending: Duration,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Budget {
    manners: Manners,
    is_spent: bool,
}

/// With `Auto` a job gives away at most this share of its time.
const AUTO: f64 = 0.5;
/// It takes at most this share of the time that one thread would need, so that it stays clearly
/// faster.
const OF_ONE_THREAD: f64 = 0.65;
const GENEROUS: f64 = 0.9;
/// What is spent must have recovered by so much before more is given away: no change of priorities
/// in each interval.
const RECOVERED: f64 = 0.95;

impl Budget {
    pub(crate) const fn new(manners: Manners) -> Self {
        Self { manners, is_spent: false }
    }

    /// Whether the job can give away more.
    pub(crate) fn allows(&mut self, times: Times) -> bool {
        let most = match self.manners {
            Manners::Off => return false,
            Manners::Auto => AUTO,
            Manners::Generous => GENEROUS,
        };
        let margin = if self.is_spent { RECOVERED } else { 1.0 };
        let wall = times.wall.as_secs_f64();
        let one_thread = times.work.max(times.sending).as_secs_f64();
        let is_faster = self.manners == Manners::Generous || wall <= one_thread * OF_ONE_THREAD * margin;
        self.is_spent = times.given.as_secs_f64() > wall * most * margin || !is_faster;
        !self.is_spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a job of `threads` threads, which work for `seconds` of work of one thread, beside
    /// somebody who needs everything all the time; returns wall and given seconds.
    fn job(manners: Manners, threads: u32, seconds: u64, rest: f64) -> (f64, f64) {
        const TICK: Duration = Duration::from_millis(250);
        let mut budget = Budget::new(manners);
        let mut times = Times::default();
        while times.work < Duration::from_secs(seconds) {
            let share = if budget.allows(times) { rest } else { 0.0 };
            times.wall += TICK;
            times.given += TICK.mul_f64(share);
            times.work += TICK.mul_f64((1.0 - share) * f64::from(threads));
        }
        (times.wall.as_secs_f64(), times.given.as_secs_f64())
    }

    #[test]
    fn a_job_gives_away_at_most_half_and_stays_faster_than_one_thread() {
        for threads in 1..=16 {
            for rest in [0.125, 0.5, 0.9, 1.0] {
                let (wall, given) = job(Manners::Auto, threads, 100, rest);
                assert!(given <= wall * AUTO + 0.5, "{threads} threads, rest {rest}: {given} of {wall}");
                let fastest = 100.0 / f64::from(threads);
                assert!(wall <= (100.0 * OF_ONE_THREAD).max(fastest) + 0.5, "{threads} threads, rest {rest}: {wall}");
                assert!(wall <= 2.0 * fastest + 1.0, "{threads} threads, rest {rest}: {wall}");
            }
        }
        let (wall, given) = job(Manners::Auto, 4, 100, 0.5);
        assert!((49.0..51.0).contains(&wall) && (24.0..26.0).contains(&given), "{wall}, {given}");
    }

    #[test]
    fn a_job_that_is_no_faster_than_one_thread_gives_nothing_away() {
        let (wall, given) = job(Manners::Auto, 1, 100, 1.0);
        assert!(wall <= 100.5 && given <= 0.5, "{wall}, {given}");
    }

    #[test]
    fn the_line_to_the_storage_daemon_may_be_what_takes_the_time() {
        let seconds = Duration::from_secs;
        let times = Times { wall: seconds(10), given: seconds(0), work: seconds(2), sending: seconds(9) };
        assert!(!Budget::new(Manners::Auto).allows(times), "any rest would make it longer");
        assert!(Budget::new(Manners::Generous).allows(times));
    }

    #[test]
    fn generous_gives_nine_tenths_and_off_nothing() {
        let (wall, given) = job(Manners::Generous, 1, 10, 1.0);
        assert!((0.85..=0.901).contains(&(given / wall)), "{given} of {wall}");
        assert_eq!(job(Manners::Off, 1, 10, 1.0), (10.0, 0.0));
    }

    #[test]
    fn what_is_spent_recovers_before_more_is_given() {
        let seconds = Duration::from_secs;
        let times = |wall, given| Times {
            wall: seconds(wall),
            given: seconds(given),
            work: seconds(10 * wall),
            sending: seconds(0),
        };
        let mut budget = Budget::new(Manners::Auto);
        assert!(budget.allows(times(100, 50)));
        assert!(!budget.allows(times(100, 51)));
        assert!(!budget.allows(times(104, 51)));
        assert!(budget.allows(times(110, 51)));
    }
}
