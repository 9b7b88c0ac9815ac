//! Measuring a phase in blocks of replicas. What is there for this host and commit is not measured
//! again, so a phase may take as many sittings as it likes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{Result, say};

use crate::cell::Cell;
use crate::connection::Watch;
use crate::group::Replica;
use crate::order::{shuffled, turns};
use crate::origin::Origin;
use crate::paper::host::Host;
use crate::paper::manifest;
use crate::paper::plan::{Phase, Plan};
use crate::problems::{Problem, What, noted};
use crate::restored::Restored;
use crate::sample::{self, Sample, Side};
use crate::stage::Stage;
use crate::tree::Kind;

/// What measures, and where things go.
pub struct Blocks<'a> {
    /// What is measured.
    pub plan: &'a Plan,
    /// Sees connections.
    pub watch: &'a Watch,
    /// Set when the run is to end after the running job.
    pub interrupted: &'a AtomicBool,
    /// Where trees are kept.
    pub trees: PathBuf,
    /// The folder of all data.
    pub data: PathBuf,
    /// This host.
    pub host: &'a Host,
    /// One replica of the short form only.
    pub smoke: bool,
    /// At most so many blocks in this sitting.
    pub at_most: u32,
}

impl Blocks<'_> {
    /// Measures what is missing of a phase; gives what went wrong.
    pub fn measure(&self, phase: &Phase, restored: &mut Restored) -> Result<Vec<String>> {
        let mut cells = if self.smoke { phase.smoke_cells()? } else { phase.cells()? };
        cells.retain(|cell| {
            let missing = Stage::missing(*cell);
            if let Some(missing) = &missing {
                say(&format!("{cell} is left out: {missing}"));
            }
            missing.is_none()
        });
        let replicas = if self.smoke { 1 } else { phase.replicas };
        let folder = self.host.folder(&self.data, &phase.name)?;
        let raw = folder.join("raw.csv");
        let mut problems = Vec::new();
        let mut blocks = 0;
        let mut first = 1;
        while first <= replicas && blocks < self.at_most && !self.interrupted.load(Ordering::Relaxed) {
            let last = (first + self.plan.block - 1).min(replicas);
            let there = if raw.exists() { whole(&sample::read(&raw)?) } else { BTreeSet::new() };
            let missing: Vec<(Cell, u32)> = cells
                .iter()
                .flat_map(|cell| (first..=last).map(move |replica| (*cell, replica)))
                .filter(|one| !there.contains(one))
                .collect();
            if !missing.is_empty() {
                say(&format!("{}: replicas {first} to {last}, {} jobs", phase.name, 2 * missing.len()));
                problems.extend(self.block(phase, &missing, first, &raw, restored)?);
                blocks += 1;
            }
            first = last + 1;
        }
        Ok(problems)
    }

    /// The missing replicas of a block; trees in an order drawn for this block.
    fn block(
        &self,
        phase: &Phase,
        missing: &[(Cell, u32)],
        first: u32,
        raw: &Path,
        restored: &mut Restored,
    ) -> Result<Vec<String>> {
        let neighbours: Vec<_> = missing
            .chunk_by(|(left, _), (right, _)| (left.tree, left.variant) == (right.tree, right.variant))
            .collect();
        let mut problems = Vec::new();
        for some in shuffled(self.plan.seed, &format!("{}#{first}", phase.name), neighbours) {
            let Some(&first) = some.first() else { continue };
            if self.interrupted.load(Ordering::Relaxed) {
                some.iter().try_for_each(|one| interrupted().note(raw, *one))?;
                problems.push("interrupted".to_owned());
                continue;
            }
            let mut at = first;
            match self.group(phase, some, &mut at, raw, restored) {
                Ok(found) => problems.extend(found),
                Err(error) => {
                    Problem::failed(&error).note(raw, at)?;
                    problems.push(error.to_string());
                }
            }
        }
        Ok(problems)
    }

    /// Replicas of one bed; `at` is the one that is being measured.
    fn group(
        &self,
        phase: &Phase,
        missing: &[(Cell, u32)],
        at: &mut (Cell, u32),
        raw: &Path,
        restored: &mut Restored,
    ) -> Result<Vec<String>> {
        let Some(&(cell, _)) = missing.first() else { return Ok(Vec::new()) };
        let tree = cell.tree.stand(&self.trees)?;
        // What others make is not the same everywhere, so it is described beside the rows.
        let folder = match cell.tree.kind {
            Kind::Foreign(_) => raw.with_file_name("trees"),
            _ => self.data.with_file_name("trees"),
        };
        let manifest = folder.join(format!("{}.manifest", cell.tree));
        if tree.is_new || !manifest.exists() {
            manifest::keep(&tree.path, &manifest)?;
        }
        let origin = Origin::here()?;
        let mut stage = Stage::start(cell, &[], &tree, self.watch, restored)?;
        let mut found = Vec::new();
        let mut missing = missing.to_vec();
        if cell.variant.changer().is_some() {
            // Each restore is that of a Full of its own: which files are torn is chance.
            missing.sort_by_key(|(_, replica)| *replica);
        }
        for (index, &(cell, replica)) in missing.iter().enumerate() {
            *at = (cell, replica);
            if self.interrupted.load(Ordering::Relaxed) {
                missing.iter().skip(index).try_for_each(|one| interrupted().note(raw, *one))?;
                break;
            }
            if let Some(again) = again(raw, *at)? {
                again.note(raw, *at)?;
            }
            let floor = (phase.floor && stage.has_floor(cell.level)).then_some(Side::Floor);
            let order: Vec<_> = turns(self.plan.seed, &cell.to_string(), replica).into_iter().chain(floor).collect();
            let Replica { mut samples, problems } = stage.replica(cell, replica, &order)?;
            origin.mark(&mut samples);
            samples.iter().try_for_each(|sample| sample::append(raw, sample))?;
            let times = samples.iter().map(|sample| format!("{} {:.0} ms", sample.side.name(), sample.connection));
            say(&format!("{cell} #{replica}: {}", times.collect::<Vec<_>>().join(", ")));
            problems.iter().try_for_each(|problem| problem.note(raw, *at))?;
            found.extend(problems.into_iter().map(|problem| problem.reason));
        }
        Ok(found)
    }
}

