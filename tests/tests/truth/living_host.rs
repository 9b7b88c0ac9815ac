//! A host that is in use while it is saved: a database, a mail spool, files that editors and caches
//! replace by rename, logs that are appended to and rotated, temporary files; a few hundred changes
//! a second, and a Storage Daemon to which the connection is slow, so that much changes between a
//! file's attributes and its data.
//!
//! Files that are replaced say in their first line which size, time and owner they have. So each
//! file on the volume shows whether its attributes are those of its data. `LIVING_HOST_ROUNDS=20`
//! runs that many Fulls and Incrementals of each daemon.

use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, UNIX_EPOCH};

use bed::{Bed, BedOptions, Fd, FileSet, JobResult, LStat, Noise, Records, Restore, Result, Root, Saved, saved};
use md5::{Digest as _, Md5};

/// Small files that are replaced by rename.
const SPOOL: usize = 600;
/// Mail in the spool, about.
const MAIL: usize = 300;
/// Documents of up to 200 KB.
const DOCUMENTS: usize = 40;
/// The stock daemon, and the one under test.
const CLIENTS: [&str; 2] = ["reference", "test"];
/// How long each program rests between two changes.
const REST: Duration = Duration::from_millis(4);

/// The programs of the host. They end when this is dropped.
struct Life {
    over: Arc<AtomicBool>,
    programs: Vec<JoinHandle<()>>,
    database: Child,
}

impl Life {
    fn begin(tree: &Path, root: &Root) -> Result<Self> {
        let over = Arc::<AtomicBool>::default();
        let program = |work: fn(&mut Program), directory: &str, seed: u64| {
            let mut program = Program::new(tree.join(directory), seed);
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    work(&mut program);
                    program.turn += 1;
                    thread::sleep(REST);
                }
            })
        };
        let programs = vec![
            program(Program::replace_in_spool, "spool", 1),
            program(Program::deliver_mail, "mail", 2),
            program(Program::save_document, "documents", 3),
            program(Program::write_log, "log", 4),
            program(Program::use_temporary_file, "tmp", 5),
        ];
        Ok(Self { over, programs, database: database(&tree.join("database"), root)? })
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.programs.drain(..).map(JoinHandle::join).filter(std::result::Result::is_err).count();
        let _ = self.database.kill();
        let _ = self.database.wait();
        assert!(ended == 0 || thread::panicking(), "{ended} programs of the host failed");
    }
}

/// SQLite in WAL mode, which inserts, updates and deletes rows until it is killed.
fn database(directory: &Path, root: &Root) -> Result<Child> {
    fs::create_dir_all(directory).unwrap();
    let words = root.argv("/usr/bin/sqlite3", ["-batch".into(), directory.join("data.db").into_os_string()])?;
    let (program, words) = words.split_first().unwrap();
    let mut child = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::spawn(move || {
        let mut said = input.write_all(b"PRAGMA journal_mode=WAL; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB);\n");
        // Until it has been killed.
        for turn in 0_u64.. {
            if said.is_err() {
                break;
            }
            said = writeln!(
                input,
                "INSERT INTO t VALUES ({turn}, randomblob(900)); UPDATE t SET v = randomblob(500) WHERE k = {turn} / 2; \
                 DELETE FROM t WHERE k = {turn} - 900;"
            );
            thread::sleep(REST);
        }
    });
    Ok(child)
}

/// One program of the host and the directory that it works in.
struct Program {
    directory: PathBuf,
    noise: Noise,
    turn: usize,
}

