//! What other work on the host suffers beside a backup: transactions at a fixed rate, whatever the
//! last one took, while each daemon saves the same tree. The time of a transaction begins when it
//! is due.
//!
//! A daemon that is done earlier does less harm, so both are judged by the transactions of the
//! stock daemon's whole time.

mod work;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Folder, Result, say};
use clap::Args;
use nix::unistd::sync;

pub use self::work::Work;
use self::work::{Running, Server, Transaction};
use crate::connection::Watch;
use crate::statistics::{float, quotient, sorted_quantile};
use crate::tree::{Standing, drop_caches, warm};
use crate::volumes::remove_volumes;

/// A transaction that takes longer is slow.
const SLOW: Duration = Duration::from_millis(50);
/// How long the work runs before a job and after it.
const MARGIN: Duration = Duration::from_secs(3);

/// Seconds from the job's beginning to the end of a transaction, and how many milliseconds it took.
fn line(transaction: &Transaction, begun: SystemTime) -> String {
    let since = transaction.done.duration_since(begun);
    let at = since.map_or_else(|error| -error.duration().as_secs_f64(), |at| at.as_secs_f64());
    format!("{at:.3} {:.1}", transaction.took.as_secs_f64() * 1e3)
}

/// A job and what was beside it.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Who ran it.
    pub fd: Fd,
    /// Life of the connection, seconds.
    pub job: f64,
    /// How long each transaction in the stock daemon's whole time took, milliseconds; the quickest
    /// first.
    pub times: Vec<f64>,
    /// Of them, those of more than 50 ms.
    pub slow: u64,
    /// In milliseconds: the median, and what nine and ninety-nine of a hundred don't exceed.
    pub quantiles: [f64; 3],
}

/// How it is measured.
#[derive(Debug, Clone, Args)]
pub struct Setup {
    /// The other work.
    #[arg(value_enum, default_value = "pgbench")]
    work: Work,
    /// How often each daemon saves the tree.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// `job.manners` of ours; default: its own.
    #[arg(long)]
    manners: Option<String>,
    /// Volumes and catalog are in memory, as if they were on another host.
    #[arg(long)]
    elsewhere: bool,
    /// The tree is not in memory before a job.
    #[arg(long)]
    cold: bool,
    /// A file for each transaction: daemon, round, seconds since the job began, milliseconds.
    #[arg(long)]
    raw: Option<PathBuf>,
    /// Ours is the first of a round, which takes longer: the stock daemon's time is not known yet.
    #[arg(long)]
    ours_first: bool,
}

impl Setup {
    /// One round for the paper.
    pub fn round(work: Work, elsewhere: bool, ours_first: bool) -> Self {
        Self { work, rounds: 1, manners: None, elsewhere, cold: false, raw: None, ours_first }
    }
}

/// A bed with both daemons, as the setup wants it.
fn bed_for(setup: &Setup, tree: &Standing) -> Result<Bed> {
    let mut ours = ClientOptions::new(Fd::Ours);
    ours.settings.extend(setup.manners.iter().map(|manners| format!("job.manners = \"{manners}\"")));
    let mut options = BedOptions::new("beside", [ClientOptions::new(Fd::Stock), ours])?;
    if setup.elsewhere {
        options.folder = Folder::below(Path::new("/dev/shm"), "beside")?;
    }
    options.file_sets = vec![FileSet::new("Beside", &["Signature = MD5"], &[&tree.path])];
    options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
    Bed::start(options)
}

