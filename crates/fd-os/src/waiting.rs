//! Whether a thread has waited, and for how long: the time in which it neither worked nor could
//! have run.
//!
//! Not here: what follows from it. A lookup, a worker and a run of files cost differently where
//! nothing waits, so each place has its own threshold.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// How often the calling thread has given its processor up by itself: for the disk, a server, a
/// lock. Losing it to another thread doesn't count. 0 if the kernel doesn't tell.
pub fn times_waited() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
    usage.and_then(|usage| u64::try_from(usage.voluntary_context_switches()).ok()).unwrap_or(0)
}

/// The processor time of the calling thread.
pub fn time_worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// What the kernel has counted since a thread began.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// Time in which it could have run, but had no processor.
    pub delayed: Duration,
    /// How often it got a processor.
    pub times: u64,
}

/// What a thread waits for a processor, from now on: that is no wait for storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// `None` where the kernel does not count it.
    before: Option<Duration>,
}

impl Queued {
    /// For the calling thread.
    pub fn from_now() -> Self {
        Self { before: scheduled().map(|counted| counted.delayed) }
    }

    /// What the same thread has waited for a processor since.
    pub fn waited(self) -> Duration {
        let waited = self.before.and_then(|before| Some(scheduled()?.delayed.saturating_sub(before)));
        waited.unwrap_or_default()
    }
}

/// For the calling thread; `None` where the kernel does not count it. It costs several
/// microseconds.
pub fn scheduled() -> Option<Scheduled> {
    parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Reads nanoseconds of work, nanoseconds of delay, and the number of times.
fn parse(text: &str) -> Option<Scheduled> {
    let mut numbers = text.split_ascii_whitespace().skip(1).map_while(|number| number.parse().ok());
    Some(Scheduled { delayed: Duration::from_nanos(numbers.next()?), times: numbers.next()? })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::depth::{Taken, processors};

    #[test]
    fn what_the_kernel_counts_is_read() {
        let read = Scheduled { delayed: Duration::from_nanos(17), times: 3 };
        assert_eq!(parse("120 17 3\n"), Some(read));
        assert_eq!(["", "120 17", "a b c"].map(parse), [None; 3]);
        if std::path::Path::new("/proc/thread-self/schedstat").exists() {
            assert!(scheduled().unwrap().times > 0);
        }
    }

    #[test]
    fn work_counts_as_work() {
        let before = time_worked();
        while time_worked() < before + Duration::from_micros(100) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_wait_for_a_processor_is_no_wait_for_storage() {
        let is_counted = scheduled().is_some();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 * processors() {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            // It stands behind another thread when it wakes up, unless there are more processors
            // than it may use.
            let (mut queued, mut all) = (Duration::ZERO, Vec::new());
            while is_counted && queued < Duration::from_millis(1) && all.len() < 10_000 {
                let begun = Instant::now();
                let (inside, taken) = Taken::measure(|| {
                    let queued = Queued::from_now();
                    thread::sleep(Duration::from_micros(50));
                    queued.waited()
                });
                all.push((taken.waited + inside, begun.elapsed()));
                queued += inside;
            }
            done.store(true, Ordering::Relaxed);
            assert!(all.iter().all(|(apart, together)| apart <= together), "{all:?}");
        });
    }

    #[test]
    fn a_thread_that_sleeps_has_waited_and_one_that_works_has_not() {
        let before = times_waited();
        thread::sleep(Duration::from_millis(1));
        let slept = times_waited();
        assert!(slept > before, "{before} {slept}");
        // An emulated processor waits for itself now and then, and so does a page of the program.
        let works = (0..20).any(|_| {
            let before = times_waited();
            assert_eq!(std::hint::black_box((0..1000_u64).sum::<u64>()), 499_500);
            times_waited() == before
        });
        assert!(works, "no time without a wait");
    }
}
