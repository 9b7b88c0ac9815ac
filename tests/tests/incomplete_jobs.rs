//! A job that the operator stops or cancels in the middle of a file, and how it goes on, compared
//! with what the stock daemon did.
//!
//! The file is a FIFO that the test writes, so the test decides where the job is: it has sent
//! everything that was written, and waits for more.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bed::{
    Attributes, Bed, BedOptions, COUNTS_OF_A_REPORT, ClientOptions, Expect, Fd, FileRow, FileSet, JobResult, LStat,
    Noise, PATIENCE, Record, Restore, Result, StockRecord, below, fifo_writer, make_fifo, read_once, set_fixed_times,
    stream_name, wait_for,
};

/// How much is written into the FIFO: ours reads a MiB before it sends it.
const WRITTEN: usize = 2 << 20;
/// Files before the FIFO, and behind it.
const FILES: usize = 20;

const CLIENT: &str = "test";

struct Stage {
    bed: Bed,
    fifo: PathBuf,
    record: StockRecord,
}

impl Stage {
    fn set(label: &str) -> Result<Self> {
        let mut options = BedOptions::new(label, [ClientOptions::new(Fd::under_test()?).named(CLIENT)])?;
        options.every_message = true;
        let source = options.source()?;
        let fifo = options.folder.path().join("fifo");
        make_fifo(&fifo)?;
        // Each file is named, so that no directory decides on their order.
        let mut names = Vec::new();
        for number in 0..2 * FILES {
            let path = source.join(format!("file {number:02}"));
            fs::write(&path, content(number)).unwrap();
            set_fixed_times(&path)?;
            names.push(path);
        }
        names.insert(FILES, fifo.clone());
        read_once(&source)?;
        let names: Vec<&Path> = names.iter().map(PathBuf::as_path).collect();
        options.file_sets = vec![FileSet::new("held", &["Signature = MD5", "ReadFifo = yes"], &names)];
        Ok(Self { bed: Bed::start(options)?, fifo, record: StockRecord::open("incomplete_jobs")? })
    }

    /// Waits until the daemon reads the FIFO, and writes into it.
    fn write(&self, seed: u64) -> Result<File> {
        let mut writer = fifo_writer(&self.fifo)?;
        writer.write_all(&Noise::new(seed).bytes(WRITTEN)).unwrap();
        Ok(writer)
    }

    /// A job in the middle of the FIFO gets this command of the operator.
    fn interrupt(&self, command: &str) -> Result<JobResult> {
        let job = self.bed.queue(&format!("run job=backup-{CLIENT} fileset=held yes"))?;
        let writer = self.write(1)?;
        // Nothing is left in the FIFO: the daemon waits.
        let small: usize = (0..FILES).map(|number| content(number).len()).sum();
        self.bed.wait_for_status(CLIENT, &format!("Bytes={} ", grouped(WRITTEN + small)))?;
        let said = self.bed.console(&[&format!("{command} jobid={job} yes")])?;
        drop(writer);
        let ended = self.bed.wait(job)?;
        let mut found = self.differences(command, "told the operator", said.lines().map(str::to_owned))?;
        found.extend(self.differences_of_job(command, &ended)?);
        match command {
            "stop" => must_differ_in(&found, &CUT_SHORT)?,
            // The Director has no ear for much of what a daemon says when its job is canceled.
            _ => assert!(found.iter().all(|text| text.contains(CUT_SHORT[0])), "{found:#?}"),
        }
        Ok(ended)
    }

    /// How lines of a row differ from those of the record.
    fn differences(&self, row: &str, what: &str, lines: impl Iterator<Item = String>) -> Result<Vec<String>> {
        let folder = self.bed.folder().display().to_string();
        let lines: Vec<_> = lines.map(|line| line.replace(&folder, "/bed")).collect();
        let input = format!("{FILES} files, {WRITTEN} bytes, {FILES} files");
        self.record.differences(row, what, &input, &lines)
    }