/// Measures both daemons in turn. `folder`: where the other work has its files.
pub fn measure(setup: &Setup, tree: &Standing, folder: &Path, watch: &Watch) -> Result<Vec<Beside>> {
    let work = setup.work;
    if let Some(missing) = work.missing() {
        return Err(BedError::Usage(missing.to_owned()));
    }
    let mut bed = bed_for(setup, tree)?;
    let server = (work == Work::Pgbench).then(|| Server::start(folder)).transpose()?;
    let mut rows = Vec::new();
    let mut raw = String::new();
    for round in 0..setup.rounds {
        let mut window = None;
        let mut done = Vec::new();
        let order = if setup.ours_first { [Fd::Ours, Fd::Stock] } else { [Fd::Stock, Fd::Ours] };
        for fd in order {
            sync();
            if setup.cold {
                drop_caches()?;
            } else {
                warm(&tree.path)?;
            }
            let running = Running::start(work, folder, server.as_ref())?;
            thread::sleep(MARGIN);
            let (begun, clock) = (SystemTime::now(), Instant::now());
            let client = bed.client(fd.name())?;
            let (pid, port) = (client.pid()?, client.port());
            let run = || bed.backup(fd.name(), "level=Full")?.must_be_good();
            let (result, job) = watch.during(pid, port, run)?;
            // The Storage Daemon and the Director are not done when the connection ends.
            let all = clock.elapsed();
            if fd == Fd::Stock {
                window = Some(all);
            }
            // If ours is first, it is not known yet how long the stock daemon takes.
            thread::sleep(window.unwrap_or(all * 5).saturating_sub(all) + MARGIN);
            let transactions = running.stop()?;
            for transaction in &transactions {
                let _ = writeln!(raw, "{} {round} {}", fd.name(), line(transaction, begun));
            }
            remove_volumes(&bed, &result, fd.name())?;
            done.push((fd, job, begun, transactions));
        }
        for (fd, job, begun, transactions) in done {
            rows.push(row(fd, job, begun, window.unwrap_or_default(), &transactions));
            say(&markdown(rows.get(rows.len() - 1..).unwrap_or_default()));
        }
    }
    if let Some(path) = &setup.raw {
        fs::write(path, raw).map_err(BedError::file("write", path))?;
    }
    Ok(rows)
}

fn row(fd: Fd, job: Duration, begun: SystemTime, window: Duration, transactions: &[Transaction]) -> Beside {
    let inside = |at: &&Transaction| at.done.duration_since(begun).is_ok_and(|since| since <= window);
    let mut times: Vec<Duration> = transactions.iter().filter(inside).map(|transaction| transaction.took).collect();
    times.sort();
    let milliseconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    Beside {
        fd,
        job: job.as_secs_f64(),
        slow: times.iter().filter(|time| **time > SLOW).count() as u64,
        quantiles: [500, 900, 990].map(|thousandths| sorted_quantile(&milliseconds, thousandths)),
        times: milliseconds,
    }
}

/// Jobs as a table, and ours / stock of the sums.
pub fn markdown(rows: &[Beside]) -> String {
    let mut text = String::from(
        "| daemon | job s | transactions | slower than 50 ms | p50 ms | p90 ms | p99 ms |\n\
         | --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for Beside { fd, job, times, slow, quantiles: [middle, nine, most] } in rows {
        let (name, transactions) = (fd.name(), times.len());
        let _ = writeln!(text, "| {name} | {job:.2} | {transactions} | {slow} | {middle:.1} | {nine:.1} | {most:.1} |");
    }
    let sum = |fd: Fd, of: fn(&Beside) -> f64| rows.iter().filter(|row| row.fd == fd).map(of).sum::<f64>();
    let ratio = |of: fn(&Beside) -> f64| quotient(sum(Fd::Ours, of), sum(Fd::Stock, of));
    if rows.len() > 1 {
        let _ = writeln!(
            text,
            "\nOurs / stock: time {:.2}, slow transactions {:.2}.",
            ratio(|row| row.job),
            ratio(|row| float(row.slow))
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn transactions_count_inside_of_the_window_only() {
        let begun = UNIX_EPOCH + Duration::from_secs(1000);
        let second = Duration::from_secs(1);
        let transactions: Vec<_> = [(-1_i64, 900), (1, 10), (2, 60), (10, 51), (11, 900)]
            .map(|(at, took)| Transaction {
                done: UNIX_EPOCH + second * u32::try_from(1000 + at).unwrap(),
                took: Duration::from_millis(took),
            })
            .into();
        let row = row(Fd::Ours, 4 * second, begun, 10 * second, &transactions);
        assert_eq!((row.times.len(), row.slow), (3, 2));
        assert!((row.quantiles[0] - 51.0).abs() < 1e-9, "{row:?}");
    }
}