impl Program {
    fn new(directory: PathBuf, seed: u64) -> Self {
        fs::create_dir_all(&directory).unwrap();
        let mut program = Self { directory, noise: Noise::new(seed), turn: 0 };
        match seed {
            1 => (0..SPOOL).for_each(|number| program.put(&format!("entry-{number}"), 6000)),
            2 => ["tmp", "new", "cur"].into_iter().for_each(|name| {
                fs::create_dir_all(program.directory.join(name)).unwrap();
            }),
            3 => (0..DOCUMENTS).for_each(|number| program.put(&format!("document-{number}"), 200_000)),
            _ => {}
        }
        program
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A new file of up to `most` bytes that says what it is, moved to its name when it is
    /// complete.
    fn put(&mut self, name: &str, most: usize) {
        let size = 100 + self.noise.below(most);
        let uid = 1000 + self.noise.below(50);
        let mtime = 1_600_000_000 + self.noise.below(100_000_000);
        let mut content = format!("size={size} mtime={mtime} uid={uid}\n").into_bytes();
        content.extend(self.noise.bytes(size - content.len()));
        let temporary = self.at(&format!(".new-{}", name.replace('/', "-")));
        fs::write(&temporary, content).unwrap();
        chown(&temporary, Some(u32::try_from(uid).unwrap()), None).unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(mtime as u64);
        File::open(&temporary).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        fs::rename(temporary, self.at(name)).unwrap();
    }

    fn replace_in_spool(&mut self) {
        for _ in 0..2 {
            let number = self.noise.below(SPOOL);
            self.put(&format!("entry-{number}"), 6000);
        }
    }

    /// Into `new`, later to `cur`, later away.
    fn deliver_mail(&mut self) {
        let turn = self.turn;
        self.put(&format!("new/{turn}"), 3000);
        if let Some(read) = turn.checked_sub(20) {
            fs::rename(self.at(&format!("new/{read}")), self.at(&format!("cur/{read}:2,S"))).unwrap();
        }
        if let Some(old) = turn.checked_sub(MAIL) {
            fs::remove_file(self.at(&format!("cur/{old}:2,S"))).unwrap();
        }
    }

    fn save_document(&mut self) {
        let number = self.noise.below(DOCUMENTS);
        self.put(&format!("document-{number}"), 200_000);
    }

    /// Appends a line; from time to time each log gets the next older name.
    fn write_log(&mut self) {
        let line = self.noise.text(200);
        File::options().create(true).append(true).open(self.at("log")).unwrap().write_all(&line).unwrap();
        if self.turn % 150 == 149 {
            for (from, to) in [("log.2", "log.3"), ("log.1", "log.2"), ("log", "log.1")] {
                if self.at(from).exists() {
                    fs::rename(self.at(from), self.at(to)).unwrap();
                }
            }
        }
    }

    fn use_temporary_file(&mut self) {
        let made = self.at(&format!("{}", self.turn));
        fs::write(made, self.noise.bytes(2000)).unwrap();
        if let Some(old) = self.turn.checked_sub(100) {
            fs::remove_file(self.at(&format!("{old}"))).unwrap();
        }
    }
}

/// What does not fit about a file.
fn misfit(file: &Saved) -> Option<String> {
    let Saved { kind, name, data, digest, .. } = file;
    if !["2", "3"].contains(&kind.as_str()) {
        return None;
    }
    let Some(lstat) = LStat::parse(&file.lstat) else { return Some(format!("{name}: no attributes")) };
    if usize::try_from(lstat.size) != Ok(data.len()) {
        return Some(format!("{name}: {} bytes, LStat says {}", data.len(), lstat.size));
    }
    if !digest.is_empty() && *digest != Md5::digest(data).as_slice() {
        return Some(format!("{name}: another digest"));
    }
    let first = data.split(|byte| *byte == b'\n').next().filter(|line| line.starts_with(b"size="))?;
    let wanted = format!("size={} mtime={} uid={}", lstat.size, lstat.mtime, lstat.uid);
    let found = String::from_utf8_lossy(first);
    (found != wanted).then(|| format!("{name}: {found}, LStat says {wanted}"))
}

/// Number of files that say what they are, and what does not fit, of one job.
fn misfits(records: Records) -> Result<(usize, Vec<String>)> {
    let files = saved(records)?;
    assert!(files.values().all(|file| LStat::parse(&file.lstat).is_some()), "an attribute record can't be read");
    let telling = files.values().filter(|file| file.data.starts_with(b"size=")).count();
    Ok((telling, files.values().filter_map(misfit).collect()))
}

/// What came of all jobs of one client.
#[derive(Default, Debug)]
struct Score {
    files: usize,
    misfits: Vec<String>,
    /// Jobs, and those that did not end well.
    restores: usize,
    bad: Vec<String>,
}

impl Score {
    fn add_backup(&mut self, bed: &Bed, job: &JobResult, client: &str) -> Result<()> {
        let (files, misfits) = misfits(bed.records(&job.row, client)?)?;
        self.files += files;
        self.misfits.extend(misfits);
        Ok(())
    }

