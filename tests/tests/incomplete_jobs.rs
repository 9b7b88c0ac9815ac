//! A job that the operator stops or cancels in the middle of a file, and how it goes on: by the
//! stock daemon and by the one under test, on the same tree.
//!
//! The file is a FIFO that the test writes, so the test decides where the job is.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use bed::{
    Bed, BedError, BedOptions, COUNTS_OF_A_REPORT, Fd, FileRow, FileSet, JobResult, Noise, PATIENCE, Record, Result,
    leave_out, read_once, set_fixed_times, wait_for,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// How much is written into the FIFO, and how much of it a daemon reads at once.
const PIECES: usize = 20;
const PIECE: usize = 65_536;

/// What the Director's report says of a job that was not cut short only.
const OF_THE_WHOLE: [&str; 3] = ["FD Bytes Written", "Software Compression", "Non-fatal FD errors"];

/// `UNIX_ATTRIBUTES`.
const ATTRIBUTES: i32 = 1;

const CLIENTS: [&str; 2] = ["refer", "under"];

struct Stage {
    bed: Bed,
    fifo: PathBuf,
}

impl Stage {
    fn set(label: &str) -> Result<Self> {
        let mut options = BedOptions::side_by_side(label)?;
        for (client, name) in options.clients.iter_mut().zip(CLIENTS) {
            name.clone_into(&mut client.name);
        }
        options.every_message = true;
        let (before, after) = (options.folder.make("source/before")?, options.folder.make("source/later")?);
        for folder in [&before, &after] {
            for number in 0..20 {
                fs::write(folder.join(format!("file {number:02}")), format!("{number}\n").repeat(100)).unwrap();
            }
            set_fixed_times(folder)?;
            read_once(folder)?;
        }
        let fifo = options.folder.path().join("fifo");
        mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
        options.file_sets =
            vec![FileSet::new("held", &["Signature = MD5", "ReadFifo = yes"], &[&before, &fifo, &after])];
        Ok(Self { bed: Bed::start(options)?, fifo })
    }

