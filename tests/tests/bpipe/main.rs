//! `bpipe` in the stock daemon and in the daemon under test (reference 07 §10): volumes, catalog,
//! messages, estimates, verified volumes and what writers get.
//!
//! With `FD_UNDER_TEST=stock` a second stock daemon takes the place of ours.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "what helps a test fails the test, like the test itself"
)]

#[path = "../pki/keys.rs"]
#[allow(dead_code, reason = "the other suite uses more of it")]
mod keys;
mod rows;
#[path = "../plugins/told.rs"]
#[allow(dead_code, reason = "the other suite uses more of it")]
mod told;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, ONLY_OURS, PATIENCE, Result, line_differences, wait_for,
};
use keys::Keys;
use rows::{ALLOWED, ENCRYPTED, PLAIN, ROWS, Row};

/// The clients' names: as long as each other, so that lengths are the same.
const NAMES: [&str; 2] = ["refer", "under"];

/// Levels of Verify jobs: two that read the volume, and two that read the disk.
const VERIFIES: [&str; 4] = ["Data", "VolumeToCatalog", "DiskToCatalog", "InitCatalog"];

fn allowed_scripts(options: &BedOptions) -> Result<PathBuf> {
    let folder = options.folder.make("scripts")?;
    for (name, text) in [("print", "printf '<%s>\\n' \"$@\""), ("take", "cat > \"$1/took\"; echo taken")] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Ok(folder)
}

/// A bed with both daemons, each with three configurations, and a job of each row for each.
fn raise() -> Result<Bed> {
    let mut options = BedOptions::new("bpipe", [])?;
    options.every_message = true;
    let scripts = allowed_scripts(&options)?;
    let keys = Keys::make(&options.folder.make("keys")?, "own");
    for kind in [PLAIN, ALLOWED, ENCRYPTED] {
        for (fd, name) in [Fd::Stock, Fd::under_test()?].into_iter().zip(NAMES) {
            let mut client = ClientOptions::new(fd).named(&format!("{name}{kind}"));
            if kind == ALLOWED {
                client.fd_director.push(format!("Allowed Script Directories = \"{}\"", scripts.display()));
            } else if kind == ENCRYPTED {
                client.file_daemon.push(format!("PKI Keypair = \"{}\"", keys.pair.display()));
                client.file_daemon.push("PKI Encryption = yes".to_owned());
            }
            options.clients.push(client);
        }
    }
    for row in &ROWS {
        let lines = row.lines(&scripts.to_string_lossy());
        options.file_sets.push(FileSet { name: row.name.to_owned(), lines });
        for client in row.names() {
            let name = row.name;
            let check = format!("Type = Verify\nLevel = Data\nVerify Job = \"save-{client}-{name}\"");
            for (job, more) in [("save", "Type = Backup\nLevel = Full"), ("check", check.as_str())] {
                options.director_resources.push(format!(
                    "Job {{\nName = \"{job}-{client}-{name}\"\n{more}\nClient = {client}-fd\nFileSet = \"{name}\"\n\
                     Storage = {client}\nPool = {client}\nMessages = Standard\nMaximum Concurrent Jobs = 10\n}}"
                ));
            }
        }
    }
    Bed::start(options)
}

impl Row {
    fn names(&self) -> [String; 2] {
        NAMES.map(|name| format!("{name}{}", self.clients))
    }
}

/// Runs a command for each row and client, all at once.
fn run_all<'r>(
    bed: &Bed,
    rows: impl Iterator<Item = &'r Row>,
    command: impl Fn(&Row, &str) -> String,
) -> Result<Vec<(&'r Row, [JobResult; 2])>> {
    let rows: Vec<_> = rows.collect();
    let commands: Vec<_> = rows.iter().flat_map(|row| row.names().map(|client| command(row, &client))).collect();
    let jobs = bed.queue_all(&commands)?;
    bed.wait_for_reports(&jobs)?;
    rows.into_iter()
        .zip(jobs.chunks(2))
        .map(|(row, pair)| Ok((row, [bed.result(pair[0])?, bed.result(pair[1])?])))
        .collect()
}

