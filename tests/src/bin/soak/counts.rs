//! What was done, counted: of a round, of a run, of all runs with one state.

use std::collections::BTreeMap;
use std::fmt;

/// What is counted; the names are those of the state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Count {
    /// Whole rounds.
    Rounds,
    /// Jobs of both daemons.
    Jobs,
    /// Pairs of jobs whose results were compared.
    Pairs,
    /// Estimates of both daemons.
    Estimates,
    /// Files that backups sent, of both.
    Files,
    /// Bytes that jobs reported, of both.
    Bytes,
    /// Records compared.
    Records,
    /// Restored trees compared.
    Trees,
    /// Daemons that were ended and started again between jobs.
    Restarts,
    /// Daemons that were ended or killed in the middle of a job, and started again.
    Kills,
    /// Jobs that were canceled in the middle.
    Cancels,
    /// Restores onto a full disk.
    FullDisks,
    /// Steps of a File Daemon's clock.
    ClockSteps,
    /// Stock File Daemons that `SIGTERM` did not end.
    StockHangs,
    /// Differences that are not documented.
    Differences,
}

/// Their names.
const NAMES: [(Count, &str); 15] = [
    (Count::Rounds, "rounds"),
    (Count::Jobs, "jobs"),
    (Count::Pairs, "pairs"),
    (Count::Estimates, "estimates"),
    (Count::Files, "files"),
    (Count::Bytes, "bytes"),
    (Count::Records, "records"),
    (Count::Trees, "trees"),
    (Count::Restarts, "restarts"),
    (Count::Kills, "kills"),
    (Count::Cancels, "cancels"),
    (Count::FullDisks, "full-disks"),
    (Count::ClockSteps, "clock-steps"),
    (Count::StockHangs, "stock-hangs"),
    (Count::Differences, "differences"),
];

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
        NAMES.iter().fold(String::new(), |text, &(count, name)| text + &format!("{name} {}\n", self.get(count)))
    }

    /// Takes a line of these; whether it is one.
    pub(crate) fn take(&mut self, name: &str, number: u64) -> bool {
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known.map(|&(count, _)| self.add(count, number)).is_some()
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
