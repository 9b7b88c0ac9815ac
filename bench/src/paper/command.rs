//! `bench paper`: what `make paper`, `paper-smoke`, `paper-render` and `paper-check` call.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use bed::{BedError, Result, say};
use clap::Subcommand;

use crate::connection::Watch;
use crate::paper::blocks::Blocks;
use crate::paper::calls;
use crate::paper::counts;
use crate::paper::excerpts;
use crate::paper::gates;
use crate::paper::host::Host;
use crate::paper::made_up::make_up;
use crate::paper::network;
use crate::paper::plan::{Phase, Plan, Rivals, Tail};
use crate::paper::render::{CALLS, render};
use crate::paper::rivals::adapter::Adapter;
use crate::paper::rivals::rival::cost;
use crate::paper::rivals::run;
use crate::paper::tail::{self, Wanted};
use crate::programs::own;
use crate::restored::Restored;

/// The phase of other programs, and the folder that describes them.
const RIVALS: &str = "rivals";
/// Where memory has a file system.
const MEMORY: &str = "/dev/shm";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// Measure what is missing of the plan's phases for this host and commit.
    Run {
        /// One replica of the short form of each phase.
        #[arg(long)]
        smoke: bool,
        /// Only these phases.
        #[arg(long, value_delimiter = ',')]
        phase: Vec<String>,
        /// At most so many blocks of each phase.
        #[arg(long, default_value_t = u32::MAX)]
        blocks: u32,
        /// Where raw rows go; default: the paper's `data`.
        #[arg(long)]
        data: Option<PathBuf>,
        /// Where trees are kept.
        #[arg(long)]
        trees: Option<PathBuf>,
        /// This process is apart already, as its phase wants it.
        #[arg(long, hide = true)]
        apart: bool,
    },
    /// Run the gates that every commit has to pass, and write how they ended; count what the
    /// repository holds.
    Gates {
        /// Only these gates; what is known of the others stays.
        #[arg(long, value_delimiter = ',')]
        gate: Vec<String>,
    },
    /// Say which phases there are, how many jobs they have and how long they take.
    Phases,
    /// Run a command and write what it used to a file.
    #[command(hide = true)]
    Cost {
        /// Wall seconds, CPU seconds, bytes of the largest process.
        report: PathBuf,
        /// The command.
        #[arg(last = true)]
        words: Vec<String>,
    },
    /// Write made-up rows of every phase, to see that both programs compute the same from them.
    MadeUp {
        /// Where they go.
        #[arg(long)]
        data: PathBuf,
    },
    /// Put tables into other pages, those of which all has been measured.
    Excerpts {
        /// Change nothing; fail if a page has another table.
        #[arg(long)]
        check: bool,
    },
    /// Make tables, figures and the text from the raw rows.
    Render {
        /// Where the rows are; default: the paper's `data`.
        #[arg(long)]
        data: Option<PathBuf>,
        /// The sitting that it is about, a host and a commit; default: the plan's.
        #[arg(long)]
        sitting: Option<String>,
        /// That of this host and commit.
        #[arg(long, conflicts_with = "sitting")]
        here: bool,
        /// Where it all goes; default: the paper's `generated`.
        #[arg(long)]
        into: Option<PathBuf>,
    },
}

/// The folder of the paper.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper").join("perf-analysis")
}

impl Paper {
    /// Whether it measures, and so needs a bed.
    pub fn measures(&self) -> bool {
        matches!(self, Self::Run { .. })
    }

    /// Does it; whether all is well. `home` is the target folder's part for the bench.
    pub fn execute(self, watch: &Watch, interrupted: &AtomicBool, home: &Path) -> Result<bool> {
        let paper = folder();
        match self {
            Self::Phases => Plan::read(&paper).and_then(|plan| phases(&plan)).map(|text| {
                say(&text);
                true
            }),
            Self::Gates { gate } => run_gates(&paper, &gate),
            Self::Cost { report, words } => cost(&report, &words),
            Self::MadeUp { data } => make_up(&Plan::read(&paper)?, &data).map(|()| true),
            Self::Excerpts { check } => {
                let top = paper.ancestors().nth(2).unwrap_or(&paper);
                excerpts::put_all(&Plan::read(&paper)?, &paper.join("generated"), top, check)
            }
            Self::Render { data, sitting, here, into } => {
                let repository = paper.ancestors().nth(2).unwrap_or(&paper);
                let own = if here { Some(Host::here(repository, &env::temp_dir())?.name) } else { None };
                let sitting = sitting.or(own);
                let into = into.unwrap_or_else(|| paper.join("generated"));
                render(&paper, &data.unwrap_or_else(|| paper.join("data")), sitting.as_deref(), &into)?;
                say(&format!("The paper's tables, figures and text are in {}.", into.display()));
                Ok(true)
            }
            Self::Run { smoke, phase, blocks, data, trees, apart } => {
                let plan = Plan::read(&paper)?;
                all_known(&plan, &phase)?;
                let repository = paper.ancestors().nth(2).unwrap_or(&paper).to_owned();
                let data = data.unwrap_or_else(|| paper.join("data"));
                let host = Host::here(&repository, &env::temp_dir())?.as_measured(&data)?;
                let blocks = Blocks {
                    plan: &plan,
                    watch,
                    interrupted,
                    trees: trees.unwrap_or_else(|| home.join("trees")),
                    data,
                    host: &host,
                    smoke,
                    at_most: blocks,
                };
                run_phases(&blocks, &phase, apart, home, &paper)
            }
        }
    }
}

