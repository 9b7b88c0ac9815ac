//! Jobs whose status is asked for, that are canceled, or that lose the other daemons while they
//! run.
//!
//! The job reads a FIFO that the test writes: it is in the middle of its file for exactly as long
//! as the test holds it there, and nothing depends on a clock.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test fails the test, like the test itself")]

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Noise, PATIENCE, ReservedPort, Result, TreeOptions, build_every_type,
    connections, descriptors, fifo_writer, make_fifo, set_fixed_times, wait_for,
};

/// The size of the pieces in which the daemon reads.
const PIECE: usize = 65536;

/// A bed whose FileSet `fifo` is one FIFO, and the FIFO's path. In `three` there are more.
fn bed_with_fifo(label: &str) -> Result<(Bed, PathBuf)> {
    bed_with_fifo_and(label, Fd::under_test()?, &[])
}

/// The same with this daemon and these lines in its `bacula-fd.toml`.
fn bed_with_fifo_and(label: &str, fd: Fd, settings: &[&str]) -> Result<(Bed, PathBuf)> {
    let mut client = ClientOptions::new(fd).named("test");
    client.settings = settings.iter().map(ToString::to_string).collect();
    let mut options = BedOptions::new(label, [client])?;
    let source = options.source()?;
    std::fs::write(source.join("file"), b"small\n").unwrap();
    let fifos = ["fifo", "second", "third"].map(|name| options.folder.path().join(name));
    fifos.iter().try_for_each(|path| make_fifo(path))?;
    let [fifo, second, third] = fifos;
    options.file_sets = vec![
        FileSet::new("small", &["Signature = MD5"], &[&source]),
        FileSet::new("fifo", &["Signature = MD5", "ReadFifo = yes"], &[&fifo]),
        FileSet::new("behind", &["Signature = MD5", "ReadFifo = yes"], &[&source, &fifo]),
        FileSet::new("three", &["ReadFifo = yes"], &[&source.join("file"), &fifo, &second, &third]),
    ];
    Ok((Bed::start(options)?, fifo))
}

/// A backup job that has opened the FIFO and waits for what the test writes into it.
struct Held {
    job: u32,
    name: String,
    writer: File,
    noise: Noise,
}

impl Held {
    fn begin(bed: &Bed, fifo: &Path) -> Result<Self> {
        Self::begin_with(bed, fifo, "fifo")
    }

    fn begin_with(bed: &Bed, fifo: &Path, fileset: &str) -> Result<Self> {
        let job = bed.queue(&format!("run job=backup-test fileset={fileset} yes"))?;
        let writer = fifo_writer(fifo)?;
        let name = bed.catalog().job(job)?.job;
        Ok(Self { job, name, writer, noise: Noise::new(3) })
    }

    /// Gives the daemon so many pieces. When this returns, it has read all but what a pipe holds.
    fn feed(&mut self, pieces: usize) -> std::io::Result<()> {
        (0..pieces).try_for_each(|_| self.writer.write_all(&self.noise.bytes(PIECE)))
    }

    /// Gives data until the daemon does not read any more; a healthy daemon that has lost its
    /// storage stops soon.
    fn feed_until_refused(&mut self) {
        for _ in 0..4096 {
            match self.feed(1) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return,
                Err(error) => panic!("writing the FIFO: {error}"),
            }
        }
        panic!("the daemon read 256 MiB for a storage that is gone");
    }
}

/// No job runs, the history has the given job with the given state, and the next backup is good.
fn assert_over(bed: &mut Bed, job: u32, states: &[&str]) -> Result<()> {
    let shown = bed.wait_for_status("test", "No Jobs running.")?;
    let terminated = shown.rsplit("Terminated Jobs:").next().unwrap_or_default();
    let row = terminated.lines().find(|line| line.split_ascii_whitespace().next() == Some(&job.to_string()));
    let row = row.unwrap_or_else(|| panic!("job {job} is not in the history:\n{shown}"));
    let stands = |state: &&&str| row.split_ascii_whitespace().any(|word| word == **state);
    assert!(states.iter().any(|state| stands(&state)), "expected one of {states:?} in {row:?}");
    let next = bed.backup("test", "fileset=small")?.must_be('T')?;
    assert_eq!(next.row.files, 2);
    let pid = bed.client("test")?.pid()?;
    wait_for("the FIFO and all connections to be closed", PATIENCE, || {
        let open = descriptors(pid)?;
        let left = open.iter().any(|target| target.ends_with("/fifo"));
        Ok(if left { Err(format!("{open:?}")) } else { Ok(()) })
    })
}