    /// The same for a job's messages, its report, and what volume, catalog and daemon have of it.
    fn differences_of_job(&self, row: &str, job: &JobResult) -> Result<Vec<String>> {
        let messages = job.plain_messages(CLIENT).into_iter();
        let mut found = self.differences(row, "messages", messages)?;
        let (report, of_job) = (job.report(), &job.row);
        // What of the FIFO has come to the Storage Daemon.
        let is_whole = |name: &&&str| of_job.status == 'T' || **name != "Software Compression";
        let counts = COUNTS_OF_A_REPORT.iter().filter(is_whole).map(|name| format!("{name}: {:?}", report.get(*name)));
        let counts = counts.chain([
            format!("status {}, {} files", of_job.status, of_job.files),
            format!("bytes {} of {}", of_job.bytes, of_job.read_bytes),
        ]);
        found.extend(self.differences(row, "report", counts)?);
        let files = self.bed.catalog().files(of_job.id)?;
        let line = |file: FileRow| [file.file_index.to_string().as_bytes(), &file.path, &file.digest].join(&b' ');
        let files = files.into_iter().map(line).map(|line| line.escape_ascii().to_string());
        found.extend(self.differences(row, "catalog", files)?);
        // The volume of a canceled job is none of the catalog's.
        if of_job.files > 0 {
            let records = self.bed.records(of_job, CLIENT)?.collect::<Result<Vec<_>>>()?;
            // How much data of the FIFO that it was stopped in has come, is chance with ours.
            let fifo = self.fifo.as_os_str().as_bytes();
            let is_fifo =
                |record: &&Record| record.stream == Attributes::STREAM && Attributes::of(&record.data).path == fifo;
            let cut = records.iter().find(is_fifo).map(|record| record.file_index);
            let is_sure = |record: &&Record| record.stream == Attributes::STREAM || Some(record.file_index) != cut;
            found.extend(self.differences(row, "records", records.iter().filter(is_sure).map(told))?);
        }
        let status = self.bed.wait_for_status(CLIENT, "No Jobs running.")?;
        let rows = status.lines().filter(|line| line.ends_with(&format!(" backup-{CLIENT}")));
        found.extend(self.differences(row, "history", rows.map(str::to_owned))?);
        Ok(found)
    }
}

/// What only the stock daemon reports: that its own thread was interrupted, and that its own hand
/// has closed the connection.
const CUT_SHORT: [&str; 5] = [
    "messages only of stock: fd: Error: Read error on file /bed/fifo. ERR=Interrupted system call",
    "Bsock send while terminated=1 on call to Storage daemon",
    "Network send error to SD. ERR=I/O Error",
    "report only of stock: Non-fatal FD errors: Some(\"4\")",
    "report only of ours: Non-fatal FD errors: Some(\"0\")",
];

/// Ours differs in all of these, and in nothing else.
fn must_differ_in(found: &[String], texts: &'static [&'static str]) -> Result<()> {
    let documented = "A job that the operator stops or cancels reports interrupted reads";
    let expect = match Fd::under_test()? {
        Fd::Ours => Expect::Differs { documented, found: texts },
        Fd::Stock => Expect::Equal,
    };
    assert!(expect.is_met_by(found), "{found:#?}");
    Ok(())
}

/// What is in a file.
fn content(number: usize) -> String {
    format!("{number}\n").repeat(100)
}

/// A number as the status writes it: `1,310,720`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A record in a line, without what belongs to the host.
fn told(record: &Record) -> String {
    let Record { file_index, stream, data, .. } = record;
    let head = format!("{file_index} {}", stream_name(*stream));
    if *stream != Attributes::STREAM {
        return format!("{head} {} bytes {}", data.len(), data.get(..20).unwrap_or(data).escape_ascii());
    }
    let Attributes { kind, path, lstat, target } = Attributes::of(data);
    let size = LStat::parse(lstat).map(|lstat| (lstat.mode, lstat.size));
    format!("{head} {kind} {} {size:?} {}", path.escape_ascii(), target.escape_ascii())
}

#[test]
fn a_stopped_job_resumes_where_it_stopped() -> Result<()> {
    let stage = Stage::set("stop")?;
    let stopped = stage.interrupt("stop")?.must_be('I')?;
    let reports = stage.bed.reports_of(stopped.row.id)?;
    stage.bed.console(&[&format!("resume incomplete jobid={} yes", stopped.row.id)])?;
    drop(stage.write(2)?);
    let resumed = stage.bed.wait_again(stopped.row.id, reports)?.must_be_good()?;
    // Its log begins with that of the stopped one.
    must_differ_in(&stage.differences_of_job("resume", &resumed)?, &CUT_SHORT[..3])
}

