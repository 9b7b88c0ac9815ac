//! `bench`: ferrofd beside the stock File Daemon, measured with a real Director and Storage Daemon.
//!
//! Not here: whether ferrofd works; the suites of `tests/` show that. The bench fails when a job
//! fails or the two daemons do not make the same, and never because of times, unless `--check`
//! compares them with the promises.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{BedError, Folder, Result, say};
use clap::{Parser, Subcommand};

use bench::beside::{self, Setup};
use bench::bpipe;
use bench::cell::Cell;
use bench::connection::Watch;
use bench::group::Replica;
use bench::hot_set;
use bench::order;
use bench::origin::Origin;
use bench::paper::command::Paper;
use bench::plot;
use bench::plugin_host;
use bench::problems::Problem;
use bench::restored::Restored;
use bench::s3;
use bench::sample::{self, Sample, Side};
use bench::scan;
use bench::stage::Stage;
use bench::target::{self, Verdict};
use bench::tree::{Kind, Tree};

/// Replicas of a measurement that is kept.
const REPLICAS: u32 = 10;
/// Replicas of a quick look.
const QUICK: u32 = 3;
/// Draws which daemon comes first.
const SEED: u64 = 1;

/// ferrofd beside the stock File Daemon.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say which cells there are.
    List,
    /// Measure.
    Run {
        /// Three replicas instead of ten.
        #[arg(long)]
        quick: bool,
        /// So many replicas.
        #[arg(long, conflicts_with = "quick")]
        replicas: Option<u32>,
        /// Words that choose cells, such as "manyfiles10 full, mixed incr"; default: `BENCH_CELLS`,
        /// else all.
        #[arg(long, env = "BENCH_CELLS", default_value = "")]
        cells: String,
        /// A line of ours' `bacula-fd.toml`, such as "job.depth = 1". The rows don't tell of it, so
        /// it needs an `--out` of its own.
        #[arg(long, requires = "out")]
        setting: Vec<String>,
        /// Where results go; samples are added to those that are there.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Where trees are kept.
        #[arg(long)]
        trees: Option<PathBuf>,
        /// Fail as well if a promise is not kept.
        #[arg(long)]
        check: bool,
    },
    /// See what a Full leaves of a file that the host has in memory.
    HotSet,
    /// Measure `bpipe`: a program that prints, and one that takes what is restored.
    Bpipe {
        /// MiB that the program prints.
        #[arg(long, default_value_t = 10_240)]
        mebibytes: u64,
        /// Jobs of each daemon for each kind of data and signature.
        #[arg(long, default_value_t = QUICK)]
        pairs: u32,
        /// What it prints.
        #[arg(long, value_delimiter = ',', default_value = "zeros,noise")]
        data: Vec<String>,
        /// `none`, `MD5`, `SHA256` …
        #[arg(long, value_delimiter = ',', default_value = "none,MD5,SHA256")]
        signatures: Vec<String>,
        /// Restore each backup, too.
        #[arg(long)]
        restores: bool,
    },
    /// See what other work on the host suffers while a tree is saved.
    Beside {
        #[command(flatten)]
        setup: Setup,
        /// Where trees are kept.
        #[arg(long)]
        trees: Option<PathBuf>,
    },
    /// Measure a plugin's library in a plugin host beside the stock daemon, which runs it itself.
    PluginHost {
        /// MiB of one large file.
        #[arg(long, default_value_t = 2048)]
        mebibytes: u64,
        /// Number of small files.
        #[arg(long, default_value_t = 10_000)]
        files: u64,
        /// Jobs of each daemon for each of both.
        #[arg(long, default_value_t = QUICK)]
        pairs: u32,
    },
    /// Measure buckets: the plugin `s3` beside a FUSE mount that the stock daemon saves.
    S3(s3::Wanted),
    /// See how fast a tree can be looked at with empty caches, by threads that do nothing else.
    Scan(scan::Wanted),
    /// Measure for the paper, and make it from what was measured.
    #[command(subcommand)]
    Paper(Paper),
    /// Make the tables anew from raw files.
    Report {
        /// Folders of results; the tables go to the first one.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// Fail if a promise is not kept.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::List => {
            for cell in Cell::all() {
                say(&cell.to_string());
            }
            Ok(true)
        }
        Command::Run { quick, replicas, cells, setting, out, trees, check } => {
            let replicas = replicas.unwrap_or(if quick { QUICK } else { REPLICAS });
            run(replicas, &cells, &setting, out, trees).map(|(good, kept)| good && (kept || !check))
        }
        Command::HotSet => bed::setup::root(&mut |step| say(step)).and_then(|_| hot_set::measure()).map(|found| {
            say(&hot_set::markdown(&found));
            true
        }),
        Command::Bpipe { mebibytes, pairs, data, signatures, restores } => {
            let wanted = bpipe::Wanted { mebibytes, pairs, data, signatures, restores };
            measured(|watch, interrupted| bpipe::measure(&wanted, watch, interrupted))
        }
        Command::Beside { setup, trees } => beside(&setup, trees),
        Command::PluginHost { mebibytes, files, pairs } => {
            let wanted = plugin_host::Wanted { mebibytes, files, pairs };
            measured(|watch, interrupted| plugin_host::measure(wanted, watch, interrupted))
        }
        Command::S3(wanted) => measured(|watch, interrupted| s3::measure(&wanted, watch, interrupted)),
        Command::Scan(wanted) => scan::measure(&wanted).map(|table| {
            say(&table);
            true
        }),
        Command::Paper(paper) => of_paper(paper),
        Command::Report { folders, check } => report(&folders).map(|kept| kept || !check),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error may be closed, and then the error can't be reported.
            let _ = writeln!(io::stderr(), "bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures for the paper, or makes it from what was measured.
fn of_paper(paper: Paper) -> Result<bool> {
    if !paper.measures() {
        return paper.execute(&Watch::Poll, &AtomicBool::new(false), &home());
    }
    // Before any thread, as in `run`.
    let watch = Watch::best();
    let interrupted = bed::interrupted()?;
    bed::setup::root(&mut |step| say(step))?;
    paper.execute(&watch, &interrupted, &home())
}

/// Measures beside other work. An interrupt ends it at once, and with it all that it has started.
fn beside(setup: &Setup, trees: Option<PathBuf>) -> Result<bool> {
    let watch = Watch::best();
    bed::setup::root(&mut |step| say(step))?;
    let trees = trees.unwrap_or_else(|| home().join("trees"));
    fs::create_dir_all(&trees).map_err(BedError::file("create", &trees))?;
    let tree = Tree { kind: Kind::Mixed, scale: 10 }.stand(&trees)?;
    let folder = Folder::below(&home(), "beside")?;
    say(&beside::markdown(&beside::measure(setup, &tree, folder.path(), &watch)?));
    Ok(true)
}

/// The target folder's part for the bench.
fn home() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target"), PathBuf::from);
    target.join("bench")
}