/// If the host fails now, the job can be resumed behind them.
#[test]
fn what_is_saved_reaches_the_storage_while_a_fifo_lets_the_job_wait() -> Result<()> {
    let (mut bed, fifo) = bed_with_fifo("held-back")?;
    let held = Held::begin_with(&bed, &fifo, "behind")?;
    wait_for("the storage to have the files before the FIFO", PATIENCE, || {
        let shown = bed.console(&["status storage"])?;
        Ok(if shown.contains("Files=2 ") || shown.contains("Files=3 ") { Ok(()) } else { Err(shown) })
    })?;
    let job = held.job;
    drop(held);
    assert_eq!(bed.wait(job)?.row.files, 3);
    assert_over(&mut bed, job, &["OK"])
}

#[test]
fn a_running_job_is_shown_and_can_be_canceled() -> Result<()> {
    let (mut bed, fifo) = bed_with_fifo("cancel")?;
    let mut held = Held::begin(&bed, &fifo)?;
    held.feed(20).unwrap();
    // The pipe holds one piece, the daemon one more: eighteen are through.
    let processing = format!("Processing file: {}", fifo.display());
    let status = bed.wait_for_status("test", &processing)?;
    let running: Vec<_> = status.lines().skip_while(|line| *line != "Running Jobs:").collect();
    let starts = [
        "Running Jobs:".to_owned(),
        format!("JobId {} Job {} is running.", held.job, held.name),
        "    Full Backup Job started: ".to_owned(),
        "    Files=1 Bytes=".to_owned(),
        "    Bwlimit=0 ReadBytes=".to_owned(),
        "    Files: Examined=1 Backed up=1".to_owned(),
        format!("    {processing}"),
        "    SDReadSeqNo=".to_owned(),
        "Director connected using TLS at: ".to_owned(),
        "====".to_owned(),
    ];
    assert!(running.len() >= starts.len(), "{status}");
    for (line, start) in running.iter().zip(&starts) {
        assert!(line.starts_with(start), "expected {start:?}, got {line:?} in:\n{status}");
    }
    assert!(status.contains("Jobs: run=0 running=1 max=20."), "{status}");
    let canceled = bed.console(&[&format!("cancel jobid={} yes", held.job)])?;
    assert!(canceled.contains(&format!("2001 Job \"{}\" marked to be canceled.", held.name)), "{canceled}");
    // The daemon may stop reading now, or when what it waits for has come.
    let (job, writer) = (held.job, held.writer);
    drop(writer);
    bed.wait(job)?.must_be('A')?;
    assert_over(&mut bed, job, &["Cancel"])
}

/// The Storage Daemon knows that it is in the middle of a record, as with the stock daemon: between
/// records it would call its own interrupted read a fatal error.
#[test]
fn a_cancel_while_a_fifo_gives_nothing_is_no_error_of_the_storage() -> Result<()> {
    let (mut bed, fifo) = bed_with_fifo("cancel-hung")?;
    let held = Held::begin_with(&bed, &fifo, "behind")?;
    wait_for("the storage to have the FIFO's attributes", PATIENCE, || {
        let shown = bed.console(&["status storage"])?;
        Ok(if shown.contains("Files=3 ") { Ok(()) } else { Err(shown) })
    })?;
    bed.console(&[&format!("cancel jobid={} yes", held.job)])?;
    let ended = bed.wait(held.job)?.must_be('A')?;
    assert_eq!((ended.row.files, ended.row.errors), (0, 0), "{}", ended.log);
    assert_eq!(ended.report().get("SD Errors").map(String::as_str), Some("0"), "{}", ended.log);
    assert!(!ended.log.contains("Fatal error"), "{}", ended.log);
    // What it says so late is not always in the job's log.
    let said = bed.storage().output();
    assert!(!said.contains("Error reading data"), "{said}");
    let job = held.job;
    drop(held);
    assert_over(&mut bed, job, &["Cancel"])
}

