//! One round: generations of a tree, each saved by both daemons in all lanes at once, with trouble
//! before and meanwhile; at the end everything is compared.

use std::collections::HashMap;
use std::fs;
use std::time::{Instant, SystemTime};

use bed::{BedError, Result, line_differences, next_second};

use crate::compare::{self, Sessions};
use crate::counts::Count;
use crate::course::{Course, Outcome};
use crate::living;
use crate::plan::{Check, Lane, Level, Pair, Plan, Trouble};
use crate::stage::Stage;

/// Does the round of a plan.
pub(crate) fn run(plan: &Plan, verbose: bool) -> Result<Outcome> {
    let told_since = verbose.then(Instant::now);
    let stage = Stage::raise(plan)?;
    let backups = plan.lanes.iter().map(|_| Vec::new()).collect();
    let mut round = Course {
        plan,
        stage,
        outcome: Outcome::default(),
        generation: 0,
        backups,
        checks: Vec::new(),
        interrupted: Vec::new(),
        told_since,
    };
    for lane in &plan.lanes {
        round.note(&format!("{lane:?}"));
    }
    for (generation, troubles) in plan.troubles.iter().enumerate() {
        round.generation = generation;
        if generation > 0 {
            next_second()?;
            living::change(&round.stage.tree, plan.seed.wrapping_add(generation as u64), plan.tree.new_links)?;
        }
        for &trouble in troubles {
            round.trouble(trouble)?;
        }
        next_second()?;
        round.note("save");
        round.save(troubles.contains(&Trouble::Cancel))?;
        round.note("check");
        round.check()?;
        round.note("estimate");
        round.estimate()?;
        round.note("restore");
        round.restore()?;
        round.must_run()?;
    }
    round.note("interrupted jobs");
    round.judge_interrupted()?;
    round.note("compare");
    round.compare()?;
    round.note("end");
    round.count(Count::Rounds, 1);
    let differences = round.outcome.differences.len() as u64;
    round.count(Count::Differences, differences);
    Ok(round.outcome)
}

