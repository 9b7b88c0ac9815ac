//! How a running backup spends its time: what its threads did, and what they waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a thread of a backup does or waits for. The walker, the workers and the sender each have a
/// total, of which the rest are parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The whole run time of the walker.
    Walk,
    /// The walker waits: the workers have enough to do.
    WalkWaits,
    /// The run times of all workers together.
    Work,
    /// Workers open and read files.
    Read,
    /// Workers wait for the walker, or for the results of earlier files.
    WorkWaitsForEntries,
    /// Workers wait for memory, which the sender gives back.
    WorkWaitsForSender,
    /// The sender hands records to the network, or waits until it takes them.
    Send,
    /// The sender waits for records.
    SendWaits,
}

const STAGES: usize = 8;

/// What a host is short of while a backup gives way to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pressure {
    /// Threads wait for a processor.
    Cpu,
    /// Threads wait for disks.
    Io,
    /// Threads wait for memory.
    Memory,
}

impl Pressure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Io, Self::Memory];

    /// The word of the kernel's file for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Io => "io",
            Self::Memory => "memory",
        }
    }
}

/// Sums over the threads of one job; readable at any time.
#[derive(Default, Debug)]
pub struct StageTimes {
    sums: [AtomicU64; STAGES],
    gave_way: [AtomicU64; 3],
    pulse: Pulse,
}

/// Whether the threads of a backup can still move.
#[derive(Default, Debug)]
struct Pulse {
    /// Threads that take part.
    threads: AtomicU64,
    /// Those of them that wait for another one of them.
    waiting: AtomicU64,
    /// How often such a wait has ended.
    moves: AtomicU64,
}

/// A thread that takes part, until it is dropped.
#[derive(Debug)]
pub struct TakingPart<'p>(&'p Pulse);

impl Drop for TakingPart<'_> {
    fn drop(&mut self) {
        self.0.moves.fetch_add(1, Ordering::Relaxed);
        self.0.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A wait for another thread of the same backup, until it is dropped.
#[derive(Debug)]
pub struct Waiting<'p>(&'p Pulse);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.moves.fetch_add(1, Ordering::Relaxed);
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StageTimes {
    /// One more thread takes part in the backup.
    pub fn take_part(&self) -> TakingPart<'_> {
        self.pulse.threads.fetch_add(1, Ordering::Relaxed);
        TakingPart(&self.pulse)
    }

    /// A thread that takes part waits for another one. Waits for files, the network or a clock are
    /// none of these.
    pub fn wait(&self) -> Waiting<'_> {
        self.pulse.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.pulse)
    }

    /// The position of all threads if each waits for another one; `None` while one of them can
    /// move. The same number on two occasions means that none moved in between, and none ever will,
    /// since nothing from outside wakes them.
    pub fn standstill(&self) -> Option<u64> {
        let moves = self.pulse.moves.load(Ordering::Acquire);
        let threads = self.pulse.threads.load(Ordering::Acquire);
        (threads > 0 && self.pulse.waiting.load(Ordering::Acquire) >= threads).then_some(moves)
    }

    /// Adds a time.
    pub fn add(&self, stage: Stage, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(sum) = self.sums.get(stage as usize) {
            sum.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// So much of the job's time was given away to others.
    pub fn give_way(&self, to: Pressure, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(sum) = self.gave_way.get(to as usize) {
            sum.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// How much of the job's time was given away, for this reason.
    pub fn gave_way(&self, to: Pressure) -> Duration {
        let sum = self.gave_way.get(to as usize);
        sum.map_or(Duration::ZERO, |sum| Duration::from_nanos(sum.load(Ordering::Relaxed)))
    }

    /// How much of the job's time was given away, and the words of the reasons, the largest first,
    /// as `io and cpu`. `None` if that is less than half a second.
    pub fn gave_way_to(&self) -> Option<(Duration, String)> {
        let mut parts = Pressure::ALL.map(|to| (self.gave_way(to), to.word()));
        parts.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let sum: Duration = parts.iter().map(|(time, _)| *time).sum();
        let worth_a_word = parts.iter().filter(|(time, _)| *time * 10 >= sum).map(|(_, word)| *word);
        (sum >= Duration::from_millis(500)).then(|| (sum, worth_a_word.collect::<Vec<_>>().join(" and ")))
    }

    /// The sum so far. A thread's total is zero before the thread has ended.
    pub fn get(&self, stage: Stage) -> Duration {
        self.sums.get(stage as usize).map_or(Duration::ZERO, |sum| Duration::from_nanos(sum.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_own_sum() {
        let times = StageTimes::default();
        times.add(Stage::Walk, Duration::from_millis(3));
        times.add(Stage::SendWaits, Duration::from_millis(5));
        times.add(Stage::SendWaits, Duration::from_millis(6));
        assert_eq!(times.get(Stage::Walk), Duration::from_millis(3));
        assert_eq!(times.get(Stage::SendWaits), Duration::from_millis(11));
        assert_eq!(times.get(Stage::Read), Duration::ZERO);
    }

    #[test]
    fn each_pressure_has_its_own_sum() {
        let times = StageTimes::default();
        times.give_way(Pressure::Io, Duration::from_secs(2));
        times.give_way(Pressure::Io, Duration::from_secs(1));
        times.give_way(Pressure::Memory, Duration::from_secs(5));
        let sums = Pressure::ALL.map(|pressure| (pressure.word(), times.gave_way(pressure).as_secs()));
        assert_eq!(sums, [("cpu", 0), ("io", 3), ("memory", 5)]);
        assert_eq!(times.gave_way_to(), Some((Duration::from_secs(8), "memory and io".to_owned())));
        assert_eq!(StageTimes::default().gave_way_to(), None);
    }

    #[test]
    fn threads_stand_still_when_each_waits_for_another() {
        let times = StageTimes::default();
        assert_eq!(times.standstill(), None);
        let (first, second) = (times.take_part(), times.take_part());
        let wait = times.wait();
        assert_eq!(times.standstill(), None, "one of them works");
        let other = times.wait();
        let still = times.standstill();
        assert!(still.is_some() && still == times.standstill());
        drop(other);
        assert_eq!(times.standstill(), None);
        let _again = times.wait();
        assert_ne!(times.standstill(), still, "one moved in between");
        drop((wait, first, second));
        assert_eq!(times.standstill(), None, "none is left");
    }
}