/// Counts the repository, and runs these gates or all; whether all have passed.
fn run_gates(paper: &Path, chosen: &[String]) -> Result<bool> {
    let repository = paper.ancestors().nth(2).unwrap_or(paper);
    let (host, plan) = (Host::here(repository, &env::temp_dir())?, Plan::read(paper)?);
    let raw = |phase: &str| -> Result<PathBuf> { Ok(host.folder(&paper.join("data"), phase)?.join("raw.csv")) };
    counts::run(&plan.count, repository, &raw("counts")?)?;
    gates::run(&plan.gate, chosen, repository, &raw("gates")?)
}

/// An error for a phase that the plan does not have.
fn all_known(plan: &Plan, wanted: &[String]) -> Result<()> {
    let phases = plan.phase.iter().map(|phase| phase.name.as_str());
    let all: Vec<&str> = phases.chain(plan.tail.iter().map(|tail| tail.name.as_str())).chain([RIVALS, CALLS]).collect();
    let is_known = |name: &String| all.contains(&name.as_str());
    match wanted.iter().find(|name| !is_known(name)) {
        Some(unknown) => Err(BedError::Usage(format!("plan.toml has no phase {unknown:?}"))),
        None => Ok(()),
    }
}

/// Measures these phases, or all; whether all is well.
fn run_phases(blocks: &Blocks<'_>, phases: &[String], apart: bool, home: &Path, paper: &Path) -> Result<bool> {
    let chosen = blocks.plan.phase.iter().filter(|one| phases.is_empty() || phases.contains(&one.name));
    let kept = measure(blocks, chosen, apart)?;
    let wants = |which: &str| !apart && (phases.is_empty() || phases.iter().any(|name| name == which));
    let tails = &blocks.plan.tail;
    for (at, one) in tails.iter().enumerate().filter(|(_, one)| wants(&one.name)) {
        // The short form takes each road once.
        let is_again = tails.iter().take(at).any(|earlier| earlier.work == one.work);
        if !(blocks.smoke && is_again) {
            tail(blocks, one, home)?;
        }
    }
    if wants(CALLS) {
        calls(blocks)?;
    }
    Ok((!wants(RIVALS) || rivals(blocks, paper)?) && kept)
}

/// The phases with their minutes, as a table.
fn phases(plan: &Plan) -> Result<String> {
    let mut rows = Vec::new();
    for phase in &plan.phase {
        rows.push((phase.name.as_str(), phase.cells()?.len(), phase.replicas, phase.minutes));
    }
    rows.extend(plan.tail.iter().map(|tail| (tail.name.as_str(), 1, tail.replicas, tail.minutes)));
    rows.push((CALLS, plan.calls.cells.len(), plan.calls.replicas, plan.calls.minutes));
    rows.push((RIVALS, 1, plan.rivals.replicas, plan.rivals.minutes));
    let sum: u32 = rows.iter().map(|(.., minutes)| minutes).sum();
    let row = |(name, cells, replicas, minutes)| format!("{name:12} {cells:5} {replicas:8} {minutes:7}");
    let all = [format!("{:12} {:>5} {:>8} {:>7}", "phase", "cells", "replicas", "minutes")].into_iter();
    let lines = all.chain(rows.into_iter().map(row)).chain([format!("{:12} {:>22}", "all", sum)]);
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn measure<'a>(blocks: &Blocks<'_>, phases: impl Iterator<Item = &'a Phase>, apart: bool) -> Result<bool> {
    fs::create_dir_all(&blocks.trees).map_err(BedError::file("create", &blocks.trees))?;
    let mut restored = Restored::new(blocks.trees.with_file_name("restored"))?;
    let mut problems = Vec::new();
    for phase in phases {
        say(&format!("Phase {}: {}", phase.name, phase.title));
        let missing = if phase.acknowledged && !apart { network::missing()? } else { None };
        if let Some(missing) = missing {
            say(&format!("{} is left out: {missing}", phase.name));
        } else if (phase.memory || phase.acknowledged) && !apart {
            problems.extend(process(blocks, phase)?);
        } else {
            problems.extend(blocks.measure(phase, &mut restored)?);
        }
    }
    restored.remove()?;
    for problem in &problems {
        say(&format!("FAILED: {problem}"));
    }
    Ok(problems.is_empty())
}

