//! The other work: it goes on until it is stopped, and knows of each transaction when it was due.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bed::{BedError, Noise, PATIENCE, Process, Result, argv, converse, run, wait_for};
use clap::ValueEnum;
use nix::sys::signal::Signal;
use nix::unistd::{User, sync};
use serde::Deserialize;

use crate::programs::is_on_path;
use crate::tree::noise_file;

/// Transactions per second.
const RATE: u32 = 150;
/// Threads that commit: a slow commit does not delay the next one.
const CLIENTS: u32 = 8;
/// Size of the file from which transactions read, MiB.
const DATA: usize = 256;

const NO_SERVER: &str = "there is no PostgreSQL";

/// What else the host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Four pages are read, one is appended and synchronized.
    Commits,
    /// pgbench's own transaction, with a `PostgreSQL` of the host, 1,000,000 accounts.
    Pgbench,
    /// One account of 100,000 is changed in a `SQLite` database with a write-ahead log.
    Sqlite,
    /// The host's `fio`: four pages are read for each that is written and synchronized.
    Fio,
    /// Nothing: what manners cost when nobody needs them.
    Nothing,
}

impl Work {
    /// What it needs and this host has not.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Pgbench if Server::programs().is_none() => Some(NO_SERVER),
            Self::Sqlite if !is_on_path("sqlite3") => Some("sqlite3 is not on PATH"),
            Self::Fio if !is_on_path("fio") => Some("fio is not on PATH"),
            _ => None,
        }
    }
}

/// A transaction: when it was done, and how long after it was due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transaction {
    /// The end.
    pub(super) done: SystemTime,
    /// From when it was due to its end.
    pub(super) took: Duration,
}

/// Work that goes on until it is stopped.
pub(super) enum Running {
    /// See [`Work::Nothing`].
    Nothing,
    /// Threads of this process.
    Threads { stop: Arc<AtomicBool>, threads: Vec<JoinHandle<std::io::Result<Vec<Transaction>>>> },
    /// A program with logs of its own in a folder, and what a line of them says.
    Program { process: Process, folder: PathBuf, logged: fn(&str) -> Option<Transaction> },
}

impl Running {
    /// Begins. `server`: for [`Work::Pgbench`].
    pub(super) fn start(work: Work, folder: &Path, server: Option<&Server>) -> Result<Self> {
        match (work, server) {
            (Work::Commits, _) => {
                let data = data(folder)?;
                Ok(Self::threads(CLIENTS, |client, stop| {
                    let (data, log) = (data.clone(), folder.join(format!("commits.{client}")));
                    Box::new(move || Due::new(client, CLIENTS, stop).each(Commits::open(client, &data, &log)?))
                }))
            }
            (Work::Sqlite, _) => {
                let accounts = Accounts::open(&folder.join("accounts"))?;
                let mut accounts = Some(accounts);
                // SQLite has one writer at a time.
                Ok(Self::threads(1, |client, stop| {
                    let accounts = accounts.take();
                    Box::new(move || {
                        accounts.map_or(Ok(Vec::new()), |accounts| Due::new(client, 1, stop).each(accounts))
                    })
                }))
            }
            (Work::Fio, _) => fio(folder),
            (Work::Pgbench, Some(server)) => server.pgbench(),
            _ => Ok(Self::Nothing),
        }
    }

    fn threads(clients: u32, mut client: impl FnMut(u32, Arc<AtomicBool>) -> Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..clients).map(|number| thread::spawn(client(number, Arc::clone(&stop)))).collect();
        Self::Threads { stop, threads }
    }

    /// Ends it; its transactions.
    pub(super) fn stop(self) -> Result<Vec<Transaction>> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Threads { stop, threads } => {
                stop.store(true, Ordering::Relaxed);
                let mut transactions = Vec::new();
                for thread in threads {
                    let ended =
                        thread.join().map_err(|_| BedError::Usage("a committing thread panicked".to_owned()))?;
                    transactions.extend(ended.map_err(BedError::file("write", Path::new("transactions")))?);
                }
                Ok(transactions)
            }
            Self::Program { mut process, folder, logged } => {
                process.signal(Signal::SIGINT)?;
                process.wait_exit(PATIENCE)?;
                let mut transactions = Vec::new();
                for entry in fs::read_dir(&folder).map_err(BedError::file("read", &folder))?.flatten() {
                    if entry.file_name().to_string_lossy().starts_with(LOG) {
                        let text = fs::read_to_string(entry.path()).map_err(BedError::file("read", &folder))?;
                        transactions.extend(text.lines().filter_map(logged));
                        fs::remove_file(entry.path()).map_err(BedError::file("remove", &folder))?;
                    }
                }
                if transactions.is_empty() {
                    return Err(BedError::Usage(format!("no transaction is logged in {}", folder.display())));
                }
                Ok(transactions)
            }
        }
    }
}