fn interrupted() -> Problem {
    Problem { what: What::Interrupted, reason: "the run was ended before it".to_owned() }
}

/// What is noted before a replica that something is known of already.
fn again(raw: &Path, one: (Cell, u32)) -> Result<Option<Problem>> {
    let rows = if raw.exists() { sample::read(raw)? } else { Vec::new() };
    let rows = rows.iter().filter(|row| (row.cell, row.replica) == one).count();
    let noted = noted(raw, one)?;
    let reason = format!("{rows} rows are there; before: {}", noted.join(", "));
    Ok((rows > 0 || !noted.is_empty()).then_some(Problem { what: What::Again, reason }))
}

/// The replicas that both daemons have run, however their jobs ended.
fn whole(samples: &[Sample]) -> BTreeSet<(Cell, u32)> {
    let of = |side| -> BTreeSet<_> {
        samples.iter().filter(|one| one.side == side).map(|one| (one.cell, one.replica)).collect()
    };
    of(Side::Stock).intersection(&of(Side::Ours)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn a_replica_is_whole_when_both_daemons_have_run_it() {
        let failed = Sample { outcome: 'E', ..sample(Side::Ours, 2) };
        let samples = [sample(Side::Stock, 1), sample(Side::Stock, 2), failed, sample(Side::Ours, 3)];
        assert_eq!(whole(&samples), BTreeSet::from([(samples[0].cell, 2)]));
    }

    #[test]
    fn a_replica_that_is_measured_again_is_noted() {
        let folder = bed::Folder::new("again").unwrap();
        let raw = folder.path().join("raw.csv");
        let [half, failed, new] = [1, 2, 3].map(|replica| (sample(Side::Ours, replica).cell, replica));
        sample::append(&raw, &sample(Side::Ours, 1)).unwrap();
        Problem::failed(&"no room").note(&raw, failed).unwrap();
        let reason = |one| again(&raw, one).unwrap().map(|problem| problem.reason);
        assert_eq!(reason(half), Some("1 rows are there; before: ".to_owned()));
        assert_eq!(reason(failed), Some("0 rows are there; before: failed".to_owned()));
        assert_eq!(reason(new), None);
    }
}
