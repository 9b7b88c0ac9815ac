//! A call fails, or moves fewer bytes than it should. `RACES=20000` takes that many faults instead
//! of a selection.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bed::{Bed, Fd, JobResult, Racer, Restore, Result, Rule, below, is_named};

use crate::judge;
use crate::scene::{Planned, Scene, Tally, bed_of_units, inodes, remove, spread, wanted, with_cause};

/// Units of one job.
const UNITS: usize = 150;

/// Which calls, and what happens to them: EIO, ENOMEM, EINTR, EAGAIN, ENOSPC, ESTALE, or less than
/// was asked for.
const FAULTS: [(&str, &str); 9] = [
    ("*", "errno 5"),
    ("*", "errno 12"),
    ("*", "errno 4"),
    ("*", "errno 11"),
    ("*", "errno 28"),
    ("*", "errno 116"),
    (MOVING, "short 17"),
    (MOVING, "short 1"),
    (MOVING, "short 300"),
];
const MOVING: &str = "read,pread64,preadv,preadv2,write,pwrite64,writev,pwritev";

/// What is done meanwhile.
pub(crate) const WHATS: [&str; 4] = ["backup", "restore", "verify", "estimate"];

pub(crate) const ESTIMATE: &str = "estimate job=backup-test level=Full listing";

/// The faults of a job's units, of which this is the `first`, and their rules. Without a number of
/// calls they are only counted.
fn faults(scene: &Scene, first: usize, calls: usize) -> (Vec<Planned>, Vec<Rule>) {
    let drawn = |number| {
        let choice = spread(first + number, calls.max(1) * FAULTS.len());
        let (calls_meant, what) = *FAULTS.get(choice % FAULTS.len()).unwrap();
        let nth = if calls == 0 { 0 } else { 1 + choice / FAULTS.len() };
        // Few calls move bytes.
        let nth = if calls_meant == MOVING { nth % 12 } else { nth };
        let below = Some(scene.unit(number));
        let rule = Rule { below, nth: nth as u64, calls: calls_meant.to_owned(), action: what.to_owned() };
        (Planned { what, nth, acted: None }, rule)
    };
    (0..UNITS).map(drawn).unzip()
}