#[test]
fn a_lost_storage_daemon_fails_only_that_job() -> Result<()> {
    let (mut bed, fifo) = bed_with_fifo("sd-killed")?;
    let mut held = Held::begin(&bed, &fifo)?;
    held.feed(20).unwrap();
    bed.storage().kill()?;
    held.feed_until_refused();
    bed.wait_for_status("test", "No Jobs running.")?;
    let fatal = "Fatal error: backup.c:1056 Network send error to SD. ERR=";
    let wanted = match Fd::under_test()? {
        Fd::Ours => ["Error: bsock.c:388 Write error sending ", fatal],
        Fd::Stock => [fatal, "Error: bsock.c:275 Socket has errors=1 on call to Storage daemon:"],
    };
    wait_for("the reason in the job's log", PATIENCE, || errors_are(&bed, held.job, &wanted))?;
    assert_over_without_storage(&mut bed, held.job)?;
    assert_eq!(errors_are(&bed, held.job, &wanted)?, Ok(()));
    Ok(())
}

/// Whether these, and no others, are the errors of the client in a job's log; of the stock daemon
/// the last ones, as what its TLS says before them depends on the moment.
fn errors_are(bed: &Bed, job: u32, wanted: &[&str]) -> Result<std::result::Result<(), String>> {
    let log = bed.catalog().log(job)?;
    let head = format!("test-fd JobId {job}: ");
    let said: Vec<_> = log.lines().filter_map(|line| Some(line.split_once(&head)?.1)).collect();
    let mut errors: Vec<_> = said.into_iter().filter(|text| text.contains("rror: ")).collect();
    if Fd::under_test()? == Fd::Stock {
        errors.drain(..errors.len().saturating_sub(wanted.len()));
    }
    let are_those =
        errors.len() == wanted.len() && errors.iter().zip(wanted).all(|(said, text)| said.starts_with(text));
    Ok(if are_those { Ok(()) } else { Err(log) })
}

/// The same for a job that has lost its Storage Daemon, which is started again.
fn assert_over_without_storage(bed: &mut Bed, job: u32) -> Result<()> {
    // This Director goes on waiting for the lost Storage Daemon's word about the job; a new one
    // does not.
    bed.director().kill()?;
    bed.storage().start()?;
    bed.director().start()?;
    assert_over(bed, job, &["Error"])
}

/// It waits for a FIFO, as a walk may for hours for a file that has changed. What came before has
/// only gone into the connection's buffer, and shows the loss when that is sent.
#[test]
fn a_job_that_has_nothing_to_send_ends_when_it_sees_that_its_storage_daemon_is_lost() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon sends each piece at once");
    let (mut bed, fifo) = bed_with_fifo("sd-killed-in-silence")?;
    // Has a writer, which writes nothing, at any time.
    let third = File::options().read(true).write(true).open(fifo.with_file_name("third")).unwrap();
    let job = bed.queue("run job=backup-test fileset=three yes")?;
    let first = fifo_writer(&fifo)?;
    wait_for("the storage to have the file before the FIFOs", PATIENCE, || {
        let shown = bed.console(&["status storage"])?;
        Ok(if shown.contains("Files=1 ") || shown.contains("Files=2 ") { Ok(()) } else { Err(shown) })
    })?;
    let (pid, storage) = (bed.client("test")?.pid()?, format!("0100007F:{:04X}", bed.storage().port()));
    bed.storage().kill()?;
    // The kernel still takes the first FIFO's record, and then knows that its receiver is gone.
    drop(first);
    wait_for("the connection to be reset", PATIENCE, || {
        let mut open = connections(pid)?;
        open.retain(|line| line.split_ascii_whitespace().nth(2) == Some(&storage));
        Ok(if open.is_empty() { Ok(()) } else { Err(open.concat()) })
    })?;
    drop(fifo_writer(&fifo.with_file_name("second"))?);
    bed.wait_for_status("test", "No Jobs running.")?;
    let wanted = [
        "Error: bsock.c:388 Write error sending ",
        "Fatal error: backup.c:1056 Network send error to SD. ERR=Broken pipe",
    ];
    wait_for("the reason in the job's log", PATIENCE, || errors_are(&bed, job, &wanted))?;
    drop(third);
    assert_over_without_storage(&mut bed, job)
}

