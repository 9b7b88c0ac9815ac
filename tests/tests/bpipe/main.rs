//! `bpipe` (reference 07 §10): volumes, catalog, messages, estimates, verified volumes and what
//! writers get, compared with what the stock daemon did.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "what helps a test fails the test, like the test itself"
)]

mod rows;
#[path = "../plugins/told.rs"]
#[allow(dead_code, reason = "the other suite uses more of it")]
mod told;

use std::fs;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Keys, ONLY_OURS, PATIENCE, Result, StockRecord,
    job_resource, line_differences, wait_for,
};
use rows::{ALLOWED, ENCRYPTED, PLAIN, ROWS, Row};

/// The client under test, and the stock daemon beside it where each restores what the other saved;
/// as long as each other, so that lengths are the same.
const NAME: &str = "under";
const OTHER: &str = "refer";

/// Levels of Verify jobs: two that read the volume, and two that read the disk.
const VERIFIES: [&str; 4] = ["Data", "VolumeToCatalog", "DiskToCatalog", "InitCatalog"];

fn allowed_scripts(options: &BedOptions) -> Result<PathBuf> {
    let folder = options.folder.make("scripts")?;
    for (name, text) in [("print", "printf '<%s>\\n' \"$@\""), ("take", "cat > \"$1/took\"; echo taken")] {
        scripts::write(&folder.join(name), text).unwrap();
    }
    Ok(folder)
}