/// Measures transactions beside a backup.
fn tail(blocks: &Blocks<'_>, tail: &Tail, home: &Path) -> Result<()> {
    let Tail { name, title, .. } = tail;
    let (replicas, scale) = if blocks.smoke { (1, tail.smoke_scale) } else { (tail.replicas, tail.scale) };
    say(&format!("Phase {name}: {title}"));
    if let Some(missing) = tail.work.missing() {
        say(&format!("{name} is left out: {missing}"));
        return Ok(());
    }
    let folder = blocks.host.folder(&blocks.data, name)?;
    let (trees, home, seed) = (blocks.trees.clone(), home.to_owned(), blocks.plan.seed);
    let wanted = Wanted { tail, replicas, scale, seed, trees, home };
    tail::measure(&wanted, &folder.join("raw.csv"), blocks.watch, blocks.interrupted)
}

/// Counts system calls.
fn calls(blocks: &Blocks<'_>) -> Result<()> {
    let Blocks { plan, trees, watch, interrupted, .. } = blocks;
    say("Phase calls: system calls");
    if let Some(missing) = calls::missing() {
        say(&format!("{CALLS} is left out: {missing}"));
        return Ok(());
    }
    let folder = blocks.host.folder(&blocks.data, CALLS)?;
    let mut restored = Restored::new(trees.with_file_name("restored"))?;
    let mut wanted = plan.calls.clone();
    if blocks.smoke {
        (wanted.replicas, wanted.cells) = (1, wanted.cells.into_iter().take(1).collect());
    }
    calls::measure(&wanted, (plan.seed, trees), &folder.join("raw.csv"), (watch, &mut restored), interrupted)?;
    restored.remove()
}

/// Measures other programs beside both daemons.
fn rivals(blocks: &Blocks<'_>, paper: &Path) -> Result<bool> {
    let Rivals { replicas, mebibytes, smoke_mebibytes, .. } = blocks.plan.rivals;
    let (replicas, mebibytes) = if blocks.smoke { (1, smoke_mebibytes) } else { (replicas, mebibytes) };
    say(&format!("Phase {RIVALS}: other programs"));
    let folder = blocks.host.folder(&blocks.data, RIVALS)?;
    let adapters = Adapter::all(&paper.join(RIVALS))?;
    let versions = folder.join("versions.txt");
    fs::write(&versions, run::versions(&adapters)?).map_err(BedError::file("write", &versions))?;
    let wanted = run::Wanted { replicas, mebibytes, seed: blocks.plan.seed };
    let problems = run::measure(wanted, &adapters, &folder.join("raw.csv"), blocks.interrupted)?;
    for problem in &problems {
        say(&format!("FAILED: {problem}"));
    }
    Ok(problems.is_empty())
}

/// Measures a phase in a process of its own: in one whose temporary files and trees are in memory,
/// or in one that enters another network.
fn process(blocks: &Blocks<'_>, phase: &Phase) -> Result<Option<String>> {
    let program = own()?;
    let mut command = if phase.acknowledged { network::command(&program) } else { Command::new(&program) };
    command.args(["paper", "run", "--apart", "--phase", &phase.name]);
    command.args(["--blocks", &blocks.at_most.to_string()]);
    command.arg("--data").arg(&blocks.data);
    if blocks.smoke {
        command.arg("--smoke");
    }
    let folder = if phase.memory { Some(bed::Folder::below(Path::new(MEMORY), "paper")?) } else { None };
    let trees = folder.as_ref().map_or(blocks.trees.clone(), |folder| folder.path().join("trees"));
    command.arg("--trees").arg(trees);
    if let Some(folder) = &folder {
        command.env("TMPDIR", folder.path());
    }
    let status = command.status().map_err(BedError::file("run", &program))?;
    Ok((!status.success()).then(|| format!("phase {}: {status}", phase.name)))
}
