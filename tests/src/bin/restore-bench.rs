//! Measures restores by the stock daemon and by ferrofd side by side, in turns, from backups by the stock one.
//!
//! `restore-bench small 100000 3` restores 100,000 files of up to 8,000 bytes three times by each daemon,
//! `restore-bench large 4096 3` 4,096 MiB in files of 1 GiB. It prints one line for each run, as CSV, and the ratios of
//! the medians. Not here: judgement; noise of the machine is for the reader to see.

#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::env;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bed::{Bed, BedError, BedOptions, FileSet, Noise, Restore, Result, build_many_files, usage};

const CLIENTS: [&str; 2] = ["reference", "test"];
const GIB: usize = 1024;

/// One restore.
#[derive(Clone, Copy, Default)]
struct Run {
    user: Duration,
    system: Duration,
    wall: Duration,
    peak: u64,
}

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [kind @ ("small" | "large"), amount, runs, options @ ..] => match (amount.parse(), runs.parse()) {
            (Ok(amount), Ok(runs)) => measure(kind, amount, runs, options),
            _ => Err(BedError::Usage("amount and runs are numbers".to_owned())),
        },
        _ => Err(BedError::Usage("small FILES RUNS, or large MIB RUNS; then FileSet options".to_owned())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn problem(path: &Path) -> impl Fn(std::io::Error) -> BedError {
    let path = path.display().to_string();
    move |error| BedError::Usage(format!("{path}: {error}"))
}

/// Lays out what is saved.
fn build(kind: &str, amount: usize, source: &Path) -> Result<()> {
    if kind == "small" {
        return build_many_files(source, 1, amount, 8000);
    }
    let mut noise = Noise::new(2);
    for (number, size) in (0..amount).step_by(GIB).map(|at| GIB.min(amount - at)).enumerate() {
        let path = source.join(format!("large-{number}"));
        let file = File::create(&path).map_err(problem(&path))?;
        let mut file = BufWriter::new(file);
        for _ in 0..size {
            // Half of it compresses.
            let block = [noise.bytes(1 << 19), noise.text(1 << 19)].concat();
            file.write_all(&block).map_err(problem(&path))?;
        }
        file.flush().map_err(problem(&path))?;
    }
    Ok(())
}

fn measure(kind: &str, amount: usize, runs: usize, options: &[&str]) -> Result<()> {
    let mut bed_options = BedOptions::side_by_side("restore-bench")?;
    let source = bed_options.source()?;
    build(kind, amount, &source)?;
    let lines = if options.is_empty() { &["Signature = MD5"][..] } else { options };
    bed_options.file_sets = vec![FileSet::new("measured", lines, &[&source])];
    let mut bed = Bed::start(bed_options)?;
    let mut jobs = Vec::new();
    for client in CLIENTS {
        let job = bed.run(&format!("run job=backup-{client} client=reference-fd yes"))?.must_be_good()?;
        jobs.push(job.row.id);
    }
    let mut results: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
    println!("run,daemon,user_s,system_s,cpu_s,wall_s,peak_mib");
    for number in 0..runs {
        for ((client, job), results) in CLIENTS.iter().zip(&jobs).zip(&mut results) {
            let run = restore(&mut bed, client, *job)?;
            println!(
                "{number},{client},{:.2},{:.2},{:.2},{:.2},{}",
                run.user.as_secs_f64(),
                run.system.as_secs_f64(),
                (run.user + run.system).as_secs_f64(),
                run.wall.as_secs_f64(),
                run.peak >> 20
            );
            results.push(run);
        }
    }
    let [reference, test] = &results;
    println!(
        "cpu ratio {:.2}",
        median(test, |run| run.user + run.system) / median(reference, |run| run.user + run.system)
    );
    println!("wall ratio {:.2}", median(test, |run| run.wall) / median(reference, |run| run.wall));
    Ok(())
}

/// Restores everything once, and removes it again.
fn restore(bed: &mut Bed, client: &str, job: u32) -> Result<Run> {
    let to = bed.folder().join(format!("restored/{client}"));
    let pid = bed.client(client)?.pid()?;
    bed::reset_peak(pid)?;
    let (before, start) = (usage(pid)?, Instant::now());
    let restore = Restore { job, from: "reference", onto: client, to: &to, replace: "always" };
    bed.restore(&restore)?.must_be_good()?;
    let (after, wall) = (usage(pid)?, start.elapsed());
    fs::remove_dir_all(&to).map_err(problem(&to))?;
    Ok(Run {
        user: after.user.saturating_sub(before.user),
        system: after.system.saturating_sub(before.system),
        wall,
        peak: after.peak_memory,
    })
}

fn median(runs: &[Run], of: impl Fn(&Run) -> Duration) -> f64 {
    let mut times: Vec<_> = runs.iter().map(of).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, Duration::as_secs_f64)
}