#[test]
fn the_daemon_serves_on_after_a_lost_director() -> Result<()> {
    let (mut bed, fifo) = bed_with_fifo("dir-killed")?;
    let mut held = Held::begin(&bed, &fifo)?;
    held.feed(20).unwrap();
    bed.director().kill()?;
    // Whether the Storage Daemon still takes the rest is up to it; the daemon under test reads on
    // or stops, and ends.
    let _ = held.feed(20);
    let (job, writer) = (held.job, held.writer);
    drop(writer);
    bed.director().start()?;
    assert_over(&mut bed, job, &["OK", "Error"])
}

/// The nice values of a process's threads, by name and number.
fn nice_values(pid: u32) -> std::io::Result<Vec<(String, i32)>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(line) = std::fs::read_to_string(task?.path().join("stat")) else { continue };
        let (head, rest) = line.rsplit_once(") ").unwrap();
        let name = head.split_once(" (").unwrap().1.to_owned();
        found.push((name, rest.split(' ').nth(16).unwrap().parse().unwrap()));
    }
    Ok(found)
}

/// What is answered to these bytes.
fn ask(port: u16, request: &[u8]) -> String {
    let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    peer.write_all(request).unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_job_obeys_its_resource_settings_and_reports_its_waiting_times() -> Result<()> {
    let port = ReservedPort::new()?;
    let metrics = format!("address = \"127.0.0.1:{}\"", port.number());
    let settings = ["[job]", "stage_times = true", "[metrics]", &metrics];
    let (mut bed, fifo) = bed_with_fifo_and("manners", Fd::Ours, &settings)?;
    let pid = bed.client("test")?.pid()?;
    let before = nice_values(pid).unwrap();
    let normal = before.iter().map(|(_, nice)| *nice).max().unwrap();
    let mut held = Held::begin(&bed, &fifo)?;
    held.feed(20).unwrap();
    // A job of so few files has no worker: its walker reads them. A thread has its name before its
    // priority.
    let of_the_job = |name: &str| name == "walker" || name == "worker" || name.starts_with("job ");
    wait_for("the threads of the job to be nice", PATIENCE, || {
        let during = nice_values(pid).unwrap();
        let threads: Vec<_> = during.iter().filter(|(name, _)| of_the_job(name)).collect();
        let is_nice = threads.len() > 1 && threads.iter().all(|(_, nice)| *nice == normal.max(10));
        Ok(if is_nice { Ok(()) } else { Err(format!("{during:?}")) })
    })?;
    let status = bed.wait_for_status("test", "    Seconds: reading=")?;
    assert!(status.contains(" for the sender=0.000 "), "{status}");
    let job = held.job;
    // A caller that sends nothing delays the next one only briefly.
    let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).unwrap();
    let metrics = ask(port.number(), b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    drop(silent);
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    let labels = format!("name=\"backup-test\",jobid=\"{job}\",type=\"Backup\"");
    for line in [
        "bacula_fd_jobs_running 1".to_owned(),
        format!("bacula_fd_job_files{{{labels}}} 1"),
        format!("bacula_fd_job_stage_seconds{{{labels},stage=\"wait_for_sender\"}} 0"),
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line:?} in:\n{metrics}");
    }
    // For how long depends on what else the host does.
    let gave_way = format!("bacula_fd_job_gave_way_seconds{{{labels},pressure=\"memory\"}} ");
    assert!(metrics.lines().any(|found| found.starts_with(&gave_way)), "{metrics}");
    assert!(ask(port.number(), b"GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(port.number(), b"DELETE /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(port.number(), &[b'x'; 8192]).starts_with("HTTP/1.1 400 "));
    drop(held);
    let done = bed.wait(job)?.must_be_good()?;
    let told: Vec<_> =
        done.log.lines().filter(|line| line.contains("Where the time went, in seconds: walk ")).collect();
    assert!(told.len() == 1 && told[0].ends_with("Slowest: reading files."), "{}", done.log);
    // The daemon is as urgent as before.
    wait_for("the job's threads to end", PATIENCE, || {
        let after = nice_values(pid).unwrap();
        let same = after.iter().map(|(_, nice)| *nice).max() == Some(normal);
        Ok(if same { Ok(()) } else { Err(format!("{after:?}, before {before:?}")) })
    })
}

#[test]
fn silent_callers_do_not_delay_a_scrape() -> Result<()> {
    let port = ReservedPort::new()?;
    let settings = ["[metrics]", &format!("address = \"127.0.0.1:{}\"", port.number())];
    let (bed, _) = bed_with_fifo_and("scrapes", Fd::Ours, &settings)?;
    let call = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).unwrap();
    let is_open = |caller: &TcpStream| {
        caller.set_nonblocking(true).unwrap();
        matches!(caller.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    // On a busy machine their time may be up before the scrape is made.
    let side_by_side = (0..20).any(|_| {
        let silent: Vec<_> = (0..5).map(|_| call()).collect();
        assert!(ask(port.number(), b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
        silent.iter().all(is_open)
    });
    assert!(side_by_side, "a scrape is answered when the silent callers have gone");
    // More than there is room for, whose time is up at last.
    let silent: Vec<_> = (0..40).map(|_| call()).collect();
    assert!(ask(port.number(), b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    for mut caller in silent {
        caller.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = Vec::new();
        let closed = caller.read_to_end(&mut heard);
        assert!(heard.is_empty() && !matches!(closed, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
    drop(bed);
    Ok(())
}

#[test]
fn the_history_survives_a_restart() -> Result<()> {
    let (mut bed, _) = bed_with_fifo("history")?;
    let job = bed.backup("test", "")?.must_be_good()?.row.id;
    let history = |bed: &Bed| -> Result<String> {
        let status = bed.wait_for_status("test", "No Jobs running.")?;
        Ok(status.rsplit("Terminated Jobs:").next().unwrap_or_default().to_owned())
    };
    let before = history(&bed)?;
    assert!(before.contains(&format!("{job:6}  Full  ")) && before.contains(" backup-test"), "{before}");
    let daemon = bed.client("test")?.daemon();
    daemon.stop()?;
    daemon.start()?;
    assert_eq!(history(&bed)?, before);
    Ok(())
}

#[test]
fn the_status_has_the_layout_of_the_stock_daemon_s() -> Result<()> {
    let options = BedOptions::side_by_side("status")?;
    let source = options.source()?;
    build_every_type(&source, &TreeOptions::default())?;
    set_fixed_times(&source)?;
    let bed = Bed::start(options)?;
    let shapes = |bed: &Bed| -> Result<[String; 2]> {
        let of = |client: &str| bed.wait_for_status(client, "No Jobs running.").map(|status| shape(&status));
        Ok([of("reference")?, of("test")?])
    };
    let [reference, test] = shapes(&bed)?;
    assert_eq!(reference, test, "before the first job");
    for client in ["reference", "test"] {
        bed.backup(client, "")?.must_be_good()?;
        bed.restore(&bed::Restore {
            job: 1,
            from: "reference",
            onto: client,
            to: &bed.folder().join(client),
            replace: "always",
        })?
        .must_be_good()?;
    }
    let [reference, test] = shapes(&bed)?;
    assert_eq!(reference, test, "after a backup and a restore");
    assert!(reference.contains("Rest") && reference.contains("Full"), "{reference}");
    Ok(())
}

/// The status without what belongs to one process, one moment or one name.
fn shape(status: &str) -> String {
    let line = |line: &str| -> Option<String> {
        let keep = |words: usize| line.split(' ').take(words).collect::<Vec<_>>().join(" ");
        // Each line's own volatile part; the Director's two lines about connecting are not the
        // client's.
        Some(match line.trim_start().split([' ', ':']).next()? {
            "Connecting" | "status" | "quit" => return None,
            "reference-fd" | "test-fd" => keep(5).replace("reference-fd", "test-fd"),
            "Daemon" => line.split(". Jobs:").nth(1)?.to_owned(),
            "Director" => line.split(" at: ").next()?.to_owned(),
            "Heap" | "Crypto" => line.split('=').next()?.to_owned(),
            _ if line.ends_with("backup-reference")
                || line.ends_with("backup-test")
                || line.ends_with(" restore-reference") =>
            {
                // JobId and time out, widths kept.
                let tail = line.get(6..)?;
                let (head, name) = tail.rsplit_once(' ')?;
                format!("{} {}", head.get(..head.len().checked_sub(15)?)?, name.replace("reference", "test"))
            }
            _ => line.to_owned(),
        })
    };
    status.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}