/// Measures; whether every job was good and both daemons made the same, and whether the promises
/// are kept.
fn run(
    replicas: u32,
    choice: &str,
    settings: &[String],
    out: Option<PathBuf>,
    trees: Option<PathBuf>,
) -> Result<(bool, bool)> {
    let cells = Cell::choose(choice)?;
    // Before any thread: what it mounts is seen by this process and its children only.
    let watch = Watch::best();
    let interrupted = bed::interrupted()?;
    bed::setup::root(&mut |step| say(step))?;
    let out = out.unwrap_or_else(|| home().join("results"));
    let trees = trees.unwrap_or_else(|| home().join("trees"));
    for folder in [&out, &trees] {
        fs::create_dir_all(folder).map_err(BedError::file("create", folder))?;
    }
    say(&format!("{} cells, {replicas} replicas, connections seen by {}", cells.len(), watch.name()));
    let mut restored = Restored::new(home().join("restored"))?;
    let mut failures = Vec::new();
    for neighbours in cells.chunk_by(|left, right| (left.tree, left.variant) == (right.tree, right.variant)) {
        if interrupted.load(Ordering::Relaxed) {
            failures.push("interrupted".to_owned());
            break;
        }
        if let Err(error) =
            run_group(neighbours, settings, replicas, &watch, &mut restored, [&out, &trees], &interrupted)
        {
            let words = shortened(&error.to_string());
            say(&format!("FAILED: {words}"));
            failures.push(words);
        }
    }
    restored.remove()?;
    let kept = if out.join("raw.csv").exists() { report(std::slice::from_ref(&out))? } else { true };
    for failure in &failures {
        say(&format!("FAILED: {failure}"));
    }
    Ok((failures.is_empty(), kept))
}

