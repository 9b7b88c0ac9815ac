//! Staying out of the way of the host's own work: the priority of a job's threads, and rests while the load is high.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use fd_messages::IoPriority;
use fd_os::priority;

/// How often a thread looks at the load, and whether it has rested enough.
const GLANCE: Duration = Duration::from_millis(200);
/// While the load is too high, a thread works a tenth of the time: a host that is always busy gets its backup all the same.
const REST_PER_WORK: u32 = 9;
/// The longest rest is for so much work. Most of what seems to be more was waiting.
const MOST_WORK: Duration = Duration::from_secs(1);

/// What a job takes of the host beside others.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct HostShare {
    /// Nice value of the job's threads, 0 to 19; `None`: that of the daemon.
    pub nice: Option<u8>,
    /// Share of the disks; `None`: that of the daemon.
    pub io: Option<IoPriority>,
    /// One-minute load average above which the job's threads rest most of the time; `None`: they never do.
    pub max_load: Option<f64>,
}

/// The calling thread has the priority of a job, and gets its own back when this is dropped.
pub(crate) struct Lowered {
    nice: Option<i32>,
    io: Option<IoPriority>,
}

impl Lowered {
    /// Lowers the calling thread, and with it the threads that it starts from now on. The second value says what the
    /// kernel refused.
    pub(crate) fn new(share: &HostShare) -> (Self, Option<io::Error>) {
        let mut lowered = Self { nice: None, io: None };
        let refused = lowered.lower(share).err();
        (lowered, refused)
    }

    fn lower(&mut self, share: &HostShare) -> io::Result<()> {
        if let Some(nice) = share.nice {
            let before = priority::nice()?;
            // Nobody is raised by this.
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

impl Drop for Lowered {
    fn drop(&mut self) {
        // Only root gets its nice value back. The thread of anybody else has little left to do.
        let _nice = self.nice.map(priority::set_nice);
        let _io = self.io.map(priority::set_io_priority);
    }
}

/// The rests of one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    max_load: Option<f64>,
    since: Instant,
}

impl Pace {
    pub(crate) fn new(share: &HostShare) -> Self {
        Self { max_load: share.max_load, since: Instant::now() }
    }

    /// To be called between two steps of work; rests if the load wants it.
    pub(crate) fn step(&mut self, is_stopped: &dyn Fn() -> bool) {
        let Some(max_load) = self.max_load else { return };
        let worked = self.since.elapsed();
        if worked < GLANCE {
            return;
        }
        let until = Instant::now() + worked.min(MOST_WORK) * REST_PER_WORK;
        while load().is_some_and(|load| load > max_load) && Instant::now() < until && !is_stopped() {
            thread::sleep(GLANCE);
        }
        self.since = Instant::now();
    }
}

/// The load average of the last minute; `None` where the system does not say.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_lowered_and_raised_again() {
        let before = (priority::nice().unwrap(), priority::io_priority().unwrap());
        let share = HostShare { nice: Some(19), io: Some(IoPriority::Idle), max_load: None };
        let (lowered, refused) = Lowered::new(&share);
        assert!(refused.is_none(), "{refused:?}");
        assert_eq!((priority::nice().unwrap(), priority::io_priority().unwrap()), (19, IoPriority::Idle));
        drop(lowered);
        // Others than root keep the nice value.
        let root = rustix::process::geteuid().is_root();
        assert_eq!(priority::nice().unwrap(), if root { before.0 } else { 19 });
        assert_eq!(priority::io_priority().unwrap(), before.1);
    }

    #[test]
    fn there_is_a_rest_after_work_while_the_load_is_too_high_and_no_other() {
        let rests = |max_load| {
            let mut pace = Pace::new(&HostShare { max_load, ..HostShare::default() });
            pace.since = Instant::now().checked_sub(GLANCE).unwrap();
            let begun = Instant::now();
            pace.step(&|| false);
            begun.elapsed() >= GLANCE
        };
        assert!(!rests(None));
        assert!(!rests(Some(f64::MAX)));
        assert!(rests(Some(-1.0)), "any load is above that");
        let mut pace = Pace::new(&HostShare { max_load: Some(-1.0), ..HostShare::default() });
        let before = pace.since;
        pace.step(&|| true);
        assert_eq!(pace.since, before, "too little was worked");
        pace.since = Instant::now().checked_sub(MOST_WORK).unwrap();
        pace.step(&|| true);
        assert!(pace.since.elapsed() < MOST_WORK * REST_PER_WORK, "who is stopped does not rest");
    }
}