/// A bed with these daemons, each with three configurations, and a job of each row for each.
fn raise(daemons: &[(Fd, &str)]) -> Result<Bed> {
    let mut options = BedOptions::new("bpipe", [])?;
    options.every_message = true;
    let scripts = allowed_scripts(&options)?;
    let keys = Keys::make(&options.folder.make("keys")?, "own")?;
    for kind in [PLAIN, ALLOWED, ENCRYPTED] {
        for (fd, name) in daemons {
            let mut client = ClientOptions::new(*fd).named(&format!("{name}{kind}"));
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
        for (_, client) in daemons {
            let (client, name) = (row.client(client), row.name);
            let check = format!("Type = Verify\nLevel = Data\nVerify Job = \"save-{client}-{name}\"");
            for (job, more) in [("save", "Type = Backup\nLevel = Full"), ("check", check.as_str())] {
                let (job, more) = (format!("{job}-{client}-{name}"), format!("{more}\nMaximum Concurrent Jobs = 10"));
                options.director_resources.push(job_resource(&job, &client, name, &more));
            }
        }
    }
    Bed::start(options)
}

/// What is compared of a job, part by part.
type Parts = Vec<(&'static str, Vec<String>)>;

impl Row {
    /// The client of this daemon that saves it.
    fn client(&self, daemon: &str) -> String {
        format!("{daemon}{}", self.clients)
    }

    /// What it is made of.
    fn input(&self) -> String {
        self.lines("").join("\n")
    }
}

/// Runs a command for each row, all at once.
fn run_all<'r>(
    bed: &Bed,
    daemon: &str,
    rows: impl Iterator<Item = &'r Row>,
    command: impl Fn(&Row, &str) -> String,
) -> Result<Vec<(&'r Row, JobResult)>> {
    let rows: Vec<_> = rows.collect();
    let jobs = bed.run_all(&rows.iter().map(|row| command(row, &row.client(daemon))).collect::<Vec<_>>())?;
    rows.into_iter().zip(jobs).map(|(row, job)| Ok((row, bed.result(job)?))).collect()
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

/// An `LStat` without the time of access, which changes when a file of the tree is read.
fn without_atime(lstat: &[u8]) -> Vec<u8> {
    let mut numbers: Vec<&[u8]> = lstat.split(|&byte| byte == b' ').collect();
    if numbers.len() == 16 {
        numbers[10] = b"-";
    }
    numbers.join(&b' ')
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

/// What a job left, part by part. Of a job that fails, how far it came is chance.
fn parts(bed: &Bed, row: &Row, job: &JobResult) -> Result<Parts> {
    let client = row.client(NAME);
    let mut parts = vec![
        ("messages", messages(job, &client)),
        ("end", vec![format!("{} {}", job.row.status, job.report()["Termination"])]),
    ];
    if job.row.status == 'T' {
        parts.push(("records", records(bed, job, &client)?));
        parts.push((
            "catalog",
            told::catalog(bed.catalog(), job.row.id, without_atime)?.into_iter().map(without_now).collect(),
        ));
        parts.push(("report", report(row, job)));
    }
    Ok(parts)
}

/// What differs from the stock daemon in the parts of one row.
fn differences(record: &StockRecord, bed: &Bed, what: &str, row: &Row, parts: Parts) -> Result<Vec<String>> {
    record.differences_of_parts(bed.folder(), &format!("{} {what}", row.name), &row.input(), parts)
}

/// Where a restore goes. The path is as long for each, and is not the daemon's business to make.
fn place(bed: &Bed, row: &Row, from: &str, onto: &str) -> PathBuf {
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

/// Restores what a daemon has saved with a daemon, and says what came of it, part by part.
fn restore_all<'r>(bed: &Bed, saved: &[(&'r Row, JobResult)], from: &str, onto: &str) -> Result<Vec<(&'r Row, Parts)>> {
    let rows: Vec<_> = saved.iter().filter(|(row, _)| row.is_restored).collect();
    let mut commands = Vec::new();
    for (row, job) in &rows {
        let to = place(bed, row, from, onto);
        fs::create_dir_all(&to).unwrap();
        let (from, onto) = (row.client(from), row.client(onto));
        let restore = bed::Restore { job: job.row.id, from: &from, onto: &onto, to: &to, replace: "always" };
        commands.push(restore.command());
    }
    let jobs = bed.run_all(&commands)?;
    let mut all = Vec::new();
    for ((row, _), job) in rows.into_iter().zip(jobs) {
        let job = bed.result(job)?;
        let folder = place(bed, row, from, onto);
        let end = vec![format!("{} {}", job.row.status, job.report()["Termination"])];
        let here = |line: String| line.replace(&folder.to_string_lossy().into_owned(), "PLACE");
        let said = messages(&job, &row.client(onto)).into_iter().map(here).collect();
        all.push((*row, vec![("files", files(&folder)), ("messages", said), ("end", end)]));
    }
    Ok(all)
}

/// What an estimate of all rows says.
fn estimate_all(bed: &Bed) -> Result<Vec<String>> {
    let command = |row: &Row| format!("estimate job=save-{}-{} level=Full listing", row.client(NAME), row.name);
    let commands: Vec<_> = ROWS.iter().map(command).collect();
    let answer = bed.console(&commands.iter().map(String::as_str).collect::<Vec<_>>())?;
    let plain = |line: &str| match line.split_once(" -1 ") {
        Some((start, rest)) if line.starts_with("-rwx") => {
            format!("{start} {}", &rest["2026-01-01 00:00:00".len()..])
        }
        _ => line.to_owned(),
    };
    let stays = |line: &&str| !line.contains("Connecting to Client") && !line.contains("You have messages");
    let folder = bed.folder().display().to_string();
    Ok(answer.lines().filter(stays).map(|line| plain(line).replace(&folder, "@")).collect())
}

/// What Verify jobs of this level say of what was saved last.
fn verify_all(bed: &Bed, level: &str) -> Result<Vec<(&'static Row, Parts)>> {
    // The levels that read the disk know no plugins, whatever the row.
    let is_meant = |row: &&Row| !level.contains("Catalog") || level.starts_with("Volume") || row.name == "packed";
    let rows = ROWS.iter().filter(|row| row.is_restored && !row.writer_fails).filter(is_meant);
    let command = |row: &Row, client: &str| format!("run job=check-{client}-{} level={level} yes", row.name);
    let parts = |(row, job): (&'static Row, JobResult)| {
        let end = format!("{} {}", job.row.status, job.report()["Termination"]);
        let said = messages(&job, &row.client(NAME));
        (row, vec![("messages", said), ("report", told::report_of_verify(&job)), ("end", vec![end])])
    };
    Ok(run_all(bed, NAME, rows, command)?.into_iter().map(parts).collect())
}

/// The console's command that saves a row.
fn save(level: &str) -> impl Fn(&Row, &str) -> String {
    move |row: &Row, client: &str| format!("run job=save-{client}-{} level={level} yes", row.name)
}

#[test]
fn a_canceled_job_ends_what_its_reader_has_started() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
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

/// It is saved before anyone knows how long it will be.
#[test]
fn a_dump_of_bpipe_whose_digest_fits_is_no_difference() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("bpipe-verify", [ClientOptions::new(fd).named(NAME)])?;
    let lines = [
        "Include {",
        "Options {\nSignature = SHA256\nVerify = pins5\n}",
        "Plugin = \"bpipe:/dumps/shop.sql:echo dump:cat\"",
        "}",
    ];
    options.file_sets = vec![FileSet { name: "dump".to_owned(), lines: lines.map(str::to_owned).to_vec() }];
    let check = format!("Type = Verify\nLevel = Data\nVerify Job = backup-{NAME}");
    options.director_resources.push(job_resource("check", NAME, "dump", &check));
    let bed = Bed::start(options)?;
    bed.backup(NAME, "level=Full")?.must_be_good()?;
    let job = bed.run("run job=check level=Data yes")?.must_be(if fd == Fd::Stock { 'D' } else { 'T' })?;
    assert_eq!(job.log.contains("st_size  differs"), fd == Fd::Stock, "{}", job.log);
    Ok(())
}

