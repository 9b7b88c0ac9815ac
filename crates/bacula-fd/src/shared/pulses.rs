//! The watched loops of the daemon: those that accept connections, and those that wait for a time.
//! The service manager gets its keep-alive only while each of them comes round in time.
//!
//! A loop that waits for something outside (a free slot, a server, a disk) rests meanwhile, because
//! there is no bound for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fd_os::lock::Mutex;

/// How late a loop may come round on a busy host before it counts as stuck.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// All loops that are watched.
#[derive(Debug)]
pub(crate) struct Pulses {
    begun: Instant,
    loops: Mutex<Vec<Arc<Pulse>>>,
}

/// One loop.
#[derive(Debug)]
pub(crate) struct Pulse {
    name: String,
    begun: Instant,
    /// When it has to have come round, milliseconds since `begun`; the largest number while it
    /// rests.
    due: AtomicU64,
}

impl Pulses {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), loops: Mutex::default() }
    }

    /// One more loop, which rests.
    pub(crate) fn add(&self, name: &str) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse { name: name.to_owned(), begun: self.begun, due: AtomicU64::new(u64::MAX) });
        self.loops.lock().push(Arc::clone(&pulse));
        pulse
    }

    /// The names of the loops that should have come round before `now`.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<String> {
        let now = milliseconds(now.saturating_duration_since(self.begun));
        let loops = self.loops.lock();
        loops.iter().filter(|pulse| pulse.due.load(Ordering::Relaxed) < now).map(|pulse| pulse.name.clone()).collect()
    }
}

impl Pulse {
    /// It comes round within this time, and is overdue a grace period after it.
    pub(crate) fn due_within(&self, time: Duration) {
        let due = self.begun.elapsed().saturating_add(time).saturating_add(GRACE);
        self.due.store(milliseconds(due), Ordering::Relaxed);
    }

    /// It waits for something outside, without a bound.
    pub(crate) fn rest(&self) {
        self.due.store(u64::MAX, Ordering::Relaxed);
    }

    /// Sleeps, and is late if it does not wake up.
    pub(crate) fn sleep(&self, time: Duration) {
        self.due_within(time);
        thread::sleep(time);
        self.rest();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_does_not_come_round_is_named_and_one_that_rests_is_not() {
        let pulses = Pulses::new();
        let (listener, timer) = (pulses.add("listener"), pulses.add("timer"));
        let in_a_day = Instant::now() + Duration::from_secs(86_400);
        assert!(pulses.overdue(in_a_day).is_empty());
        listener.due_within(Duration::from_secs(10));
        timer.due_within(Duration::from_secs(90_000));
        assert!(pulses.overdue(Instant::now()).is_empty());
        assert!(pulses.overdue(Instant::now() + Duration::from_secs(60)).is_empty());
        assert_eq!(pulses.overdue(in_a_day), ["listener"]);
        listener.rest();
        assert!(pulses.overdue(in_a_day).is_empty());
        timer.sleep(Duration::from_millis(1));
        assert!(pulses.overdue(in_a_day).is_empty());
    }
}