/// A line of a record or of the catalog without the times of a file of `bpipe`, which are now.
fn without_now(line: String) -> String {
    const BEFORE: &str = " IHA A A A A -B BAA B ";
    let Some((start, rest)) = line.split_once(BEFORE) else { return line };
    let after: Vec<_> = rest.splitn(4, ' ').collect();
    format!("{start}{BEFORE}NOW {}", after[3])
}

/// The messages of a job. What a program has said is told apart into lines, and the lines of saved
/// and restored files are without their times.
fn messages(job: &JobResult, client: &str) -> Vec<String> {
    let plain = |line: String| {
        let text = line.strip_prefix("fd: ").and_then(|text| text.split_once(": "));
        if let Some((file, text)) = text
            && (file.starts_with('/') || file.starts_with("relative/"))
        {
            return text.to_owned();
        }
        if let Some((_, rest)) = line.split_once("Write error at byte=") {
            // How much went into the pipe before the writer closed it is chance, and the stock
            // daemon does not have the reason.
            let place = rest.split_once(" on ").and_then(|(_, rest)| rest.split_once(": ERR=")).unwrap_or_default().0;
            return format!("Write error on {place}");
        }
        match line.split_once(" -1 ") {
            Some((start, rest)) if line.starts_with("fd: -rwx") => {
                format!("{start} {}", &rest["2026-01-01 00:00:00".len()..])
            }
            _ => line,
        }
    };
    // What the Director and the Storage Daemon say is about volumes and numbers.
    let of_the_daemon = |line: &String| {
        // The stock daemon does not say what the volume makes it run (docs/differences.md).
        let is_of_others =
            ["dir: ", "sd: ", "   ", "fd: The volume asks plugin "].iter().any(|start| line.starts_with(start));
        // After a fatal message it is chance whether the file is named, too.
        !is_of_others && (job.row.status == 'T' || !line.starts_with("fd:      Cannot open"))
    };
    job.plain_messages(client).into_iter().filter(of_the_daemon).map(plain).filter(|line| !line.is_empty()).collect()
}

/// A job's records: the data of a file in one piece, because the stock daemon's blocks are as long
/// as what its reads happen to find. Packed and encrypted data is left to the restores.
fn records(bed: &Bed, job: &JobResult, client: &str) -> Result<Vec<String>> {
    let Ok(records) = bed.records(&job.row, client) else { return Ok(vec!["no records".to_owned()]) };
    let mut joined: Vec<bed::Record> = Vec::new();
    for record in records {
        let mut record = record?;
        match joined.last_mut() {
            Some(last) if (last.file_index, last.stream, record.stream) == (record.file_index, 2, 2) => {
                last.data.append(&mut record.data);
            }
            Some(last)
                if (last.file_index, last.stream) == (record.file_index, record.stream) && is_packed(record.stream) => {
            }
            _ => joined.push(record),
        }
    }
    Ok(joined.iter().map(shown).map(without_now).collect())
}

/// A record as a line, without the byte at the end of an object that the stock daemon leaves to
/// chance.
fn shown(record: &bed::Record) -> String {
    let bed::Record { file_index, stream, data, .. } = record;
    let kept = &data[..data.len().saturating_sub(usize::from(*stream == 28))];
    let text = match kept.len() {
        _ if is_packed(*stream) => String::new(),
        0..400 => kept.escape_ascii().to_string(),
        length => {
            format!("{length} bytes {:?}", openssl::hash::hash(openssl::hash::MessageDigest::md5(), kept).unwrap())
        }
    };
    format!("{file_index} {} {text}", bed::stream_name(*stream))
}

/// Session keys, and data that is compressed or encrypted.
fn is_packed(stream: i32) -> bool {
    matches!(stream & 0x7ff, 4 | 19..=23 | 29)
}

/// The counts of the Director's report, without those that depend on the length of blocks.
fn report(row: &Row, job: &JobResult) -> Vec<String> {
    let is_packed = row.options.contains("Compression") || row.clients == ENCRYPTED;
    let is_chance = |line: &String| {
        line.starts_with("Backup Level") || is_packed && (line.contains("Bytes") || line.contains("Compression"))
    };
    told::report(job).into_iter().filter(|line| !is_chance(line)).collect()
}

