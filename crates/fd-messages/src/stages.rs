//! Where the time of a running backup goes: what its threads did, and what they waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a thread of a backup does or waits for. The walker, the workers and the sender each have a total, of which the
/// rest are parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The life of the walker.
    Walk,
    /// The walker waits: the workers have enough to do.
    WalkWaits,
    /// The lives of all workers together.
    Work,
    /// Workers open and read files.
    Read,
    /// Workers wait for the walker, or for what earlier files come to.
    WorkWaitsForEntries,
    /// Workers wait for memory, which the sender gives back.
    WorkWaitsForSender,
    /// The sender hands records to the network, or waits until it takes them.
    Send,
    /// The sender waits for records.
    SendWaits,
}

const STAGES: usize = 8;

/// Sums over the threads of one job; anyone may look at any time.
#[derive(Default, Debug)]
pub struct StageTimes([AtomicU64; STAGES]);

impl StageTimes {
    /// Adds the time since `begun`.
    pub fn add_since(&self, stage: Stage, begun: Instant) {
        self.add(stage, begun.elapsed());
    }

    /// Adds a time.
    pub fn add(&self, stage: Stage, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(sum) = self.0.get(stage as usize) {
            sum.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// The sum so far. Of a thread's total: nothing before the thread has ended.
    pub fn get(&self, stage: Stage) -> Duration {
        self.0.get(stage as usize).map_or(Duration::ZERO, |sum| Duration::from_nanos(sum.load(Ordering::Relaxed)))
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
}
