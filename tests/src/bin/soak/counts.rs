//! What was done, counted: of a round, of a run, of all runs with one state.

use std::collections::BTreeMap;
use std::fmt;

bed::named! {
    /// What is counted, by the names of the state file. Of both daemons, where both do it.
    #[derive(PartialOrd, Ord)]
    pub(crate) Count {
        Rounds = "rounds",
        Jobs = "jobs",
        Pairs = "pairs", // of jobs whose results were compared
        Estimates = "estimates",
        Files = "files", // that backups sent
        Bytes = "bytes", // that jobs reported
        Records = "records", // that were compared
        Trees = "trees", // that were restored and compared
        Restarts = "restarts", // of daemons, between jobs
        Kills = "kills", // of daemons in the middle of a job, which were started again
        Cancels = "cancels", // in the middle of a job
        FullDisks = "full-disks", // onto which jobs restored
        ClockSteps = "clock-steps", // of a File Daemon's clock
        StockHangs = "stock-hangs", // of stock File Daemons that `SIGTERM` did not end
        Differences = "differences", // that are not documented
    }
}

/// How often each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<Count, u64>);

impl Counts {
    /// So many more.
    pub(crate) fn add(&mut self, count: Count, number: u64) {
        *self.0.entry(count).or_default() += number;
    }

    /// How many.
    pub(crate) fn get(&self, count: Count) -> u64 {
        self.0.get(&count).copied().unwrap_or(0)
    }

    /// Adds those of another.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (&count, &number) in &other.0 {
            self.add(count, number);
        }
    }

    /// As lines `name number`.
    pub(crate) fn lines(&self) -> String {
        Count::ALL.map(|count| format!("{} {}\n", count.name(), self.get(count))).concat()
    }

    /// Takes a line of these; whether it is one.
    pub(crate) fn take(&mut self, name: &str, number: u64) -> bool {
        let known = Count::ALL.into_iter().find(|count| count.name() == name);
        known.map(|count| self.add(count, number)).is_some()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = [Count::Restarts, Count::Kills, Count::Cancels, Count::FullDisks, Count::ClockSteps];
        let faults: u64 = faults.iter().map(|&count| self.get(count)).sum();
        let get = |count| self.get(count);
        write!(
            out,
            "{} rounds: {} jobs ({} pairs compared) and {} estimates, {} files, {} MB, {} records, {} restored trees; \
             {faults} faults: {} restarts, {} kills, {} cancels, {} full disks, {} clock steps; {} differences",
            get(Count::Rounds),
            get(Count::Jobs),
            get(Count::Pairs),
            get(Count::Estimates),
            get(Count::Files),
            get(Count::Bytes) / 1_000_000,
            get(Count::Records),
            get(Count::Trees),
            get(Count::Restarts),
            get(Count::Kills),
            get(Count::Cancels),
            get(Count::FullDisks),
            get(Count::ClockSteps),
            get(Count::Differences),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut counts = Counts::default();
        counts.add(Count::Jobs, 7);
        counts.add(Count::ClockSteps, 2);
        let mut again = Counts::default();
        for line in counts.lines().lines() {
            let (name, number) = line.split_once(' ').unwrap();
            assert!(again.take(name, number.parse().unwrap()), "{line}");
        }
        assert_eq!(again.lines(), counts.lines());
        assert!(!again.take("other", 1));
    }
}
