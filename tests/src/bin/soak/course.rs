//! A round that runs: what it has done so far, and what it found.

use std::time::Instant;

use bed::{JobResult, Result, say};

use crate::compare;
use crate::counts::{Count, Counts};
use crate::plan::{Check, HELD, Pair, Plan, Trouble};
use crate::stage::Stage;

/// What a round has come to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// What is not documented.
    pub(crate) differences: Vec<String>,
}

/// A round that runs.
pub(crate) struct Course<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) stage: Stage,
    pub(crate) outcome: Outcome,
    pub(crate) generation: usize,
    /// Jobs of each lane by generation, the stock daemon's first.
    pub(crate) backups: Vec<Vec<[u32; 2]>>,
    /// Verify jobs: lane, generation.
    pub(crate) checks: Vec<(usize, usize, Check, [u32; 2])>,
    /// Jobs that were interrupted, and by what. How they end is asked later: the Director takes a
    /// minute to notice.
    pub(crate) interrupted: Vec<(Trouble, [u32; 2])>,
    /// When it began, if it tells its steps.
    pub(crate) told_since: Option<Instant>,
}

impl Course<'_> {
    pub(crate) fn count(&mut self, count: Count, number: u64) {
        self.outcome.counts.add(count, number);
    }

    /// Tells a step.
    pub(crate) fn note(&self, step: &str) {
        if let Some(start) = self.told_since {
            say(&format!("{:8.2} s, generation {}: {step}", start.elapsed().as_secs_f64(), self.generation));
        }
    }

    /// No daemon may have ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        for client in Pair::ALL.iter().flat_map(|pair| pair.clients()).chain(HELD) {
            self.stage.bed.client(client)?.daemon().process()?.must_run()?;
        }
        Ok(())
    }

    /// Notes a difference.
    pub(crate) fn differ(&mut self, text: &str) {
        let tree = self.stage.tree.display().to_string();
        self.outcome.differences.push(format!("generation {}: {}", self.generation, text.replace(&tree, "@")));
    }

    pub(crate) fn results(&self, jobs: [u32; 2]) -> Result<[JobResult; 2]> {
        Ok([self.stage.bed.result(jobs[0])?, self.stage.bed.result(jobs[1])?])
    }

    /// Both must have ended so.
    pub(crate) fn judge(&mut self, what: &str, jobs: &[JobResult; 2], wanted: char) {
        self.count(Count::Pairs, 1);
        let wrong = compare::statuses(jobs, wanted);
        if !wrong.is_empty() {
            self.differ(&format!("{what} must end with {wanted}: {}", wrong.join("\n")));
        }
    }

    /// A lane of these clients, and its last jobs.
    pub(crate) fn last_backup(&self, pair: Pair) -> Option<(String, [u32; 2])> {
        let lanes = self.plan.lanes.iter().zip(&self.backups);
        let (lane, jobs) =
            lanes.filter(|(lane, _)| lane.pair == pair && !lane.zstd).max_by_key(|(_, jobs)| jobs.len())?;
        let full = lane.chain(jobs.len().checked_sub(1)?).first().copied()?;
        Some((lane.name.clone(), jobs.get(full).copied()?))
    }
}
