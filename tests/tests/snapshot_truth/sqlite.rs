//! SQLite, written to all the time: each transaction changes a page at the beginning of the file
//! and one at its end.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bed::{Bed, JobResult, PATIENCE, Result, Root, run, saved, wait_for};

use crate::btrfs::Btrfs;
use crate::{CLIENT, options};

/// Backups of each kind.
const TRIES: usize = 20;
/// Megabytes between the two pages.
const MEGABYTES: usize = 12;
/// How long the program rests between two transactions.
const REST: Duration = Duration::from_millis(3);

/// A program with an open database. Dropping it kills it.
struct Writer {
    program: Child,
    feeder: Option<JoinHandle<()>>,
}

impl Writer {
    /// Returns when the tables are there.
    fn begin(root: &Root, database: &Path, output: &Path) -> Result<Self> {
        let words = root.argv("/usr/bin/sqlite3", ["-batch".into(), database.as_os_str().to_owned()])?;
        let mut program = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(File::create(output).unwrap())
            .spawn()
            .unwrap();
        let mut input = program.stdin.take().unwrap();
        let tables = format!(
            "PRAGMA busy_timeout = 60000; CREATE TABLE first (v INTEGER); INSERT INTO first VALUES (0); CREATE TABLE filler (b BLOB);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MEGABYTES})
             INSERT INTO filler SELECT randomblob(1000000) FROM n;
             CREATE TABLE last (v INTEGER); INSERT INTO last VALUES (0); SELECT 'ready';\n"
        );
        let transaction = b"BEGIN; UPDATE first SET v = v + 1; UPDATE last SET v = v + 1; COMMIT;\n";
        let feeder = thread::spawn(move || {
            // Until the program has been killed.
            let mut said = input.write_all(tables.as_bytes());
            while said.is_ok() {
                thread::sleep(REST);
                said = input.write_all(transaction);
            }
        });
        let writer = Self { program, feeder: Some(feeder) };
        wait_for("the tables", PATIENCE, || {
            let said = fs::read_to_string(output).unwrap();
            Ok(if said.contains("ready") { Ok(()) } else { Err(said) })
        })?;
        Ok(writer)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = self.feeder.take().map(JoinHandle::join);
    }
}

/// What is wrong with a database, and how many transactions it has.
fn judge(root: &Root, database: &Path) -> Result<(Option<String>, u64)> {
    let questions = "PRAGMA integrity_check; SELECT v FROM first; SELECT v FROM last;";
    let done = run(
        &root.argv("/usr/bin/sqlite3", ["-batch".into(), database.as_os_str().to_owned(), questions.into()])?,
        b"",
    )?;
    let said = done.text();
    let lines: Vec<&str> = said.lines().collect();
    let whole = match lines[..] {
        ["ok", first, last] => first == last,
        _ => false,
    };
    let count = lines.get(1).and_then(|line| line.parse().ok()).unwrap_or_default();
    Ok(((!whole).then_some(said), count))
}

/// Takes the files of a job from its volume, without a restore.
fn unpack(bed: &Bed, job: &JobResult, to: &Path) -> Result<()> {
    fs::create_dir_all(to).unwrap();
    for file in saved(bed.records(&job.row, CLIENT)?)?.into_values().filter(|file| !file.name.ends_with('/')) {
        fs::write(to.join(Path::new(&file.name).file_name().unwrap()), file.data).unwrap();
    }
    Ok(())
}

#[test]
fn a_busy_database_is_whole_with_a_snapshot_and_torn_without() -> Result<()> {
    let btrfs = match Btrfs::make("sqlite", 512)? {
        Ok(btrfs) => btrfs,
        Err(reason) => return skip::test(reason),
    };
    let source = btrfs.top().join("db");
    fs::create_dir(&source).unwrap();
    let database = source.join("data.db");
    let mut options = options("sqlite", &[&source])?;
    // Reading what is between the two pages takes more than a second: then there is a transaction
    // in that time, however seldom this host lets the program have one.
    options.clients[0].file_daemon.push("Maximum Bandwidth Per Job = 8 mb/s".to_owned());
    let bed = Bed::start(options)?;
    let writer = Writer::begin(bed.root(), &database, &bed.folder().join("log/sqlite"))?;
    let judged = |job: &JobResult| -> Result<(Option<String>, u64)> {
        let to = bed.folder().join(format!("unpacked-{}", job.row.id));
        unpack(&bed, job, &to)?;
        let judgement = judge(bed.root(), &to.join("data.db"))?;
        fs::remove_dir_all(to).unwrap();
        Ok(judgement)
    };

    let mut torn = 0;
    for round in 0..TRIES {
        let job = bed.backup(CLIENT, "fileset=Live")?.must_be('T')?;
        torn += usize::from(judged(&job)?.0.is_some());
        if torn > 0 {
            eprintln!("torn without a snapshot: backup {}", round + 1);
            break;
        }
    }
    assert!(torn > 0, "{TRIES} backups without a snapshot were whole: the test shows nothing");

    let jobs = bed.run_all(&vec![format!("run job=backup-{CLIENT} fileset=Snapshot yes"); TRIES])?;
    let mut counts = Vec::new();
    let mut last = None;
    for job in jobs {
        let job = bed.result(job)?.must_be_good()?;
        assert_eq!(job.report()["Snapshot/VSS"], "yes");
        let (problem, count) = judged(&job)?;
        assert_eq!(problem, None, "job {}", job.row.id);
        counts.push(count);
        last = Some(job.row.id);
    }
    drop(writer);
    counts.sort_unstable();
    eprintln!("transactions at the moment of each snapshot: {counts:?}");
    assert!(counts[0] < counts[TRIES - 1], "nothing was written meanwhile");
    assert_eq!(btrfs.snapshots(), [""; 0], "a snapshot was left");

    let to = bed.folder().join("restored");
    bed.restore_own(CLIENT, last.unwrap(), &to)?.must_be_good()?;
    let restored = to.join(database.strip_prefix("/").unwrap());
    let (problem, count) = judge(bed.root(), &restored)?;
    assert!(problem.is_none() && count > 0, "{problem:?}");
    Ok(())
}
