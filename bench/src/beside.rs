//! What other work on the host suffers beside a backup: transactions at a fixed rate, whatever the
//! last one took, while each daemon saves the same tree. The time of a transaction begins when it
//! is due.
//!
//! A daemon that is done earlier does less harm, so both are judged by the transactions of the
//! stock daemon's whole time.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Folder, PATIENCE, Process, Result, argv, run, say, wait_for,
};
use clap::{Args, ValueEnum};
use nix::sys::signal::Signal;
use nix::unistd::{User, sync};

use crate::cell::Variant;
use crate::connection::Watch;
use crate::statistics::{float, quotient, sorted_quantile};
use crate::tree::{Standing, drop_caches, file, noise_file, warm};
use crate::volumes::remove_volumes;

/// Transactions per second.
const RATE: u32 = 150;
/// A transaction that takes longer is slow.
const SLOW: Duration = Duration::from_millis(50);
/// How long the work runs before a job and after it.
const MARGIN: Duration = Duration::from_secs(3);
/// Threads that commit: a slow commit does not delay the next one.
const CLIENTS: u32 = 8;
/// Size of the file from which transactions read, MiB.
const DATA: usize = 256;

/// What else the host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// Four pages are read, one is appended and synchronized.
    Commits,
    /// pgbench's own transaction, with a `PostgreSQL` of the host, 1,000,000 accounts.
    Pgbench,
    /// Nothing: what manners cost when nobody needs them.
    Nothing,
}

/// A transaction: when it was done, and how long after it was due.
#[derive(Debug, Clone, Copy)]
struct Transaction {
    done: SystemTime,
    took: Duration,
}

impl Transaction {
    /// Seconds from the job's beginning to its end, and how many milliseconds it took.
    fn line(&self, begun: SystemTime) -> String {
        let since = self.done.duration_since(begun);
        let at = since.map_or_else(|error| -error.duration().as_secs_f64(), |at| at.as_secs_f64());
        format!("{at:.3} {:.1}", self.took.as_secs_f64() * 1e3)
    }
}

/// A job and what was beside it.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// Who ran it.
    pub fd: Fd,
    /// Life of the connection, seconds.
    pub job: f64,
    /// Transactions in the stock daemon's whole time.
    pub transactions: u64,
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
    /// Whether ours is the first of a round.
    #[arg(skip)]
    ours_first: bool,
}

impl Setup {
    /// One round for the paper: commits, volumes and catalog in memory.
    pub fn round(ours_first: bool) -> Self {
        let work = Work::Commits;
        Self { work, rounds: 1, manners: None, elsewhere: true, cold: false, raw: None, ours_first }
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
    options.file_sets = vec![FileSet::new("Beside", &Variant::Default.options(), &[&tree.path])];
    options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
    Bed::start(options)
}

/// Measures both daemons in turn. `folder`: where the other work has its files.
pub fn measure(setup: &Setup, tree: &Standing, folder: &Path, watch: &Watch) -> Result<Vec<Beside>> {
    let work = setup.work;
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
                let _ = writeln!(raw, "{} {round} {}", fd.name(), transaction.line(begun));
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
        fs::write(path, raw).map_err(file("write", path))?;
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
        transactions: times.len() as u64,
        slow: times.iter().filter(|time| **time > SLOW).count() as u64,
        quantiles: [500, 900, 990].map(|thousandths| sorted_quantile(&milliseconds, thousandths)),
    }
}

/// Jobs as a table, and ours / stock of the sums.
pub fn markdown(rows: &[Beside]) -> String {
    let mut text = String::from(
        "| daemon | job s | transactions | slower than 50 ms | p50 ms | p90 ms | p99 ms |\n\
         | --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for Beside { fd, job, transactions, slow, quantiles: [middle, nine, most] } in rows {
        let name = fd.name();
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

/// Work that goes on until it is stopped.
enum Running {
    Nothing,
    Commits { stop: Arc<AtomicBool>, threads: Vec<JoinHandle<std::io::Result<Vec<Transaction>>>> },
    Pgbench { process: Process, folder: PathBuf },
}

impl Running {
    fn start(work: Work, folder: &Path, server: Option<&Server>) -> Result<Self> {
        match (work, server) {
            (Work::Commits, _) => {
                let data = folder.join("data");
                if !data.exists() {
                    noise_file(&data, DATA)?;
                    sync();
                }
                let stop = Arc::new(AtomicBool::new(false));
                let begun = Instant::now();
                let client = |client| {
                    let (data, log, flag) = (data.clone(), folder.join(format!("commits.{client}")), Arc::clone(&stop));
                    thread::spawn(move || commit(client, begun, &data, &log, &flag))
                };
                let threads = (0..CLIENTS).map(client).collect();
                Ok(Self::Commits { stop, threads })
            }
            (Work::Pgbench, Some(server)) => server.pgbench(),
            _ => Ok(Self::Nothing),
        }
    }

    fn stop(self) -> Result<Vec<Transaction>> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Commits { stop, threads } => {
                stop.store(true, Ordering::Relaxed);
                let mut transactions = Vec::new();
                for thread in threads {
                    let ended =
                        thread.join().map_err(|_| BedError::Usage("a committing thread panicked".to_owned()))?;
                    transactions.extend(ended.map_err(file("write", Path::new("the log of commits")))?);
                }
                Ok(transactions)
            }
            Self::Pgbench { mut process, folder } => {
                process.signal(Signal::SIGINT)?;
                process.wait_exit(PATIENCE)?;
                let mut transactions = Vec::new();
                for entry in fs::read_dir(&folder).map_err(file("read", &folder))?.flatten() {
                    if entry.file_name().to_string_lossy().starts_with("log.") {
                        let text = fs::read_to_string(entry.path()).map_err(file("read", &folder))?;
                        transactions.extend(text.lines().filter_map(logged));
                        fs::remove_file(entry.path()).map_err(file("remove", &folder))?;
                    }
                }
                Ok(transactions)
            }
        }
    }
}

