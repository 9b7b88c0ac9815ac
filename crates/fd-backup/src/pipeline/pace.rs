//! Consideration for the host's other work: the priority of a job's threads, and pauses while the
//! load is high or others are short of something.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fd_messages::IoPriority;
use fd_os::priority;

use crate::manners::courtesy::JobCourtesy;
use crate::pipeline::idle;

/// How often a thread reads the load, and the unit of its pauses.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// While the load is too high, a thread works a tenth of the time: a host that is always busy is
/// still backed up.
const REST_PER_WORK: u32 = 9;
/// A pause is computed for at most this much work. Longer intervals were mostly waiting.
const MOST_WORK: Duration = Duration::from_secs(1);

/// A thread that gives way rests after so much work: short pauses, many of them.
const WORK_BEFORE_REST: Duration = Duration::from_millis(5);
/// A rest is computed for at most this much work. Longer intervals were mostly waiting.
const MOST_WORK_BEFORE_REST: Duration = Duration::from_millis(20);
/// A rest is at most this share of the time, in thousandths.
const MOST_REST: u32 = 900;
/// After so many steps a thread looks at the clock.
const STEPS: u32 = 64;

/// The job's share of the host.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct HostShare {
    /// Nice value of the job's threads, 0 to 19; `None`: that of the daemon.
    pub nice: Option<u8>,
    /// Share of the disks; `None`: that of the daemon.
    pub io: Option<IoPriority>,
    /// One-minute load average above which the job's threads pause most of the time; `None`: never.
    pub max_load: Option<f64>,
}

/// The calling thread has the priority of a job until this is dropped.
pub(crate) struct LoweredPriority {
    nice: Option<i32>,
    io: Option<IoPriority>,
}

impl LoweredPriority {
    /// Lowers the priority of the calling thread and of threads that it starts from now on. The
    /// second value is the kernel's error, if any.
    pub(crate) fn new(share: &HostShare) -> (Self, Option<io::Error>) {
        let mut lowered = Self { nice: None, io: None };
        let refused = lowered.lower(share).err();
        (lowered, refused)
    }

    fn lower(&mut self, share: &HostShare) -> io::Result<()> {
        if let Some(nice) = share.nice {
            let before = priority::nice()?;
            // Never raises a priority.
            priority::set_nice(before.max(nice.into()))?;
            self.nice = Some(before);
        }
        if let Some(io) = share.io {
            let before = priority::io_priority()?;
            priority::set_io_priority(io)?;
            self.io = Some(before);
        }
        Ok(())
    }
}

impl Drop for LoweredPriority {
    fn drop(&mut self) {
        // Only root may raise its priority again. Without root, the thread has little left to do.
        let _nice = self.nice.map(priority::set_nice);
        let _io = self.io.map(priority::set_io_priority);
    }
}

/// The pauses of one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    max_load: Option<f64>,
    since: Instant,
    courtesy: Option<Arc<JobCourtesy>>,
    /// Since when the thread has worked, while threads are to rest.
    works_since: Option<Instant>,
    steps: u32,
}

impl Pace {
    pub(crate) fn new(share: &HostShare, courtesy: Option<Arc<JobCourtesy>>) -> Self {
        Self { max_load: share.max_load, since: Instant::now(), courtesy, works_since: None, steps: 0 }
    }

    /// To be called between two steps of work; pauses if the load is too high, or others need what
    /// this thread uses.
    pub(crate) fn step(&mut self, is_stopped: &dyn Fn() -> bool) {
        self.give_way(is_stopped);
        let Some(max_load) = self.max_load else { return };
        let worked = self.since.elapsed();
        if worked < POLL_INTERVAL {
            return;
        }
        let until = Instant::now() + worked.min(MOST_WORK) * REST_PER_WORK;
        while load().is_some_and(|load| load > max_load) && Instant::now() < until && !is_stopped() {
            thread::sleep(POLL_INTERVAL);
            idle::add(POLL_INTERVAL);
        }
        self.since = Instant::now();
    }

