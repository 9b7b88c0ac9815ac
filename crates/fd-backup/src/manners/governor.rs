//! Decides how much backups give way, from what each interval was like. No clock, no files.

use std::time::Duration;

use fd_messages::Pressure;

use crate::manners::host::Interval;

/// Thousandths of the time that a thread rests at most.
pub(crate) const MOST_REST: u32 = 500;
/// The same where a job gives way whatever it costs.
pub(crate) const GENEROUS_REST: u32 = 900;
/// Each interval in which others suffer adds this much.
const MORE: u32 = 125;
/// Each interval in which nobody does takes this much back.
const LESS: u32 = 50;
/// Somebody else is at work: their flushes per second, …
const FLUSHES: f64 = 4.0;
/// … bytes per second read from disks, …
const READ: f64 = 1_048_576.0;
/// … or processors used. Ticks are coarse, so less than this may be none.
const OTHERS_USER: f64 = 0.15;
/// A processor is short if no more than this share of them is idle …
const IDLE: f64 = 0.1;
/// … and threads wait for one in at least this share of the time.
const CPU_WAITS: f64 = 0.2;
/// The disks are short if threads wait for them in at least this share of the time …
const IO_WAITS: f64 = 0.2;
/// … and an operation takes at least so long. It is the time that a disk with heads needs.
const SLOW_OPERATION: Duration = Duration::from_millis(5);
/// Memory is short if threads wait for it in at least this share of the time.
const MEMORY_WAITS: f64 = 0.1;
/// Length of the memory for the use of processors.
const SMOOTH: Duration = Duration::from_millis(1500);

/// What is decided for the next interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decision {
    /// Thousandths of its time that each thread rests.
    pub(crate) rest: u32,
    /// Why, also while the rest is being taken back.
    pub(crate) reason: Option<Pressure>,
    /// Others need the processors: what threads of a low priority wait is given away.
    pub(crate) cpu_is_wanted: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Governor {
    most_rest: u32,
    rest: u32,
    reason: Option<Pressure>,
    /// Processors that others use, smoothed.
    others_user: f64,
}

impl Governor {
    /// Lets threads rest at most so many thousandths of their time.
    pub(crate) const fn new(most_rest: u32) -> Self {
        Self { most_rest, rest: 0, reason: None, others_user: 0.0 }
    }

    /// Takes the next interval. `has_low_priority`: the threads of backups wait for all others.
    pub(crate) fn observe(&mut self, interval: &Interval, has_low_priority: bool) -> Decision {
        let weight = (interval.length.as_secs_f64() / SMOOTH.as_secs_f64()).clamp(0.0, 1.0);
        self.others_user += (interval.others_user - self.others_user) * weight;
        let cpu_is_wanted = self.others_are_here(interval) && cpu_is_short(interval);
        if let Some(reason) = self.need(interval, cpu_is_wanted, has_low_priority) {
            self.rest = (self.rest + MORE).min(self.most_rest);
            self.reason = Some(reason);
        } else {
            self.rest = self.rest.saturating_sub(LESS);
            self.reason = self.reason.filter(|_| self.rest > 0);
        }
        Decision { rest: self.rest, reason: self.reason, cpu_is_wanted }
    }

    /// What others are short of, if resting gives it to them.
    fn need(&self, interval: &Interval, cpu_is_wanted: bool, has_low_priority: bool) -> Option<Pressure> {
        if !self.others_are_here(interval) {
            return None;
        }
        if memory_is_short(interval) {
            return Some(Pressure::Memory);
        }
        if io_is_short(interval) {
            return Some(Pressure::Io);
        }
        // A low priority is enough, unless a Storage Daemon, which has none, shares the processors.
        let rest_helps = interval.storage_is_here || !has_low_priority;
        (cpu_is_wanted && rest_helps).then_some(Pressure::Cpu)
    }

    /// Whether anybody else is at work. A backup that is alone makes pressure, too, but only on
    /// itself.
    fn others_are_here(&self, interval: &Interval) -> bool {
        interval.flushes >= FLUSHES || interval.others_read >= READ || self.others_user >= OTHERS_USER
    }
}

/// `/proc/pressure` is missing in old kernels: then idle processors decide alone.
fn cpu_is_short(interval: &Interval) -> bool {
    let [waits, ..] = interval.pressure;
    interval.idle.is_some_and(|idle| idle <= IDLE) && waits.is_none_or(|waits| waits >= CPU_WAITS)
}

/// Likewise, the time of an operation decides alone.
fn io_is_short(interval: &Interval) -> bool {
    let [_, waits, _] = interval.pressure;
    interval.operation.is_some_and(|time| time >= SLOW_OPERATION) && waits.is_none_or(|waits| waits >= IO_WAITS)
}

fn memory_is_short(interval: &Interval) -> bool {
    let [.., waits] = interval.pressure;
    waits.is_some_and(|waits| waits >= MEMORY_WAITS)
}

#[cfg(test)]
mod tests;