    fn add_restore(&mut self, result: JobResult) {
        self.restores += 1;
        if result.row.status != 'T' {
            self.bad.push(result.log);
        }
    }
}

/// Restores what these clients' jobs have saved by both daemons, and adds what came of it to their
/// scores.
fn restore(bed: &Bed, jobs: &[(usize, JobResult)], scores: &mut [Score; 2]) -> Result<()> {
    let mut queued = Vec::new();
    for (side, job) in jobs {
        for onto in CLIENTS {
            let to = bed.folder().join(format!("restored-{}-{onto}", job.row.id));
            let restore = Restore { job: job.row.id, from: CLIENTS[*side], onto, to: &to, replace: "always" };
            queued.push((side, bed.queue_restore(&restore)?, to));
        }
    }
    for (side, job, to) in queued {
        scores[*side].add_restore(bed.wait(job)?);
        fs::remove_dir_all(to).unwrap();
    }
    Ok(())
}

#[test]
fn a_changing_host_is_saved_consistently_and_restored() -> Result<()> {
    let rounds: usize = std::env::var("LIVING_HOST_ROUNDS").map_or(1, |text| text.parse().unwrap());
    let mut options = BedOptions::side_by_side("living")?;
    let source = options.source()?;
    // With TLS the stock daemon's limit is none.
    options.tls_psk = false;
    for client in &mut options.clients {
        client.file_daemon.push("Maximum Bandwidth Per Job = 8 mb/s".to_owned());
        client.settings.push("job.inode_scan = \"always\"".to_owned());
    }
    // What comes first takes seconds, and all the time the rest changes.
    let (large, living) = (source.join("large"), source.join("living"));
    fs::create_dir(&large).unwrap();
    (0..6).for_each(|seed| fs::write(large.join(format!("{seed}")), Noise::new(seed).bytes(4_000_000)).unwrap());
    options.file_sets = vec![FileSet::new("Living", &["Signature = MD5"], &[&large, &living])];
    let bed = Bed::start(options)?;
    let mut scores = [Score::default(), Score::default()];
    let mut jobs = Vec::new();
    let life = Life::begin(&living, bed.root())?;
    for _ in 0..rounds {
        for level in ["Full", "Incremental"] {
            if level == "Incremental" {
                // What was read first is to be read again, so that there is time for changes.
                for seed in 0..6 {
                    let mut file = File::options().append(true).open(large.join(format!("{seed}"))).unwrap();
                    file.write_all(b"+").unwrap();
                }
            }
            let queued = CLIENTS.map(|client| bed.queue(&format!("run job=backup-{client} level={level} yes")));
            for (side, job) in queued.into_iter().enumerate() {
                jobs.push((side, bed.wait(job?)?.must_be('T')?));
            }
        }
    }
    drop(life);
    for (side, job) in &jobs {
        scores[*side].add_backup(&bed, job, CLIENTS[*side])?;
    }
    for jobs in jobs.chunks(4) {
        restore(&bed, jobs, &mut scores)?;
    }
    for (client, score) in CLIENTS.iter().zip(&scores) {
        let Score { files, misfits, restores, bad } = score;
        eprintln!(
            "{client}: of {files} files that say what they are {} misfits, of {restores} restores {} bad: {:?}",
            misfits.len(),
            bad.len(),
            misfits.iter().take(5).collect::<Vec<_>>()
        );
        assert!(*files > rounds * 500, "the host was not alive");
    }
    if Fd::under_test()? == Fd::Ours {
        assert_eq!((&scores[1].misfits, &scores[1].bad), (&Vec::new(), &Vec::new()));
    }
    Ok(())
}