/// How many files lack metadata and are not named: of a job's warnings about a kind of metadata
/// only the first 25 are shown, and all are counted at its end.
fn unnamed(said: &str) -> usize {
    let counts = said.split(": Had ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    counts.map(|count| count.saturating_sub(25)).sum()
}

/// What a backup has lost or spoiled without a message.
pub(crate) fn judge_backup(bed: &Bed, scene: &Scene, units: usize, job: &JobResult) -> Result<Vec<String>> {
    let files = judge::files(bed.records(&job.row, "test")?)?;
    let (said, _report) = job.log.split_once("  Build OS:").unwrap_or((&job.log, ""));
    let mut problems = judge::misfits(&files, &inodes(&[&scene.tree]), said);
    let lacking: Vec<String> = files.iter().filter_map(|file| judge::lacks(file, said)).collect();
    if lacking.len() > unnamed(said) {
        problems.extend(lacking);
    }
    for number in 0..units {
        problems
            .extend(judge::missing(&scene.unit(number), None, &files, said).iter().map(|path| judge::is_missing(path)));
    }
    Ok(problems)
}

/// What a restore has lost or spoiled without a message.
pub(crate) fn judge_restore(source: &Path, restored: &Path, log: &str) -> Vec<String> {
    let paths = walkdir::WalkDir::new(source).into_iter().map(|entry| entry.unwrap().into_path());
    let problem = |path: PathBuf| {
        let there = restored.join(path.strip_prefix(source).unwrap());
        let [one, other] = [&path, &there].map(|path| seen(path));
        let is_named = |path: &Path| is_named(log, &path.to_string_lossy());
        // A directory above it that can't be made is told once.
        let is_told = there.ancestors().take_while(|path| path.parent().is_some()).any(is_named);
        // Two names of one file.
        let is_told = is_told
            || ["h1", "h2"].iter().any(|name| there.ends_with(name)) && {
                ["h1", "h2"].iter().any(|name| is_named(&restored.join(name)))
            };
        (one != other && !is_told).then(|| format!("{}: {one:?}, restored as {other:?}", there.display()))
    };
    paths.filter_map(problem).collect()
}

/// Everything about an object that a restore makes.
fn seen(path: &Path) -> Option<String> {
    let stat = fs::symlink_metadata(path).ok()?;
    let content = if stat.is_file() { fs::read(path).ok()? } else { Vec::new() };
    let line = String::from_utf8_lossy(content.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
    let is_whole = content.chunks(line.len() + 1).all(|part| part == format!("{line}\n").as_bytes());
    let target = fs::read_link(path).ok();
    let attribute = |name: &str| xattr::get(path, name).ok().flatten();
    let (mode, uid, gid, mtime) = (stat.mode(), stat.uid(), stat.gid(), stat.mtime());
    let attributes = ["user.id", "trusted.id", "system.posix_acl_access"]
        .map(attribute)
        .map(|value| value.map(|value| value.escape_ascii().to_string()));
    Some(format!("{mode:o} {uid} {gid} {mtime} {} {is_whole} {line} {target:?} {attributes:?}", content.len()))
}

/// What was found about a job of the daemon, with its end if that is not a proper one.
fn judge_job(what: &str, job: &JobResult, mut found: Vec<String>) -> Result<Vec<String>> {
    // D is that of a Verify job that has found something.
    if !("TE".contains(job.row.status) || what == "verify" && job.row.status == 'D') {
        found.push(format!("the {what} ended with {}", job.row.status));
    }
    if !found.is_empty() && Fd::under_test()? == Fd::Ours {
        bed::say(&job.log);
    }
    Ok(found)
}

/// The names in the tree that a text has.
fn named(scene: &Scene, text: &str) -> BTreeSet<String> {
    let is_there = |path: &String| is_named(text, path);
    let paths = walkdir::WalkDir::new(&scene.tree).into_iter().map(|entry| entry.unwrap().into_path());
    paths.map(|path| path.to_string_lossy().into_owned()).filter(is_there).collect()
}

/// What a comparison of the disk with the catalog, where all is as it was, has left out or found
/// without a message. `all` is how many files there are.
fn judge_verify(scene: &Scene, job: &JobResult, all: u64) -> Vec<String> {
    let named = named(scene, &job.log).len() as u64;
    let lacks = all.saturating_sub(job.row.files);
    let mut problems = Vec::new();
    if named < lacks {
        problems.push(format!("a verify of {} files instead of {all} names {named}", job.row.files));
    }
    if named == 0 && job.row.status != 'T' {
        problems.push(format!("a verify ended with {} and names no file", job.row.status));
    }
    problems
}

/// An estimate has to come to its end. What it can't look at is told where a test can't see it.
fn judge_estimate(said: &str) -> Vec<String> {
    let has_end = said.contains("2000 OK estimate");
    if has_end { Vec::new() } else { vec![format!("an estimate has no end: {said}")] }
}

/// A daemon, and what its jobs are about.
pub(crate) struct Stage {
    pub(crate) bed: Bed,
    pub(crate) scene: Scene,
    units: usize,
    /// Where restores go.
    pub(crate) to: PathBuf,
    /// The job that is restored and compared.
    good: u32,
    /// What that has saved, and a Verify job has to look at.
    files: u64,
}

impl Stage {
    /// With so many whole units.
    pub(crate) fn start(label: &str, units: usize) -> Result<Self> {
        let (bed, folder, tree) = bed_of_units(label)?;
        let scene = Scene::lay(&folder, tree);
        (0..units).for_each(|number| scene.lay_unit(number, true));
        let good = bed.backup("test", "level=Full")?.must_be_good()?.row;
        Ok(Self { bed, scene, units, to: folder.join("to"), good: good.id, files: good.files })
    }

    /// Where the calls about the units are.
    fn place(&self, what: &str) -> Scene {
        let tree = if what == "restore" { below(&self.to, &self.scene.tree) } else { self.scene.tree.clone() };
        Scene { tree, ..self.scene.clone() }
    }

    /// The command for it.
    pub(crate) fn command(&self, what: &str) -> String {
        let restore = Restore { job: self.good, from: "test", onto: "test", to: &self.to, replace: "always" };
        match what {
            "backup" => "run job=backup-test level=Full yes".to_owned(),
            "restore" => restore.command(),
            "verify" => format!("run job=verify-test level=DiskToCatalog jobid={} yes", self.good),
            _ => ESTIMATE.to_owned(),
        }
    }

    /// Does it once: the job, or what an estimate says.
    fn act(&self, what: &str) -> Result<(Option<JobResult>, String)> {
        let command = self.command(what);
        if command == ESTIMATE {
            return Ok((None, self.bed.console(&[ESTIMATE])?));
        }
        Ok((Some(self.bed.run(&command)?), String::new()))
    }

    /// What was lost or spoiled without a message.
    pub(crate) fn judge(&mut self, what: &str, job: Option<&JobResult>, listed: &str) -> Result<Vec<String>> {
        let Some(job) = job else { return Ok(judge_estimate(listed)) };
        let found = match what {
            "backup" => judge_backup(&self.bed, &self.scene, self.units, job)?,
            "verify" => judge_verify(&self.scene, job, self.files),
            _ => {
                let (said, _report) = job.log.split_once("  Build OS:").unwrap_or((&job.log, ""));
                let place = self.place(what);
                let units = (0..self.units).map(|number| (self.scene.unit(number), place.unit(number)));
                units.flat_map(|(source, restored)| judge_restore(&source, &restored, said)).collect()
            }
        };
        judge_job(what, job, found)
    }
}

#[test]
fn a_call_that_fails_loses_or_spoils_no_file_silently() -> Result<()> {
    skip::lacks!(Racer::missing());
    let mut stage = Stage::start("faults", UNITS)?;
    let wanted = wanted("RACES", UNITS);
    let (mut tallies, mut problems) = (WHATS.map(|_| Tally::default()), Vec::new());
    let mut calls = WHATS.map(|_| 0);
    // The first ones only count.
    for first in std::iter::once(None).chain((0..wanted).step_by(UNITS).map(Some)) {
        for (side, what) in WHATS.into_iter().enumerate() {
            let place = stage.place(what);
            let known = first.map_or(0, |_| calls[side]);
            let (mut faults, rules) = faults(&place, first.unwrap_or_default(), known);
            let watch = place.watch(&mut stage.bed, "test", &rules)?;
            let (job, listed) = stage.act(what)?;
            let counted = watch.finish()?;
            calls[side] = calls[side]
                .max(usize::try_from(counted.iter().map(|counted| counted.calls).max().unwrap_or(0)).unwrap());
            for (fault, counted) in faults.iter_mut().zip(&counted) {
                tallies[side].add(fault.what, counted);
                fault.acted.clone_from(&counted.acted);
            }
            let said = job.as_ref().map_or("", |job| &job.log);
            problems.extend(with_cause(stage.judge(what, job.as_ref(), &listed)?, &faults, said));
            remove(&stage.to);
        }
    }
    // The daemon has not suffered.
    let last = stage.bed.backup("test", "level=Full")?.must_be_good()?;
    problems.extend(judge_backup(&stage.bed, &stage.scene, UNITS, &last)?);
    for (tally, calls) in tallies.iter().zip(calls) {
        eprintln!("of {wanted} faults ({calls} calls about a unit): {tally}");
        assert!(tally.done(&["failed", "shortened"]) * 2 > wanted, "few faults: {tally}");
    }
    problems.iter().take(60).for_each(|problem| eprintln!("{problem:?}"));
    if Fd::under_test()? == Fd::Ours {
        assert!(problems.is_empty(), "{} problems", problems.len());
    }
    Ok(())
}
