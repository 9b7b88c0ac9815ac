//! The memory of all jobs of a daemon. Each gets its share when it begins, and gives it back when
//! it ends.

use std::sync::Arc;

use fd_os::lock::Mutex;

/// The least that a job gets, bytes: one piece. It is beyond the budget if that is spent.
const LEAST: usize = 1 << 20;
/// Of a process without many jobs, bytes.
const USUAL_LEAST: usize = 8 << 20;
/// The most that a job gets, bytes. With less, large files that are read at the same time are
/// seldom digested together: 63 % of the benchmark's at 24 MiB, 90 % at 48.
const MOST: usize = 48 << 20;

/// An accurate list takes so much at a time.
const LIST_STEP: usize = 1 << 20;

/// What all jobs may have together: backups for finished records that are not sent yet, and
/// accurate lists.
#[derive(Debug)]
pub struct MemoryBudget {
    /// What a job gets while there is plenty.
    usual: usize,
    free: Mutex<usize>,
    /// For accurate lists.
    free_for_lists: Mutex<usize>,
}

/// What an accurate list has taken, which goes back with it.
#[derive(Debug)]
pub struct ListMemory {
    budget: Arc<MemoryBudget>,
    taken: usize,
}

/// The share of one job, which goes back with it.
#[derive(Debug)]
pub struct MemoryShare {
    budget: Arc<MemoryBudget>,
    bytes: usize,
    /// What it has taken from the budget.
    taken: usize,
}

impl MemoryBudget {
    /// A quarter of this memory of the process, bytes, and half of it for accurate lists: the rest
    /// is for the program, for threads, and for what is read.
    pub fn of(memory: u64) -> Arc<Self> {
        let part = |of: u64| usize::try_from(memory / of).unwrap_or(usize::MAX);
        Arc::new(Self {
            usual: part(32).clamp(USUAL_LEAST, MOST),
            free: Mutex::new(part(4)),
            free_for_lists: Mutex::new(part(2)),
        })
    }

    /// The share of a job that begins: as usual, but at most half of what is left, so that there is
    /// always some for the next one.
    pub fn take(self: &Arc<Self>) -> MemoryShare {
        let mut free = self.free.lock();
        let bytes = self.usual.min(*free / 2).max(LEAST);
        let taken = bytes.min(*free);
        *free -= taken;
        MemoryShare { budget: Arc::clone(self), bytes, taken }
    }

    /// The memory of an accurate list that begins: none so far.
    pub fn list(self: &Arc<Self>) -> ListMemory {
        ListMemory { budget: Arc::clone(self), taken: 0 }
    }
}

impl ListMemory {
    /// Whether the list may have so many bytes.
    pub(crate) fn lets_have(&mut self, bytes: usize) -> bool {
        let Some(missing) = bytes.checked_sub(self.taken).filter(|missing| *missing > 0) else { return true };
        let mut free = self.budget.free_for_lists.lock();
        let step = missing.max(LIST_STEP.min(*free));
        let Some(left) = free.checked_sub(step) else { return false };
        *free = left;
        self.taken += step;
        true
    }
}

impl Drop for ListMemory {
    fn drop(&mut self) {
        let mut free = self.budget.free_for_lists.lock();
        *free = free.saturating_add(self.taken);
    }
}

impl MemoryShare {
    /// How much it is.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut free = self.budget.free.lock();
        *free = free.saturating_add(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What so many jobs get at the same time.
    fn shares(memory: u64, jobs: usize) -> Vec<usize> {
        let budget = MemoryBudget::of(memory);
        let held: Vec<_> = (0..jobs).map(|_| budget.take()).collect();
        held.iter().map(|share| share.bytes() >> 20).collect()
    }

    #[test]
    fn jobs_share_a_quarter_of_what_the_process_can_have() {
        assert_eq!(shares(64 << 20, 5), [8, 4, 2, 1, 1]);
        assert_eq!(shares(256 << 20, 10), [8, 8, 8, 8, 8, 8, 8, 4, 2, 1]);
        assert_eq!(shares(24 << 30, 100), [48; 100]);
        for memory in [64 << 20, 256 << 20, 512 << 20, 2 << 30] {
            let all: usize = shares(memory, 20).iter().sum();
            assert!(all as u64 <= (memory >> 22) + 20, "{memory}: {all} MiB");
        }
    }

    #[test]
    fn lists_share_half_of_what_the_process_can_have() {
        let budget = MemoryBudget::of(64 << 20);
        let (mut one, mut other) = (budget.list(), budget.list());
        assert!(one.lets_have(20 << 20) && one.lets_have(1) && other.lets_have(12 << 20));
        assert!(!other.lets_have((12 << 20) + 1) && !one.lets_have((20 << 20) + 1));
        drop(one);
        assert!(other.lets_have(32 << 20) && !other.lets_have((32 << 20) + 1));
        drop(other);
        assert!(budget.list().lets_have(32 << 20));
    }

    #[test]
    fn what_an_ended_job_had_is_there_for_the_next() {
        let budget = MemoryBudget::of(64 << 20);
        for _ in 0..100 {
            let first = budget.take();
            let second = budget.take();
            assert_eq!((first.bytes(), second.bytes()), (8 << 20, 4 << 20));
        }
        let spent: Vec<_> = (0..100).map(|_| budget.take()).collect();
        drop(spent);
        assert_eq!(budget.take().bytes(), 8 << 20);
    }
}
