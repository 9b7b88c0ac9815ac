//! Several clients of one daemon that are saved at once, each a process of its own with the same
//! tree: as many hosts would be, but on this one. A sample has the time from the first connection's
//! begin to the last one's end, and sums of all of them.

use std::collections::BTreeMap;

use bed::{Bed, BedOptions, ClientOptions, Clocked, Console, Fd, FileSet, JobResult, Result};
use nix::unistd::sync;

use crate::cell::Cell;
use crate::connection::Watch;
use crate::group::Replica;
use crate::problems::Problem;
use crate::processes::{Before, used_by_others};
use crate::sample::{Sample, Side};
use crate::statistics::float;
use crate::surroundings::{Stalls, Surroundings};
use crate::tree::Standing;
use crate::volumes::remove_volumes;

/// A bed with so many clients of each daemon.
#[derive(Debug)]
pub struct Together<'a> {
    console: Console,
    bed: Bed,
    tree: &'a Standing,
    watch: &'a Watch,
    count: u16,
}

impl<'a> Together<'a> {
    /// Raises the bed.
    pub fn start(cell: Cell, count: u16, tree: &'a Standing, watch: &'a Watch) -> Result<Self> {
        let client = |fd: Fd, number| ClientOptions::new(fd).named(&name(fd.name(), number));
        let clients = Fd::BOTH.into_iter().flat_map(|fd| (1..=count).map(move |at| client(fd, at)));
        let mut options = BedOptions::new("together", clients)?;
        options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
        let words = cell.variant.options();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        options.file_sets = vec![FileSet::new("Bench", &words, &[&tree.path])];
        let bed = Bed::start(options)?;
        Ok(Self { console: Console::of(&bed)?, bed, tree, watch, count })
    }

    /// One replica: all clients of each daemon at once.
    pub fn replica(&mut self, cell: Cell, replica: u32, turns: &[Side]) -> Result<Replica> {
        let (mut samples, mut problems, mut made) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (turn, &side) in (1..).zip(turns) {
            sync();
            cell.tree.kind.warm(&self.tree.path)?;
            let (sample, jobs) = self.measure(cell, side, replica, turn)?;
            if let Some(job) = jobs.into_iter().find(|job| job.row.status != 'T' || job.row.errors > 0) {
                problems.push(Problem::failed(&job.log));
            }
            made.insert(side, (sample.files, sample.read_bytes));
            samples.push(sample);
        }
        if made.get(&Side::Stock) != made.get(&Side::Ours) {
            problems.push(Problem::differed(&format!("files and bytes differ: {made:?}")));
        }
        Ok(Replica { samples, problems })
    }

    fn measure(&mut self, cell: Cell, side: Side, replica: u32, turn: u32) -> Result<(Sample, Vec<JobResult>)> {
        let names: Vec<String> = (1..=self.count).map(|number| name(side.name(), number)).collect();
        let (mut daemons, mut ports) = (Vec::new(), Vec::new());
        for name in &names {
            let client = self.bed.client(name)?;
            daemons.push(client.pid()?);
            ports.push(client.port());
        }
        let around = Surroundings::found(self.bed.folder());
        let (before, others) = (Before::of(&daemons)?, used_by_others(&mut self.bed)?);
        let stalls = Stalls::now();
        let commands: Vec<String> = names.iter().map(|name| format!("run job=backup-{name} level=Full yes")).collect();
        let storage = self.bed.storage().port();
        let run = || self.console.run(&self.bed, &commands);
        let (clocked, span) = self.watch.all_of(&ports, storage, run)?;
        let queued = span.started.map(|started| clocked.until(started));
        let Clocked { results, took, .. } = clocked;
        let stalls = Stalls::now().since(stalls);
        let cost = before.until_now(&daemons)?;
        let [sd, dir] = used_by_others(&mut self.bed)?;
        let sum = |of: fn(&JobResult) -> u64| results.iter().map(of).sum::<u64>();
        let bad = results.iter().find(|job| job.row.status != 'T').map(|job| job.row.status);
        let warned = results.iter().any(|job| job.row.errors > 0);
        let sample = Sample {
            cell,
            side,
            replica,
            turn,
            outcome: bad.unwrap_or(if warned { 'W' } else { 'T' }),
            connection: span.life.as_secs_f64() * 1e3,
            first: None,
            job: Some(took.as_secs_f64() * 1e3),
            queued,
            fd: cost.cpu,
            // The kernel's ticks of each are not summed.
            fd_user: 0.0,
            fd_system: 0.0,
            sd: sd - others[0],
            dir: dir - others[1],
            rss: float(cost.peak),
            files: sum(|job| job.row.files),
            bytes: sum(|job| job.row.bytes),
            read_bytes: sum(|job| job.row.read_bytes),
            around: Surroundings { stalls, ..around },
            program: None,
            harness: None,
        };
        self.tidy(&names, &results)?;
        Ok((sample, results))
    }

    /// Removes what the jobs have written.
    fn tidy(&self, names: &[String], jobs: &[JobResult]) -> Result<()> {
        names.iter().zip(jobs).try_for_each(|(name, job)| remove_volumes(&self.bed, job, name))
    }
}

/// Of a client of the bed.
fn name(side: &str, number: u16) -> String {
    format!("{side}{number}")
}