/// What a thread does until it is stopped.
type Client = Box<dyn FnOnce() -> std::io::Result<Vec<Transaction>> + Send>;

/// How the logs of programs begin.
const LOG: &str = "log";

/// The file that is read, 256 MiB that don't compress.
fn data(folder: &Path) -> Result<PathBuf> {
    let data = folder.join("data");
    if !data.exists() {
        noise_file(&data, &mut Noise::new(1), DATA << 20)?;
        sync();
    }
    Ok(data)
}

/// The transactions of one of the clients: they begin when they are due.
struct Due {
    client: u32,
    clients: u32,
    begun: Instant,
    stop: Arc<AtomicBool>,
}

impl Due {
    fn new(client: u32, clients: u32, stop: Arc<AtomicBool>) -> Self {
        Self { client, clients, begun: Instant::now(), stop }
    }

    fn each(self, mut work: impl Transact) -> std::io::Result<Vec<Transaction>> {
        let mut done = Vec::new();
        for number in (self.client..).step_by(self.clients as usize) {
            let due = self.begun + Duration::from_secs(1) * number / RATE;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            work.transact()?;
            done.push(Transaction { done: SystemTime::now(), took: due.elapsed() });
        }
        Ok(done)
    }
}

/// One client's work.
trait Transact {
    fn transact(&mut self) -> std::io::Result<()>;
}

/// See [`Work::Commits`].
struct Commits {
    data: File,
    log: File,
    pages: u64,
    place: u64,
}

impl Commits {
    fn open(client: u32, data: &Path, log: &Path) -> std::io::Result<Self> {
        let data = File::open(data)?;
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        Ok(Self { pages: data.metadata()?.len() / 8192, data, log, place: u64::from(client) })
    }
}

impl Transact for Commits {
    fn transact(&mut self) -> std::io::Result<()> {
        let mut page = [0; 8192];
        for _ in 0..4 {
            self.place = self.place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.data.read_exact_at(&mut page, (self.place >> 33) % self.pages * 8192)?;
        }
        self.log.write_all(&page)?;
        self.log.sync_data()
    }
}

/// See [`Work::Sqlite`]: the host's `sqlite3`, which answers each transaction with a line.
struct Accounts {
    shell: Child,
    says: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl Accounts {
    fn open(database: &Path) -> Result<Self> {
        let problem = |error: std::io::Error| BedError::Usage(format!("sqlite3 does not answer: {error}"));
        let words = argv(["stdbuf", "-oL", "sqlite3", "-batch", &database.display().to_string()]);
        let (shell, says, hears) = converse(&words)?;
        let mut accounts = Self { shell, says, hears };
        let make = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER, filler TEXT);
            CREATE TABLE IF NOT EXISTS history (id INTEGER, at TEXT);
            INSERT OR IGNORE INTO account
                WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
                SELECT i, 0, hex(zeroblob(40)) FROM n;";
        accounts.say(make).map_err(problem)?;
        Ok(accounts)
    }