    /// Waits until a daemon reads the FIFO.
    fn writer(&self) -> Result<File> {
        let open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&self.fifo);
        let writer =
            wait_for("the daemon to open the FIFO", PATIENCE, || Ok(open().map_err(|error| error.to_string())))?;
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty()))
            .map_err(|source| BedError::System { what: "fcntl", source })?;
        Ok(writer)
    }

    /// A job in the middle of the FIFO gets this command of the operator.
    fn interrupt(&self, client: &str, command: &str) -> Result<(JobResult, String)> {
        let job = self.bed.queue(&format!("run job=backup-{client} fileset=held yes"))?;
        let mut writer = self.writer()?;
        writer.write_all(&Noise::new(1).bytes(PIECES * PIECE)).unwrap();
        // What the daemon has read may not have reached the Storage Daemon yet; the files before
        // the FIFO have.
        let fifo = self.fifo.to_string_lossy();
        wait_for("the FIFO in the status", PATIENCE, || {
            let status = self.bed.console(&[&format!("status client={client}-fd")])?;
            Ok(if status.contains(&format!("Processing file: {fifo}")) { Ok(()) } else { Err(status) })
        })?;
        let said = self.bed.console(&[&format!("{command} jobid={job} yes")])?;
        drop(writer);
        Ok((self.bed.wait(job)?, Self::neutral(&said, client, job)))
    }

    /// The stopped job goes on, and ends.
    fn resume(&self, stopped: &JobResult) -> Result<JobResult> {
        let reports = self.bed.reports_of(stopped.row.id)?;
        self.bed.console(&[&format!("resume incomplete jobid={} yes", stopped.row.id)])?;
        let mut writer = self.writer()?;
        writer.write_all(&Noise::new(2).bytes(PIECES * PIECE)).unwrap();
        drop(writer);
        self.bed.wait_again(stopped.row.id, reports)
    }

    fn neutral(text: &str, client: &str, job: u32) -> String {
        let name = text.split(&format!("backup-{client}.")).nth(1).and_then(|rest| rest.split('"').next());
        text.replace(name.unwrap_or("no name"), "DATE")
            .replace(client, "CLIENT")
            .replace(&format!("jobid={job}"), "jobid=N")
            .replace(&format!("JobId={job}"), "JobId=N")
            .replace(&format!("JobId {job},"), "JobId N,")
            .replace("You have messages.\n", "")
    }

    /// The rows of the daemon's history, without what is the job's own: its number, how much of the
    /// FIFO had been read, and the time.
    fn history(&self, client: &str) -> Result<String> {
        let status = wait_for("the daemon's own end of the job", PATIENCE, || {
            let status = self.bed.console(&[&format!("status client={client}-fd")])?;
            Ok(if status.contains("No Jobs running.") { Ok(status) } else { Err(status) })
        })?;
        let rows = status.lines().filter(|line| line.ends_with(&format!(" backup-{client}")));
        let words = |row: &str| {
            let words = row.split_ascii_whitespace().skip(1).filter(|word| !word.contains(['.', ':', '-']));
            words.collect::<Vec<_>>().join(" ")
        };
        Ok(rows.map(words).collect::<Vec<_>>().join("\n"))
    }

    /// The records, one a line: of the FIFO its name only, and none of the data that it was stopped
    /// in.
    fn records(&self, job: &JobResult, client: &str) -> Result<String> {
        let mut text = String::new();
        let fifo = self.fifo.to_string_lossy().into_owned();
        let mut cut = None;
        for record in self.bed.records(&job.row, client)? {
            let Record { file_index, stream, mut data, .. } = record?;
            if stream == ATTRIBUTES && data.windows(fifo.len()).any(|part| part == fifo.as_bytes()) {
                data.truncate(fifo.len());
                cut = cut.or(Some(file_index));
            }
            if stream == ATTRIBUTES || cut != Some(file_index) {
                let shown = data.get(..200).unwrap_or(&data).escape_ascii();
                writeln!(text, "{file_index} {stream} {} {shown}", data.len()).unwrap();
            }
        }
        Ok(text)
    }

    /// Number, path and digest of what the catalog has.
    fn files(&self, job: &JobResult) -> Result<String> {
        let rows = self.bed.catalog().files(job.row.id)?;
        let line =
            |row: &FileRow| format!("{} {} {}", row.file_index, row.path.escape_ascii(), row.digest.escape_ascii());
        Ok(rows.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// What the stock daemon says of what the operator has done to its job: that the daemon's own
/// thread was interrupted, and that its own hand has closed the connection.
const NOISE: [&str; 3] =
    [". ERR=Interrupted system call", "Bsock send while terminated=1", "Network send error to SD. ERR=I/O Error"];

/// Whether the Storage Daemon notices the end within a frame depends on chance. The log of a
/// resumed job begins with that of the stopped one.
const WITHIN_A_FRAME: &str = "sd: Error: bsock.c:571 Read expected";

/// What both daemons' jobs must have in common, by name.
type Facts = Vec<(&'static str, String)>;

/// The times of the FIFO are those of the test.
fn undated(line: &str) -> String {
    if line.starts_with("fd: frw") {
        line.split(' ').next_back().unwrap_or_default().to_owned()
    } else {
        line.to_owned()
    }
}

fn facts_of(job: &JobResult, client: &str) -> Facts {
    let row = &job.row;
    // A job that was cut short: how much of the FIFO had been read, and in which of its lines the
    // Storage Daemon notices.
    let whole = row.status == 'T';
    let counts = COUNTS_OF_A_REPORT.iter().filter(|name| whole || !OF_THE_WHOLE.contains(name));
    let report = job.report();
    let counts: Vec<_> = counts.map(|name| format!("{name}: {:?}", report.get(*name))).collect();
    let messages = leave_out(leave_out(job.plain_messages(client), &NOISE), &[WITHIN_A_FRAME]);
    let messages: Vec<_> = messages
        .into_iter()
        .map(
            |line| {
                if line.starts_with("sd: Fatal error: append.c:") { "sd: noticed".to_owned() } else { undated(&line) }
            },
        )
        .collect();
    vec![
        ("row", format!("status {}, {} files", row.status, row.files)),
        ("messages", format!("{messages:#?}")),
        ("report", format!("{counts:#?}")),
    ]
}

/// The same course of events with both daemons, one after the other, and what differs.
fn compare(course: impl Fn(&str) -> Result<Facts>) -> Result<Vec<String>> {
    let [stock, ours] = CLIENTS.map(course);
    let pairs = stock?.into_iter().zip(ours?).filter(|(stock, ours)| stock != ours);
    let difference = |((what, stock), (_, ours))| format!("{what}:\n stock {stock}\n ours  {ours}");
    Ok(pairs.map(difference).collect())
}

/// Whether a job's log has a line that only a daemon that complains of the operator writes.
fn complains(job: &JobResult, client: &str) -> bool {
    job.messages_of(&format!("{client}-fd")).iter().any(|line| NOISE.iter().any(|noise| line.contains(noise)))
}

/// Only the stock daemon does.
fn must_complain_as_expected(job: &JobResult, client: &str) -> Result<()> {
    let expected = client == CLIENTS[0] || Fd::under_test()? == Fd::Stock;
    assert_eq!(complains(job, client), expected, "{}", job.log);
    Ok(())
}

#[test]
fn a_stopped_job_resumes_where_it_stopped() -> Result<()> {
    let stage = Stage::set("stop")?;
    let wrong = compare(|client| {
        let (stopped, said) = stage.interrupt(client, "stop")?;
        let stopped = stopped.must_be('I')?;
        must_complain_as_expected(&stopped, client)?;
        let mut facts = facts_of(&stopped, client);
        facts.push(("told the operator", said));
        facts.push(("kept", stage.files(&stopped)?));
        let resumed = stage.resume(&stopped)?.must_be_good()?;
        facts.extend(facts_of(&resumed, client));
        facts.push(("history", stage.history(client)?));
        facts.push(("catalog", stage.files(&resumed)?));
        facts.push(("bytes", format!("{} {}", resumed.row.bytes, resumed.row.read_bytes)));
        facts.push(("records", stage.records(&resumed, client)?));
        Ok(facts)
    })?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

#[test]
fn a_canceled_job_is_reported_alike() -> Result<()> {
    let stage = Stage::set("cancel-alike")?;
    let wrong = compare(|client| {
        let (canceled, said) = stage.interrupt(client, "cancel")?;
        let canceled = canceled.must_be('A')?;
        must_complain_as_expected(&canceled, client)?;
        let mut facts = facts_of(&canceled, client);
        facts.push(("told the operator", said));
        facts.push(("kept", stage.files(&canceled)?));
        facts.push(("history", stage.history(client)?));
        Ok(facts)
    })?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