#[test]
fn what_bpipe_saves_and_restores_is_as_with_the_stock_daemon() -> Result<()> {
    let bed = raise(&[(Fd::under_test()?, NAME)])?;
    let record = StockRecord::open("bpipe")?;
    let commands = ROWS.iter().map(Row::input).collect::<Vec<_>>().join("\n");
    let mut wrong = record.differences("all rows", "estimate", &commands, &estimate_all(&bed)?)?;
    let mut full = Vec::new();
    for level in ["Full", "Incremental"] {
        full = run_all(&bed, NAME, ROWS.iter(), save(level))?;
        for (row, job) in &full {
            wrong.extend(differences(&record, &bed, level, row, parts(&bed, row, job)?)?);
        }
    }
    for level in VERIFIES {
        for (row, parts) in verify_all(&bed, level)? {
            wrong.extend(differences(&record, &bed, level, row, parts)?);
        }
    }
    for (row, parts) in restore_all(&bed, &full, NAME, NAME)? {
        wrong.extend(differences(&record, &bed, "restored", row, parts)?);
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// The volumes are the same (see the records), so this shows nothing new; it is the plainest proof.
#[test]
#[ignore = "the stock daemon live: make test-live"]
fn each_daemon_restores_what_the_other_has_saved() -> Result<()> {
    let bed = raise(&[(Fd::Stock, OTHER), (Fd::under_test()?, NAME)])?;
    let saved = [OTHER, NAME].map(|daemon| run_all(&bed, daemon, ROWS.iter(), save("Full")));
    let [stock, ours] = saved;
    let (stock, ours) = (stock?, ours?);
    let first = restore_all(&bed, &stock, OTHER, OTHER)?;
    let mut wrong = Vec::new();
    for (saved, from, onto) in [(&stock, OTHER, NAME), (&ours, NAME, OTHER)] {
        for ((row, one), (_, other)) in first.iter().zip(restore_all(&bed, saved, from, onto)?) {
            // What fails does so whoever has saved it.
            if row.writer_fails && onto == OTHER {
                continue;
            }
            for ((part, stock), (_, ours)) in one.iter().zip(&other) {
                let what = format!("{} saved by {from}, restored by {onto}: {part}", row.name);
                wrong.extend(line_differences(&what, stock, ours));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