/// What differs between two jobs that end alike. Of a job that fails, how far it came is chance.
fn compare(bed: &Bed, what: &str, row: &Row, jobs: &[JobResult; 2]) -> Result<Vec<String>> {
    let mut sides = Vec::new();
    for (client, job) in row.names().iter().zip(jobs) {
        let mut told = vec![messages(job, client), vec![format!("{} {}", job.row.status, job.report()["Termination"])]];
        if job.row.status == 'T' {
            told.push(records(bed, job, client)?);
            told.push(told::catalog(bed.catalog(), job.row.id)?.into_iter().map(without_now).collect());
            told.push(report(row, job));
        }
        sides.push(told);
    }
    tell(&format!("{what} {}", row.name), &sides[0]);
    let names = ["messages", "end", "records", "catalog", "report"];
    let parts = names.iter().zip(sides[0].iter().zip(&sides[1]));
    Ok(parts
        .flat_map(|(part, (stock, ours))| line_differences(&format!("{} {what}: {part}", row.name), stock, ours))
        .collect())
}

/// Where a restore goes. The path is as long for each, and is not the daemon's business to make.
fn place(bed: &Bed, row: &Row, from: usize, onto: usize) -> PathBuf {
    bed.folder().join(format!("restored/{}-{from}-{onto}", row.name))
}

/// What writers have left in a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut lines: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let data = fs::read(entry.path()).unwrap();
            let sum = openssl::hash::hash(openssl::hash::MessageDigest::md5(), &data).unwrap();
            format!("{} {} {sum:?}", entry.file_name().display(), data.len())
        })
        .collect();
    lines.sort();
    lines
}

/// Restores what each daemon has saved with each daemon.
fn restore_all(bed: &Bed, saved: &[(&Row, [JobResult; 2])]) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    let mut ways = Vec::new();
    for (row, jobs) in saved.iter().filter(|(row, _)| row.is_restored) {
        let clients = row.names();
        // The stock daemon restores its own first: the others are compared with that. What fails
        // does so whoever has saved it.
        let wanted = if row.writer_fails { &[(0, 0), (0, 1)][..] } else { &[(0, 0), (0, 1), (1, 0)] };
        for &(from, onto) in wanted {
            let to = place(bed, row, from, onto);
            fs::create_dir_all(&to).unwrap();
            let (job, from_client, onto_client) = (jobs[from].row.id, &clients[from], &clients[onto]);
            let restore = bed::Restore { job, from: from_client, onto: onto_client, to: &to, replace: "always" };
            commands.push(restore.command());
            ways.push((*row, from, onto));
        }
    }
    let jobs = bed.queue_all(&commands)?;
    bed.wait_for_reports(&jobs)?;
    let mut wrong = Vec::new();
    let mut first = None;
    for ((row, from, onto), job) in ways.into_iter().zip(jobs) {
        let job = bed.result(job)?;
        let folder = place(bed, row, from, onto);
        let end = vec![format!("{} {}", job.row.status, job.report()["Termination"])];
        let here = |line: String| line.replace(&folder.to_string_lossy().into_owned(), "PLACE");
        let said = messages(&job, &row.names()[onto]).into_iter().map(here).collect();
        let told = [files(&folder), said, end];
        tell(&format!("restore {} {from} {onto}", row.name), &told);
        if (from, onto) == (0, 0) {
            first = Some(told);
            continue;
        }
        for (what, (stock, ours)) in ["files", "messages", "end"].iter().zip(first.iter().flatten().zip(&told)) {
            let what = format!("{} restored, saved by {}, restored by {}: {what}", row.name, NAMES[from], NAMES[onto]);
            wrong.extend(line_differences(&what, stock, ours));
        }
    }
    Ok(wrong)
}

/// Estimates each row with both daemons.
fn estimate_all(bed: &Bed) -> Result<Vec<String>> {
    let mut sides = Vec::new();
    for side in [0, 1] {
        let command = |row: &Row| format!("estimate job=save-{}-{} level=Full listing", row.names()[side], row.name);
        let commands: Vec<_> = ROWS.iter().map(command).collect();
        let answer = bed.console(&commands.iter().map(String::as_str).collect::<Vec<_>>())?;
        let plain = |line: &str| match line.split_once(" -1 ") {
            Some((start, rest)) if line.starts_with("-rwx") => {
                format!("{start} {}", &rest["2026-01-01 00:00:00".len()..])
            }
            _ => line.replace(NAMES[side], "client"),
        };
        let stays = |line: &&str| !line.contains("Connecting to Client") && !line.contains("You have messages");
        sides.push(answer.lines().filter(stays).map(plain).collect::<Vec<_>>());
    }
    tell("estimate", &[sides[0].clone()]);
    Ok(line_differences("estimate", &sides[0], &sides[1]))
}