    /// Says something and waits until it is done.
    fn say(&mut self, words: &str) -> std::io::Result<()> {
        writeln!(self.says, "{words}\nSELECT 'done';")?;
        self.says.flush()?;
        let mut line = String::new();
        while line.trim() != "done" {
            line.clear();
            if self.hears.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

impl Transact for Accounts {
    fn transact(&mut self) -> std::io::Result<()> {
        self.say(
            "BEGIN IMMEDIATE;
            UPDATE account SET balance = balance + 1 WHERE id = abs(random()) % 100000;
            INSERT INTO history VALUES (1, datetime());
            COMMIT;",
        )
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        // It has nothing left to do, or is gone.
        let _killed = self.shell.kill();
        let _ended = self.shell.wait();
    }
}

/// See [`Work::Fio`].
fn fio(folder: &Path) -> Result<Running> {
    // Without its directory it would be looked for where the bench runs.
    let place = format!("--filename={}", data(folder)?.display());
    let log = format!("--write_lat_log={}", folder.join(LOG).display());
    let size = format!("--size={DATA}m");
    let rate = format!("--rate_iops={},{}", 4 * RATE / CLIENTS, RATE / CLIENTS);
    let clients = format!("--numjobs={CLIENTS}");
    // Its way of counting from when an operation is due (`io_submit_mode=offload`) hangs at the end
    // now and then, in 3.33. So an operation counts from its beginning, and only those of the same
    // client wait for it.
    let words = [
        "fio",
        "--name=beside",
        &place,
        "--rw=randrw",
        "--rwmixread=80",
        "--bs=8k",
        "--ioengine=psync",
        "--sync=dsync",
        "--time_based",
        "--runtime=10h",
        "--log_unix_epoch=1",
        "--allow_file_create=0",
        &size,
        &log,
        &rate,
        &clients,
    ];
    let process = Process::start("fio", &argv(words), &folder.join("fio.out"))?;
    Ok(Running::Program { process, folder: folder.to_owned(), logged: fio_line })
}

/// A line of fio's log: milliseconds since 1970, nanoseconds that it took, and more.
fn fio_line(line: &str) -> Option<Transaction> {
    let mut numbers = line.split(", ").map_while(|word| word.parse().ok());
    let (done, took) = (numbers.next()?, numbers.next()?);
    Some(Transaction { done: UNIX_EPOCH + Duration::from_millis(done), took: Duration::from_nanos(took) })
}

/// A line of pgbench's log: client, transaction, microseconds since it was due, script, time.
fn pgbench_line(line: &str) -> Option<Transaction> {
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [_, _, took, _, seconds, microseconds, ..] = *numbers.as_slice() else { return None };
    let done = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(microseconds);
    Some(Transaction { done, took: Duration::from_micros(took) })
}

/// A `PostgreSQL` in a folder of its own.
pub(super) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    process: Option<Process>,
}

impl Server {
    /// Those of the newest server on this host.
    fn programs() -> Option<PathBuf> {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
        versions.filter(|programs| programs.join("initdb").exists()).max()
    }

    /// Makes a cluster and pgbench's tables, and starts it.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let programs = Self::programs().ok_or_else(|| BedError::Usage(NO_SERVER.to_owned()))?;
        let user = User::from_name("postgres").ok().flatten();
        let user = user.ok_or_else(|| BedError::Usage("there is no user postgres".to_owned()))?;
        chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).map_err(BedError::file("change", folder))?;
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
        let (place, prefix) = (self.folder.display().to_string(), self.folder.join(LOG).display().to_string());
        let (rate, prefix) = (RATE.to_string(), format!("--log-prefix={prefix}"));
        let more = ["-n", "-h", &place, "-R", &rate, "-c", "8", "-T", "36000", "-l", &prefix, "postgres"];
        let output = self.folder.join("pgbench.log");
        if output.exists() {
            fs::remove_file(&output).map_err(BedError::file("remove", &output))?;
        }
        let process = Process::start("pgbench", &argv(self.words("pgbench", &more)), &output)?;
        Ok(Running::Program { process, folder: self.folder.clone(), logged: pgbench_line })
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
        let expected = (Duration::from_micros(61_250), UNIX_EPOCH + Duration::from_millis(1_790_000_000_250));
        let pgbench = pgbench_line("3 15 61250 0 1790000000 250000 1100").unwrap();
        let fio = fio_line("1790000000250, 61250000, 1, 8192, 0").unwrap();
        assert_eq!([pgbench, fio].map(|found| (found.took, found.done)), [expected; 2]);
        assert!(pgbench_line("3 15 skipped 0 1790000000 250000").is_none());
        assert!(fio_line("").is_none());
    }
}
