//! Every test of the workspace in one run: the test programs are built by one call of cargo, and
//! run side by side, as [`table`] says.
//!
//! `test-runner` runs all of them, with the doc tests, the models, and the tests of digests once
//! more as if the processor were the oldest. `test-runner -p CRATE --test NAME` runs what cargo
//! would with these arguments, and `test-runner --models` the models only.
//!
//! What a program prints is shown in one piece when it has ended, and stays in
//! `target/test-logs`. What failed is shown once more at the end; the last line is
//! `N passed, N failed, N skipped`. A test that failed is not run again.

mod build;
mod entry;
mod table;
mod verdict;

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bed::{BedError, Result, say};

use entry::{Entry, Outcome};
use table::Group;

/// What cargo builds when nothing is chosen. Always of the whole workspace: for one package it
/// builds dependencies with other features.
const EVERYTHING: [&str; 5] = ["--workspace", "--lib", "--bins", "--examples", "--tests"];
/// Where a test writes that it can't run here (`tests/skip`).
const SKIPS: &str = "FERROFD_SKIPS";
/// Lines of a program's failures that are shown once more, and columns of each.
const LAST_LINES: usize = 40;
const LAST_COLUMNS: usize = 1000;

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("test-runner: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether everything passed.
fn run(arguments: &[String]) -> Result<bool> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let logs = target.join("test-logs");
    let skips = env::var_os(SKIPS).filter(|folder| !folder.is_empty()).map_or_else(|| target.join("skips"), Into::into);
    for folder in [&logs, &skips] {
        // Of the run before.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(BedError::file("make", folder))?;
    }
    for place in [env::temp_dir(), PathBuf::from("/dev/shm")] {
        bed::sweep(&place);
    }
    // Programs are run in other folders.
    let absolute = |path: &Path| fs::canonicalize(path).map_err(BedError::file("find", path));
    let (logs, skips) = (absolute(&logs)?, absolute(&skips)?);

    let mut entries = match arguments {
        [] => {
            let mut all = build::programs(&EVERYTHING.map(str::to_owned))?;
            all.extend(all.iter().filter_map(Entry::baseline).collect::<Vec<_>>());
            all.extend(build::models()?);
            all.push(Entry::doc_tests());
            all
        }
        [only] if only == "--models" => build::models()?,
        chosen => build::programs(chosen)?,
    };
    entries.sort_by_key(|entry| table::place(&entry.name));
    let begun = Instant::now();
    let outcomes = side_by_side(entries, &logs, &skips);
    say(&format!("\n{} programs in {} s", outcomes.len(), begun.elapsed().as_secs()));
    summary(&outcomes, &skips)
}

/// Runs them; those that need the host for themselves last.
fn side_by_side(entries: Vec<Entry>, logs: &Path, skips: &Path) -> Vec<Outcome> {
    let (alone, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.group == Group::Alone);
    let (busy, waiting): (VecDeque<_>, VecDeque<_>) = others.into_iter().partition(|entry| entry.group == Group::Busy);
    let queues = Mutex::new((busy, waiting));
    let outcomes = Mutex::new(Vec::new());
    let take = |group: Group| {
        let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = if group == Group::Busy { queues.0.pop_front() } else { None };
        busy.or_else(|| queues.1.pop_front())
    };
    let run = |entry: Entry| {
        let outcome = entry.run(logs, skips);
        let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that nothing comes between.
        say(&outcome.head());
        let _ = io::stdout().write_all(&outcome.output);
        outcomes.push(outcome);
    };
    thread::scope(|scope| {
        for (group, at_a_time) in table::AT_A_TIME {
            for _ in 0..at_a_time {
                scope.spawn(move || {
                    while let Some(entry) = take(group) {
                        run(entry);
                    }
                });
            }
        }
    });
    alone.into_iter().for_each(run);
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Says what was skipped, what failed, and how many of each; whether nothing is wrong.
fn summary(outcomes: &[Outcome], skips: &Path) -> Result<bool> {
    let script = Path::new("scripts/skips");
    let may_be_skipped = Command::new(script).arg(skips).status().map_err(BedError::file("run", script))?.success();
    let skipped = verdict::skipped(&fs::read_to_string(skips.join("skips")).unwrap_or_default());
    for outcome in outcomes.iter().filter(|outcome| outcome.is_red()) {
        say(&format!("\n{}", outcome.head()));
        for line in verdict::failures(&outcome.output).iter().take(LAST_LINES) {
            say(&line.chars().take(LAST_COLUMNS).collect::<String>());
        }
    }
    let passed: usize = outcomes.iter().map(|outcome| outcome.counts.passed).sum();
    let failed: usize = outcomes.iter().map(Outcome::failed).sum();
    say(&format!("\n{} passed, {failed} failed, {skipped} skipped", passed.saturating_sub(skipped)));
    Ok(failed == 0 && may_be_skipped)
}