/// What Verify jobs of this level say of what each daemon has saved last.
fn verify_all(bed: &Bed, level: &str) -> Result<Vec<String>> {
    // The levels that read the disk know no plugins, whatever the row.
    let is_meant = |row: &&Row| !level.contains("Catalog") || level.starts_with("Volume") || row.name == "packed";
    let rows = ROWS.iter().filter(|row| row.is_restored && !row.writer_fails).filter(is_meant);
    let command = |row: &Row, client: &str| format!("run job=check-{client}-{} level={level} yes", row.name);
    let mut wrong = Vec::new();
    for (row, jobs) in run_all(bed, rows, command)? {
        let side = |(client, job): (&String, &JobResult)| {
            let end = format!("{} {}", job.row.status, job.report()["Termination"]);
            [messages(job, client), told::report_of_verify(job), vec![end]]
        };
        let sides: Vec<_> = row.names().iter().zip(&jobs).map(side).collect();
        tell(&format!("{level} {}", row.name), &sides[0]);
        for (what, (stock, ours)) in ["messages", "report", "end"].iter().zip(sides[0].iter().zip(&sides[1])) {
            wrong.extend(line_differences(&format!("{} {level}: {what}", row.name), stock, ours));
        }
    }
    Ok(wrong)
}

/// Prints what was found for who wants to see it.
fn tell(what: &str, told: &[Vec<String>]) {
    if std::env::var_os("BPIPE_LOGS").is_some() {
        println!("{what}\n{}", told.concat().join("\n"));
    }
}

#[test]
fn a_canceled_job_ends_what_its_reader_has_started() -> Result<()> {
    if Fd::under_test()? == Fd::Stock {
        return skip::test(ONLY_OURS);
    }
    let mut options = BedOptions::new("bpipe-cancel", [ClientOptions::new(Fd::Ours)])?;
    let numbers = options.folder.path().join("numbers");
    let reader = format!("trap '' TERM; sleep 1000 & echo $$ $! > {}; cat", numbers.display());
    let plugin = format!("Plugin = \"bpipe:/sleeps:({reader}; sleep 1000); sleep 1000:cat\"");
    let lines = ["Include {", plugin.as_str(), "}"].map(str::to_owned).to_vec();
    options.file_sets = vec![FileSet { name: "sleeps".to_owned(), lines }];
    let bed = Bed::start(options)?;
    let job = bed.queue("run job=backup-ours yes")?;
    let numbers = wait_for("the reader to start", PATIENCE, || {
        let text = fs::read_to_string(&numbers).unwrap_or_default();
        Ok(if text.ends_with('\n') { Ok(text) } else { Err(text) })
    })?;
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    let canceled = bed.wait(job)?.must_be('A')?;
    assert!(!canceled.log.contains("bpipe-fd:"), "{}", canceled.log);
    wait_for("the reader to end", PATIENCE, || {
        let left = numbers.split_ascii_whitespace().filter(|number| Path::new("/proc").join(number).exists());
        let left: Vec<_> = left.collect();
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) })
    })?;
    Ok(())
}

#[test]
fn what_bpipe_saves_and_restores_is_as_with_the_stock_daemon() -> Result<()> {
    let bed = raise()?;
    let mut wrong = estimate_all(&bed)?;
    let mut full = Vec::new();
    for level in ["Full", "Incremental"] {
        let command = |row: &Row, client: &str| format!("run job=save-{client}-{} level={level} yes", row.name);
        full = run_all(&bed, ROWS.iter(), command)?;
        for (row, pair) in &full {
            wrong.extend(compare(&bed, level, row, pair)?);
        }
    }
    for level in VERIFIES {
        wrong.extend(verify_all(&bed, level)?);
    }
    wrong.extend(restore_all(&bed, &full)?);
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