/// Prepares the host for a measurement that has a bed of its own, makes it, and prints its table.
fn measured(measure: impl FnOnce(&Watch, &AtomicBool) -> Result<String>) -> Result<bool> {
    // Before any thread, as in `run`.
    let watch = Watch::best();
    let interrupted = bed::interrupted()?;
    bed::setup::root(&mut |step| say(step))?;
    say(&measure(&watch, &interrupted)?);
    Ok(true)
}

/// The first lines of a text and the last ones: a job's log may hold a line for each file.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 12;
    let lines: Vec<&str> = text.lines().collect();
    let (head, tail) = (lines.get(..SHOWN), lines.len().checked_sub(SHOWN).and_then(|at| lines.get(at..)));
    match (head, tail) {
        (Some(head), Some(tail)) if lines.len() > 2 * SHOWN => format!("{}\n…\n{}", head.join("\n"), tail.join("\n")),
        _ => text.to_owned(),
    }
}

fn run_group(
    cells: &[Cell],
    settings: &[String],
    replicas: u32,
    watch: &Watch,
    restored: &mut Restored,
    [out, trees]: [&Path; 2],
    interrupted: &AtomicBool,
) -> Result<()> {
    let Some(&first) = cells.first() else { return Ok(()) };
    if let Some(missing) = Stage::missing(first) {
        say(&format!("{first} is left out: {missing}"));
        return Ok(());
    }
    let tree = first.tree.stand(trees)?;
    let origin = Origin::here()?;
    let raw = out.join("raw.csv");
    let mut stage = Stage::start(first, settings, &tree, watch, restored)?;
    for &cell in cells {
        for replica in 1..=replicas {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            let floor = stage.has_floor(cell.level).then_some(Side::Floor);
            let turns: Vec<_> = order::turns(SEED, &cell.to_string(), replica).into_iter().chain(floor).collect();
            let measured = stage.replica(cell, replica, &turns);
            let failed = measured.as_ref().err().map(|error| Problem::failed(error).note(&raw, (cell, replica)));
            failed.transpose()?;
            let Replica { mut samples, problems } = measured?;
            origin.mark(&mut samples);
            say(&line(cell, replica, &samples));
            samples.iter().try_for_each(|sample| sample::append(&raw, sample))?;
            problems.iter().try_for_each(|problem| problem.note(&raw, (cell, replica)))?;
            if let Some(problem) = problems.into_iter().next() {
                return Err(BedError::Usage(problem.reason));
            }
        }
    }
    Ok(())
}

/// One replica for the eye.
fn line(cell: Cell, replica: u32, samples: &[Sample]) -> String {
    let figures: Vec<_> = samples
        .iter()
        .map(|sample| {
            let Sample { side, connection, fd, sd, rss, .. } = sample;
            let mebibytes = rss / f64::from(1 << 20);
            format!("{} {connection:.0} ms, CPU FD {fd:.3} SD {sd:.2} s, {mebibytes:.0} MiB", side.name())
        })
        .collect();
    format!("{cell} #{replica}: {}", figures.join(" | "))
}

/// Makes tables and figures from the raw files of some folders; whether the promises are kept.
fn report(folders: &[PathBuf]) -> Result<bool> {
    let mut samples = Vec::new();
    for folder in folders {
        samples.extend(sample::read(&folder.join("raw.csv"))?);
    }
    let Some(first) = folders.first() else { return Ok(true) };
    let verdicts = target::verdicts(&samples);
    let text = format!("{}\n{}", bench::report::markdown(&samples), target::markdown(&verdicts));
    let mut files = plot::figures(&samples);
    files.push(("table.md", text.clone()));
    for (name, content) in &files {
        let path = first.join(name);
        fs::write(&path, content).map_err(BedError::file("write", &path))?;
    }
    say(&text);
    say(&format!("The raw samples, these tables and the figures are in {}.", first.display()));
    Ok(verdicts.iter().all(Verdict::is_met))
}
