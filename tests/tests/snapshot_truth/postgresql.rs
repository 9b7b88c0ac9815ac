//! `PostgreSQL`, whose data directory is a subvolume of its own, as its user's.

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use bed::{Bed, PATIENCE, Process, Result, argv, run, wait_for};
use nix::sys::signal::Signal;
use nix::unistd::User;

use crate::btrfs::Btrfs;
use crate::{CLIENT, options};

/// Balances of a bank: each transaction adds the same to a row of each of three tables, and a row
/// to a fourth.
const QUESTION: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = total,
    (SELECT sum(tbalance) FROM pgbench_tellers) = total, (SELECT sum(bbalance) FROM pgbench_branches) = total, n > 0
    FROM (SELECT count(*) AS n, coalesce(sum(delta), 0) AS total FROM pgbench_history) AS history";

/// A server and how it is reached.
struct Server {
    programs: PathBuf,
    /// Of its socket.
    directory: PathBuf,
    process: Option<Process>,
}

impl Server {
    /// The command line of a program of the server's packages, as the server's user.
    fn words(programs: &Path, program: &str, rest: &[&str]) -> Vec<std::ffi::OsString> {
        let user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig", "KILL", "--"];
        let program = programs.join(program).to_string_lossy().into_owned();
        argv(user.into_iter().chain([program.as_str()]).chain(rest.iter().copied()))
    }

    fn start(programs: &Path, data: &Path, directory: PathBuf, log: &Path) -> Result<Self> {
        fs::create_dir(&directory).unwrap();
        give(&directory);
        let socket = format!("unix_socket_directories={}", directory.display());
        let (data, rest) = (data.to_string_lossy(), ["-c", "listen_addresses=", "-c", &socket, "-p", "54321"]);
        let words = Self::words(programs, "postgres", &[&["-D", &data][..], &rest[..]].concat());
        let process = Some(Process::start("postgres", &words, log)?);
        let server = Self { programs: programs.to_owned(), directory, process };
        wait_for("the server", PATIENCE, || {
            let answer = server.ask("SELECT 1")?;
            Ok(if answer == "1\n" { Ok(()) } else { Err(answer + &fs::read_to_string(log).unwrap()) })
        })?;
        Ok(server)
    }

    fn client(&self, program: &str, rest: &[&str]) -> Vec<std::ffi::OsString> {
        let directory = self.directory.to_string_lossy();
        let reach = ["-h", &directory, "-p", "54321", "-U", "postgres"];
        Self::words(&self.programs, program, &[&reach[..], rest].concat())
    }

    fn ask(&self, question: &str) -> Result<String> {
        Ok(run(&self.client("psql", &["-X", "-A", "-t", "-c", question, "postgres"]), b"")?.text())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // At once, with all of its processes.
            let _ = process.signal(Signal::SIGQUIT).and_then(|()| process.wait_exit(PATIENCE));
        }
    }
}

fn give(path: &Path) {
    let user = User::from_name("postgres").unwrap().unwrap();
    chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
}

/// Where the server's programs are.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|version| version.ok().map(|version| version.path().join("bin")));
    let has_user = User::from_name("postgres").ok()?.is_some();
    programs
        .filter(|programs| has_user && programs.join("postgres").exists() && programs.join("pgbench").exists())
        .max()
}

#[test]
fn a_data_directory_restored_from_a_snapshot_starts_and_is_whole() -> Result<()> {
    let Some(programs) = programs() else { return skip::test("PostgreSQL is not installed") };
    let btrfs = match Btrfs::make("postgresql", 1024)? {
        Ok(btrfs) => btrfs,
        Err(reason) => return skip::test(reason),
    };
    let data = btrfs.subvolume("data");
    give(&data);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    let bed = Bed::start(options("postgresql", &[&data])?)?;
    fs::set_permissions(bed.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let rest = ["-D", &data.to_string_lossy(), "-A", "trust", "-U", "postgres", "--no-sync"];
    let made = run(&Server::words(&programs, "initdb", &rest), b"")?;
    assert!(made.status.success(), "{}", made.text());
    let server = Server::start(&programs, &data, bed.folder().join("server"), &bed.folder().join("log/server"))?;
    let filled = run(&server.client("pgbench", &["-i", "-q", "postgres"]), b"")?;
    assert!(filled.status.success(), "{}", filled.text());
    let writers = server.client("pgbench", &["-n", "-c", "2", "-R", "200", "-T", "3600", "postgres"]);
    let writers = Process::start("pgbench", &writers, &bed.folder().join("log/pgbench"))?;
    let count = || -> Result<u64> {
        Ok(server.ask("SELECT count(*) FROM pgbench_history")?.trim().parse().unwrap_or_default())
    };
    wait_for("the first transactions", PATIENCE, || Ok(if count()? > 10 { Ok(()) } else { Err(String::new()) }))?;

    let before = count()?;
    let job = bed.backup(CLIENT, "fileset=Snapshot")?.must_be_good()?;
    let after = count()?;
    assert!(after > before, "nothing was written meanwhile");
    assert_eq!(job.report()["Snapshot/VSS"], "yes");
    assert_eq!(btrfs.snapshots(), [""; 0], "a snapshot was left");
    assert!(!data.join(".snapshots").exists(), "the server can't read it");
    drop(writers);
    drop(server);

    let to = bed.folder().join("restored");
    bed.restore_own(CLIENT, job.row.id, &to)?.must_be_good()?;
    let restored = to.join(data.strip_prefix("/").unwrap());
    it_starts_and_is_whole(&bed, &programs, &restored, before..=after)
}

/// The restored database has so many transactions, and all that belongs to them.
fn it_starts_and_is_whole(bed: &Bed, programs: &Path, restored: &Path, counts: RangeInclusive<u64>) -> Result<()> {
    // As an administrator does: it has the number of another process.
    fs::remove_file(restored.join("postmaster.pid")).unwrap();
    let log = bed.folder().join("log/restored");
    let server = Server::start(programs, restored, bed.folder().join("again"), &log)?;
    assert_eq!(server.ask(QUESTION)?, "t|t|t|t\n");
    let found: u64 = server.ask("SELECT count(*) FROM pgbench_history")?.trim().parse().unwrap();
    assert!(counts.contains(&found), "{found} is not in {counts:?}");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("automatic recovery in progress"), "{log}");
    Ok(())
}