    /// Costs next to nothing while nobody needs anything.
    fn give_way(&mut self, is_stopped: &dyn Fn() -> bool) {
        let Some(courtesy) = &self.courtesy else { return };
        let rest = courtesy.rest().min(MOST_REST);
        if rest == 0 {
            self.works_since = None;
            self.steps = self.steps.wrapping_add(1);
            if self.steps.is_multiple_of(STEPS) {
                courtesy.works_on();
            }
            return;
        }
        let now = Instant::now();
        let worked = now.saturating_duration_since(*self.works_since.get_or_insert(now));
        if worked < WORK_BEFORE_REST || is_stopped() {
            return;
        }
        thread::sleep(worked.min(MOST_WORK_BEFORE_REST) * rest / (1000 - rest));
        let end = Instant::now();
        let rested = end.saturating_duration_since(now);
        courtesy.add_rest(rested);
        idle::add(rested);
        self.works_since = Some(end);
    }
}

/// The load average of the last minute; `None` if `/proc` has none.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use fd_messages::Pressure;

    use super::*;
    use crate::manners::budget::Manners;
    use crate::manners::courtesy::Courtesy;
    use crate::manners::governor::Decision;

    #[test]
    fn the_priority_of_a_thread_is_lowered_and_restored() {
        let before = (priority::nice().unwrap(), priority::io_priority().unwrap());
        let share = HostShare { nice: Some(19), io: Some(IoPriority::Idle), max_load: None };
        let (lowered, refused) = LoweredPriority::new(&share);
        assert!(refused.is_none(), "{refused:?}");
        assert_eq!((priority::nice().unwrap(), priority::io_priority().unwrap()), (19, IoPriority::Idle));
        drop(lowered);
        // Without root, the nice value stays.
        let root = rustix::process::geteuid().is_root();
        assert_eq!(priority::nice().unwrap(), if root { before.0 } else { 19 });
        assert_eq!(priority::io_priority().unwrap(), before.1);
    }

    #[test]
    fn a_thread_rests_after_work_while_others_need_something() {
        let courtesy = Courtesy::new(Manners::Generous);
        let begun = Instant::now();
        let job = courtesy.begin(&Arc::default(), true, begun).unwrap();
        let mut pace = Pace::new(&HostShare::default(), Some(Arc::clone(&job)));
        let mut step_rests = |worked| {
            let before = idle::total().time;
            pace.works_since = Instant::now().checked_sub(worked);
            pace.step(&|| false);
            (idle::total().time.saturating_sub(before), pace.works_since)
        };
        assert_eq!(step_rests(MOST_WORK).1, None, "nobody needs anything");
        let decision = Decision { rest: 750, reason: Some(Pressure::Io), cpu_is_wanted: false };
        job.take(decision, POLL_INTERVAL, begun + POLL_INTERVAL);
        let before = Instant::now();
        let (rested, since) = step_rests(MOST_WORK);
        assert!(rested >= 3 * MOST_WORK_BEFORE_REST, "{rested:?}");
        assert!(since > Some(before), "it works again");
        let (_, since) = step_rests(Duration::ZERO);
        assert!(since > Some(before));
        job.take(Decision { rest: 0, reason: None, ..decision }, POLL_INTERVAL, begun + 2 * POLL_INTERVAL);
        assert_eq!(step_rests(MOST_WORK).1, None);
    }

    #[test]
    fn a_thread_pauses_after_work_if_the_load_is_too_high() {
        let mut times = 0;
        let mut has_rested = || std::mem::replace(&mut times, idle::total().times) < idle::total().times;
        has_rested();
        let mut rests = |max_load| {
            let mut pace = Pace::new(&HostShare { max_load, ..HostShare::default() }, None);
            pace.since = Instant::now().checked_sub(POLL_INTERVAL).unwrap();
            pace.step(&|| false);
            has_rested()
        };
        assert!(!rests(None));
        assert!(!rests(Some(f64::MAX)));
        assert!(rests(Some(-1.0)), "any load is above that");
        let mut pace = Pace::new(&HostShare { max_load: Some(-1.0), ..HostShare::default() }, None);
        // In the future.
        let begins = Instant::now() + MOST_WORK;
        pace.since = begins;
        pace.step(&|| false);
        assert!(pace.since == begins && !has_rested(), "too little was worked");
        pace.since = Instant::now().checked_sub(MOST_WORK).unwrap();
        pace.step(&|| true);
        assert!(!has_rested(), "a stopped thread does not pause");
    }
}
