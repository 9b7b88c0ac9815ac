//! A soak: rounds of jobs of both File Daemons over a tree that changes, with restarts, kills,
//! cancels, full disks and clock steps, for as long as it may run. It can be ended at any moment
//! and goes on where it was: what a round does follows from the seed and its number.
//!
//! In every round each daemon saves the same generations of a tree in a dozen lanes, each a FileSet
//! and a job of its own: levels, accurate or not, compression, encryption, holes, digests,
//! patterns, `bpipe`. What both leave is compared: status, counts, messages, the catalog's rows,
//! records on the volumes, what each restores of what the other saved, Verify jobs and estimates.
//! A difference that is not documented ends the soak with a report; `--round N` does that round
//! again.

mod compare;
mod counts;
mod course;
mod living;
mod plan;
mod round;
#[path = "../../../tests/pki/volume.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the suite's own, where what helps a test may fail"
)]
mod sealed;
mod stage;
mod state;
mod trouble;
#[path = "../../../tests/compliance/unpack.rs"]
#[allow(dead_code, clippy::indexing_slicing, reason = "as above")]
mod unpack;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bed::{BedError, Result, say};
use clap::Parser;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use counts::Counts;
use course::Outcome;
use plan::Plan;
use state::State;

/// Runs jobs of both File Daemons for as long as it may, and compares them.
#[derive(Debug, Parser)]
struct Arguments {
    /// Minutes after which no round is begun; without it, until it is interrupted.
    #[arg(long)]
    minutes: Option<f64>,
    /// Do this round alone, and leave the state as it is.
    #[arg(long)]
    round: Option<u64>,
    /// Begin anew with another seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Rounds side by side, each with a bed of its own.
    #[arg(long, default_value_t = 2)]
    beds: usize,
    /// One small round.
    #[arg(long)]
    short: bool,
    /// Tell each step of a single round.
    #[arg(long)]
    verbose: bool,
    /// Where the state and reports are.
    #[arg(long, default_value = "target/soak")]
    state: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error may be closed, and then the error can't be reported.
            let _ = writeln!(io::stderr(), "soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the threads share.
struct Shared {
    state: State,
    running: BTreeSet<u64>,
    /// Of this run.
    counts: Counts,
    good: bool,
}

/// Whether nothing differed.
fn run(arguments: &Arguments) -> Result<bool> {
    let interrupted = prepare()?;
    bed::setup::root(&mut |step| say(step))?;
    let state = State::open(&arguments.state, arguments.seed)?;
    if arguments.short || arguments.round.is_some() {
        let round = arguments.round.unwrap_or(0);
        let outcome = round::run(&Plan::of(state.seed, round, arguments.short), arguments.verbose)?;
        say(&format!("round {round}: {}", outcome.counts));
        return tell(&state, round, &outcome);
    }
    say(&format!("seed {}, so far {}", state.seed, state.counts));
    let start = Instant::now();
    let limit = arguments.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let goes_on = || !interrupted.load(Ordering::Relaxed) && limit.is_none_or(|limit| start.elapsed() < limit);
    let shared = Mutex::new(Shared { state, running: BTreeSet::new(), counts: Counts::default(), good: true });
    thread::scope(|scope| {
        let beds: Vec<_> =
            (0..arguments.beds).map(|_| scope.spawn(|| rounds(&shared, goes_on, &interrupted))).collect();
        beds.into_iter().try_for_each(|bed| bed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    say(&format!("this run, {:?}: {}", start.elapsed(), shared.counts));
    say(&format!("seed {}, all runs: {}", shared.state.seed, shared.state.counts));
    Ok(shared.good)
}

/// One round after the other.
fn rounds(shared: &Mutex<Shared>, goes_on: impl Fn() -> bool, interrupted: &AtomicBool) -> Result<()> {
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let (seed, number) = {
            let shared = &mut *lock();
            if !goes_on() || !shared.good {
                return Ok(());
            }
            let number = shared.state.take(&shared.running)?;
            shared.running.insert(number);
            (shared.state.seed, number)
        };
        let outcome = round::run(&Plan::of(seed, number, false), false);
        let shared = &mut *lock();
        shared.running.remove(&number);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // The terminal's interrupt ends the daemons, too; the next run begins with this round.
            Err(_) if interrupted.load(Ordering::Relaxed) => return Ok(()),
            Err(error) => {
                shared.good = false;
                return Err(BedError::Usage(format!("round {number} of seed {seed}: {error}")));
            }
        };
        shared.counts.add_all(&outcome.counts);
        shared.state.done(number, &outcome.counts)?;
        say(&format!("round {number}: {}", outcome.counts));
        shared.good &= tell(&shared.state, number, &outcome)?;
    }
}

/// Reports differences; whether there are none.
fn tell(state: &State, round: u64, outcome: &Outcome) -> Result<bool> {
    if outcome.differences.is_empty() {
        return Ok(true);
    }
    let text = outcome.differences.join("\n");
    let report = state.report(round, &text)?;
    let seed = state.seed;
    let head: String = text.chars().take(3000).collect();
    say(&format!("round {round} of seed {seed} differs ({}):\n{head}", report.display()));
    say(&format!("make soak SEED={seed} ROUND={round} does it again."));
    Ok(false)
}

/// Mounts of full disks are seen by this process and its children only; an interrupt ends the soak
/// after the rounds that run.
fn prepare() -> Result<Arc<AtomicBool>> {
    let failed = |what: &'static str| move |source| BedError::System { what, source };
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("unshare (root is needed)"))?;
    let nothing: Option<&str> = None;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing).map_err(failed("mount"))?;
    bed::interrupted()
}