/// A line of pgbench's log: client, transaction, microseconds since it was due, script, time.
fn logged(line: &str) -> Option<Transaction> {
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [_, _, took, _, seconds, microseconds, ..] = *numbers.as_slice() else { return None };
    let done = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(microseconds);
    Some(Transaction { done, took: Duration::from_micros(took) })
}

/// The transactions of one of the clients.
fn commit(
    client: u32,
    begun: Instant,
    data: &Path,
    log: &Path,
    stop: &AtomicBool,
) -> std::io::Result<Vec<Transaction>> {
    let data = File::open(data)?;
    let mut log = OpenOptions::new().create(true).append(true).open(log)?;
    let pages = data.metadata()?.len() / 8192;
    let (mut page, mut done) = ([0; 8192], Vec::new());
    let mut place = u64::from(client);
    for number in (client..).step_by(CLIENTS as usize) {
        let due = begun + Duration::from_secs(1) * number / RATE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for _ in 0..4 {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            data.read_exact_at(&mut page, (place >> 33) % pages * 8192)?;
        }
        log.write_all(&page)?;
        log.sync_data()?;
        done.push(Transaction { done: SystemTime::now(), took: due.elapsed() });
    }
    Ok(done)
}

/// A `PostgreSQL` in a folder of its own.
struct Server {
    folder: PathBuf,
    programs: PathBuf,
    process: Option<Process>,
}

impl Server {
    fn start(folder: &Path) -> Result<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").map_err(file("read", Path::new("/usr/lib/postgresql")))?;
        let newest = versions.flatten().map(|entry| entry.path()).max();
        let programs = newest.ok_or_else(|| BedError::Usage("there is no PostgreSQL".to_owned()))?.join("bin");
        let user = User::from_name("postgres").ok().flatten();
        let user = user.ok_or_else(|| BedError::Usage("there is no user postgres".to_owned()))?;
        chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).map_err(file("change", folder))?;
        let mut server = Self { folder: folder.to_owned(), programs, process: None };
        let data = folder.join("cluster").display().to_string();
        server.run("initdb", &["-D", &data])?;
        let place = folder.display().to_string();
        let words = server.words("postgres", &["-D", &data, "-c", "listen_addresses=", "-k", &place]);
        server.process = Some(Process::start("postgres", &argv(words), &folder.join("postgres.log"))?);
        wait_for("PostgreSQL to answer", PATIENCE, || {
            Ok(server.run("psql", &["-h", &place, "-c", "select 1", "postgres"]).map_err(|error| error.to_string()))
        })?;
        server.run("pgbench", &["-i", "-q", "-s", "10", "-h", &place, "postgres"])?;
        Ok(server)
    }

    /// A program of `PostgreSQL` as its user.
    fn words(&self, program: &str, more: &[&str]) -> Vec<String> {
        let program = self.programs.join(program).display().to_string();
        let head = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
        head.iter().chain([&program.as_str()]).chain(more).map(|word| (*word).to_owned()).collect()
    }

    fn run(&self, program: &str, more: &[&str]) -> Result<()> {
        let done = run(&argv(self.words(program, more)), b"")?;
        if done.status.success() {
            return Ok(());
        }
        Err(BedError::Program { program: program.to_owned(), problem: done.text() })
    }

    fn pgbench(&self) -> Result<Running> {
        let (place, prefix) = (self.folder.display().to_string(), self.folder.join("log").display().to_string());
        let (rate, prefix) = (RATE.to_string(), format!("--log-prefix={prefix}"));
        let more = ["-n", "-h", &place, "-R", &rate, "-c", "8", "-T", "36000", "-l", &prefix, "postgres"];
        let output = self.folder.join("pgbench.log");
        if output.exists() {
            fs::remove_file(&output).map_err(file("remove", &output))?;
        }
        let process = Process::start("pgbench", &argv(self.words("pgbench", &more)), &output)?;
        Ok(Running::Pgbench { process, folder: self.folder.clone() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Ends at once, whoever is connected.
            let _sent = process.signal(Signal::SIGQUIT);
            let _ended = process.wait_exit(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_transaction_with_its_lag() {
        let found = logged("3 15 61250 0 1790000000 250000 1100").unwrap();
        assert_eq!(found.took, Duration::from_micros(61_250));
        assert_eq!(found.done, UNIX_EPOCH + Duration::from_millis(1_790_000_000_250));
        assert!(logged("3 15 skipped 0 1790000000 250000").is_none());
    }

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
        assert_eq!((row.transactions, row.slow), (3, 2));
        assert!((row.quantiles[0] - 51.0).abs() < 1e-9, "{row:?}");
    }
}