/// It waits in the middle of its data, which the Storage Daemon does not want any more. Ours did
/// not see that each time: so three jobs.
#[test]
fn a_stopped_job_that_a_limit_holds_back_tells_of_no_broken_connection() -> Result<()> {
    let mut client = ClientOptions::new(Fd::under_test()?).named(CLIENT);
    client.file_daemon = vec!["Maximum Bandwidth Per Job = 1000 kb/s".to_owned()];
    let options = BedOptions::new("stop-limit", [client])?;
    fs::write(options.source()?.join("noise"), Noise::new(1).bytes(30_000_000)).unwrap();
    let bed = Bed::start(options)?;
    for _ in 0..3 {
        let job = bed.queue(&format!("run job=backup-{CLIENT} yes"))?;
        wait_for("the job to send", PATIENCE, || {
            let status = bed.console(&[&format!("status client={CLIENT}-fd")])?;
            let sends = status.contains(" Bytes=") && !status.contains(" Bytes=0 ");
            Ok(if sends { Ok(()) } else { Err(status) })
        })?;
        bed.console(&[&format!("stop jobid={job} yes")])?;
        let stopped = bed.wait(job)?.must_be('I')?;
        let messages = stopped.plain_messages(CLIENT);
        assert!(!messages.iter().any(|line| line.contains("Write error")), "{messages:#?}");
    }
    Ok(())
}

#[test]
fn a_canceled_job_is_reported_alike() -> Result<()> {
    Stage::set("cancel-alike")?.interrupt("cancel")?.must_be('A').map(drop)
}

/// A name of the file is removed between the two parts, so the second one has all its names again.
/// The Director takes the second record of the first name, and the first records of the others,
/// which so come before it.
#[test]
fn hard_links_of_a_resumed_job_wait_for_their_first_name() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(bed::ONLY_OURS);
    }
    let clients = ["reference", "test"];
    let mut options = BedOptions::side_by_side("resumed-links")?;
    for client in clients {
        let folder = options.folder.make(&format!("source/{client}"))?;
        let [first, others @ .., held] = ["first", "one", "two", "gone", "held"].map(|name| folder.join(name));
        fs::write(&first, content(0)).unwrap();
        for other in &others {
            fs::hard_link(&first, other).unwrap();
        }
        // What stands last before a stop is lost to the catalog.
        let behind: Vec<_> = (1..FILES).map(|number| folder.join(format!("file {number:02}"))).collect();
        for (number, path) in (1..).zip(&behind) {
            fs::write(path, content(number)).unwrap();
        }
        make_fifo(&held)?;
        let names = [&first].into_iter().chain(&others).chain(&behind).chain([&held]);
        let names: Vec<&Path> = names.map(PathBuf::as_path).collect();
        options.file_sets.push(FileSet::new(client, &["Signature = MD5", "ReadFifo = yes"], &names));
    }
    let bed = Bed::start(options)?;
    let [of_stock, of_ours] = clients.map(|client| resumed(&bed, client, &bed.folder().join("source").join(client)));
    let (of_stock, of_ours) = (of_stock?, of_ours?);
    let cases = [("reference", of_stock, "reference"), ("reference", of_stock, "test"), ("test", of_ours, "test")];
    for (from, job, onto) in cases {
        let folder = bed.folder().join("source").join(from);
        let to = bed.folder().join(format!("{from}-by-{onto}"));
        let restored = bed.restore(&Restore { job, from, onto, to: &to, replace: "always" })?;
        let found = |name: &str| fs::read_to_string(below(&to, &folder.join(name))).ok();
        let refused = restored.plain_messages(onto).iter().any(|line| line.contains("Could not hard link"));
        let is_stock = onto == "reference";
        assert_eq!(refused, is_stock, "{:#?}", restored.plain_messages(onto));
        assert_eq!(found("first"), Some(content(0)));
        for name in ["one", "two", "gone"] {
            assert_eq!(found(name), (!is_stock).then(|| content(0)), "{name} of {from} by {onto}");
        }
        if !is_stock {
            restored.must_be_good()?;
        }
    }
    Ok(())
}

/// A job that was stopped behind the names of a file, and resumed when one of them was gone.
fn resumed(bed: &Bed, client: &str, folder: &Path) -> Result<u32> {
    let job = bed.queue(&format!("run job=backup-{client} fileset={client} yes"))?;
    let held = folder.join("held");
    let mut writer = fifo_writer(&held)?;
    writer.write_all(&Noise::new(1).bytes(WRITTEN)).unwrap();
    let small: usize = (0..FILES).map(|number| content(number).len()).sum();
    bed.wait_for_status(client, &format!("Bytes={} ", grouped(WRITTEN + small)))?;
    bed.console(&[&format!("stop jobid={job} yes")])?;
    drop(writer);
    bed.wait(job)?.must_be('I')?;
    for gone in [&held, &folder.join("gone")] {
        fs::remove_file(gone).unwrap();
    }
    fs::write(held, "a file by now").unwrap();
    let reports = bed.reports_of(job)?;
    bed.console(&[&format!("resume incomplete jobid={job} yes")])?;
    bed.wait_again(job, reports)?.must_be('T')?;
    Ok(job)
}