impl Course<'_> {
    /// Runs the jobs of all lanes at once.
    fn save(&mut self, cancel: bool) -> Result<()> {
        let held = if cancel { Some(self.hold()?) } else { None };
        let mut commands = Vec::new();
        for lane in &self.plan.lanes {
            let level = match lane.levels.get(self.generation) {
                None | Some(Level::Full) => "Full",
                Some(Level::Differential) => "Differential",
                Some(Level::Incremental) => "Incremental",
            };
            let command = |client: &str| format!("run job={}-{client} level={level} yes", lane.name);
            commands.extend(lane.pair.clients().map(command));
        }
        let jobs = self.stage.bed.queue_all(&commands)?;
        if let Some(held) = held {
            self.cancel(held)?;
        }
        self.stage.bed.wait_for_reports(&jobs)?;
        self.count(Count::Jobs, jobs.len() as u64);
        for (lane, pair) in self.backups.iter_mut().zip(jobs.chunks(2)) {
            lane.extend(<[u32; 2]>::try_from(pair));
        }
        Ok(())
    }

    /// Verify jobs. Those that read a volume are run one by one: a second reader of a device would
    /// be asked again in 30 s.
    fn check(&mut self) -> Result<()> {
        let wanted = |(number, lane): (usize, &Lane)| {
            lane.checks.get(self.generation).copied().flatten().map(|check| (number, check))
        };
        let (volumes, disks): (Vec<_>, Vec<_>) = self
            .plan
            .lanes
            .iter()
            .enumerate()
            .filter_map(wanted)
            .partition(|(_, check)| matches!(check, Check::Volume | Check::Data));
        let batches = std::iter::once(disks).chain(volumes.into_iter().map(|one| vec![one]));
        for batch in batches.filter(|batch| !batch.is_empty()) {
            let mut commands = Vec::new();
            for (number, check) in &batch {
                let Some(lane) = self.plan.lanes.get(*number) else { continue };
                let command =
                    |client: &str| format!("run job={}-{}-{client} level={} yes", lane.name, check.job(), check.name());
                commands.extend(lane.pair.clients().map(command));
            }
            let jobs = self.stage.bed.run_all(&commands)?;
            self.count(Count::Jobs, jobs.len() as u64);
            for ((number, check), pair) in batch.into_iter().zip(jobs.chunks(2)) {
                if let Ok(pair) = <[u32; 2]>::try_from(pair) {
                    self.checks.push((number, self.generation, check, pair));
                }
            }
        }
        Ok(())
    }

    /// What both daemons would save.
    fn estimate(&mut self) -> Result<()> {
        for lane in self.plan.lanes.iter().filter(|lane| lane.estimates.get(self.generation) == Some(&true)) {
            let mut told = Vec::new();
            for client in lane.pair.clients() {
                let command = format!("estimate job={}-{client} listing level=Incremental", lane.name);
                let answer = self.stage.bed.console(&[&command])?.replace(client, "CLIENT");
                let is_told = |line: &&str| !line.contains("127.0.0.1") && !line.contains("You have messages");
                let lines = answer.lines().filter(is_told).filter(|line| !lane.bpipe || !line.contains("  /few/"));
                told.push(lines.map(str::to_owned).collect::<Vec<_>>());
            }
            self.outcome.counts.add(Count::Estimates, 2);
            if let [stock, ours] = &told[..] {
                let differences = line_differences(&format!("{} estimate", lane.name), stock, ours);
                self.outcome.differences.extend(differences);
            }
        }
        Ok(())
    }

    /// Each daemon restores what the other saved.
    fn restore(&mut self) -> Result<()> {
        let begin = now();
        let mut commands = Vec::new();
        let mut wanted = Vec::new();
        for (lane, jobs) in self.plan.lanes.iter().zip(&self.backups) {
            if lane.restores.get(self.generation) != Some(&true) {
                continue;
            }
            let [reference, test] = lane.pair.clients();
            // Only ours can read its ZSTD.
            let sides = if lane.zstd { [(0, reference), (1, test)] } else { [(1, reference), (0, test)] };
            for (of, onto) in sides {
                let chain: Vec<_> = lane.chain(self.generation);
                let ids = chain.iter().filter_map(|&at| Some(jobs.get(at)?.get(of)?.to_string()));
                let from = if of == 0 { reference } else { test };
                let place = self.stage.bed.folder().join(format!("restored/{}-by-{onto}", lane.name));
                commands.push(format!(
                    "restore jobid={} client={from}-fd restoreclient={onto}-fd where={} replace=always all done yes",
                    ids.collect::<Vec<_>>().join(","),
                    place.display()
                ));
                wanted.push((lane.name.clone(), place));
            }
        }
        if commands.is_empty() {
            return Ok(());
        }
        let jobs = self.stage.bed.run_all(&commands)?;
        self.count(Count::Jobs, jobs.len() as u64);
        for (pair, places) in jobs.chunks(2).zip(wanted.chunks(2)) {
            let (Ok(pair), [(lane, stock), (_, ours)]) = (<[u32; 2]>::try_from(pair), places) else { continue };
            let results = self.results(pair)?;
            let bytes = results.iter().map(|job| job.row.bytes).sum();
            self.count(Count::Bytes, bytes);
            self.count(Count::Pairs, 1);
            self.count(Count::Trees, 1);
            for difference in compare::restores(&results, [ours, stock], begin)? {
                self.differ(&format!("{lane} restored: {difference}"));
            }
            for place in [ours, stock] {
                fs::remove_dir_all(place).map_err(BedError::file("remove", place))?;
            }
        }
        Ok(())
    }

    /// Compares what all jobs left.
    fn compare(&mut self) -> Result<()> {
        let mut volumes: HashMap<&str, Sessions> = HashMap::new();
        for client in Pair::ALL.iter().flat_map(|pair| pair.clients()) {
            volumes.insert(client, self.stage.bed.sessions(client)?);
        }
        let nothing = Sessions::new();
        let all: Vec<_> = self.plan.lanes.iter().zip(self.backups.clone()).collect();
        for (lane, jobs) in all {
            for (generation, pair) in jobs.into_iter().enumerate() {
                self.generation = generation;
                let results = self.results(pair)?;
                let of = lane.pair.clients().map(|client| volumes.get(client).unwrap_or(&nothing));
                let (records, found) = compare::backups(&self.stage.bed, lane, &results, of, &self.stage.key)?;
                self.count(Count::Pairs, 1);
                self.count(Count::Records, records);
                self.count(Count::Files, results.iter().map(|job| job.row.files).sum());
                self.count(Count::Bytes, results.iter().map(|job| job.row.bytes).sum());
                for difference in found {
                    self.differ(&format!("{} {:?}: {difference}", lane.name, lane.levels.get(generation)));
                }
            }
        }
        for (number, generation, check, pair) in std::mem::take(&mut self.checks) {
            let Some(lane) = self.plan.lanes.get(number) else { continue };
            self.generation = generation;
            let results = self.results(pair)?;
            self.count(Count::Pairs, 1);
            for difference in compare::checks(lane, &results) {
                self.differ(&format!("{} {}: {difference}", lane.name, check.name()));
            }
        }
        Ok(())
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed())
}
