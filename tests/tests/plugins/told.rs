//! What a job left, as lines without what two jobs never have in common.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bed::{COUNTS_OF_A_REPORT, Catalog, JobResult, LStat, Record, Records, Result, stream_name};

/// Times since 2020 are of the job, not of a test plugin's file.
const RECENT: u64 = 1_577_836_800;

/// Differences that docs/differences.md lists: words of their row there, and parts of the messages
/// that only one of the daemons has.
pub(crate) const DOCUMENTED: [(&str, &[&str]); 8] = [
    ("A restore runs what the volume says: any record", &["The volume asks plugin "]),
    (
        "What is said of a `handleXACLdata` that fails",
        &[
            "No OS ACL configured",
            "No OS XATTR configured",
            " errors while doing backup",
            "Plugin could not save the ",
            "could not hand over",
            "Plugin could not restore the ",
        ],
    ),
    ("A plugin that ends a Verify job by its status", &[" has ended the Verify job at "]),
    ("A plugin's write error has the byte and block", &[]),
    ("A packet of a plugin's metadata that can't be sent", &[]),
    ("A file that can't be opened, or of which nothing", &[]),
    ("A plugin command whose plugin wants no part in the job", &[ENDED_EARLY]),
    ("In a backup nothing is said of a plugin's file that", &[NOT_CLOSED]),
];
/// The errors that only ours has, and that its report counts.
const ENDED_EARLY: &str = " has ended early: its plugin has failed";
const NOT_CLOSED: &str = ". Its data may not be whole.";

/// The text without numbers that are recent times.
fn without_times(text: &str) -> String {
    let is_recent = |run: &str| run.len() == 10 && run.parse::<u64>().is_ok_and(|number| number > RECENT);
    let mut result = String::new();
    // Runs of digits, and what is between them.
    for run in text.split_inclusive(|byte: char| !byte.is_ascii_digit()) {
        let digits = run.trim_end_matches(|byte: char| !byte.is_ascii_digit());
        result.push_str(if is_recent(digits) { "TIME" } else { digits });
        result.push_str(run.strip_prefix(digits).unwrap_or_default());
    }
    result
}

/// The messages of a job without what the stock daemon leaves to chance.
pub(crate) fn messages(job: &JobResult, name: &str) -> Vec<String> {
    let id = job.row.id;
    // Of a failed handleXACLdata the stock daemon tells what happens to be in a buffer.
    let by_chance = format!("{name}-fd JobId {id}: Warning: JobId={id} Job={}", job.row.job);
    // A message that was cut has no end of line.
    let cut = |text: String, daemon: &str| {
        text.replace(&format!("mmmm{daemon} JobId {id}: "), &format!("mmmm\n{daemon} JobId {id}: "))
    };
    let log = cut(cut(job.log.replace(&by_chance, ""), &format!("{name}-fd")), "bed-sd");
    let plain = JobResult { log, row: job.row.clone() }.plain_messages(name);
    let is_documented = |line: &String| DOCUMENTED.iter().flat_map(|(_, parts)| *parts).any(|part| line.contains(part));
    let lines = plain.iter().map(|line| without_clock(line)).map(|line| without_reason(without_address(&line)));
    lines.filter(|line| !is_documented(line)).collect()
}

/// A message about a file that the plugin could not reach, without the reason: the stock daemon
/// tells that of an earlier failure.
fn without_reason(line: String) -> String {
    let parts = ["Could not access", "Could not follow link", "Could not stat", "Could not open directory"];
    match line.split_once(": ERR=") {
        Some((head, _)) if parts.iter().any(|part| head.contains(part)) => head.to_owned(),
        _ => line,
    }
}

/// A write error without the number of the byte and block: the stock daemon tells those of the last
/// file that it wrote itself.
fn without_address(line: &str) -> String {
    match line
        .split_once(" error at byte=")
        .and_then(|(head, rest)| Some((head, rest.split_once(' ')?.1.split_once(' ')?.1)))
    {
        Some((head, rest)) => format!("{head} error at B {rest}"),
        None => line.to_owned(),
    }
}

/// The text with `JOB` for each name of a job, as `backup.2026-11-21_02.19.56_04`.
fn without_jobs(text: &str) -> String {
    let time = "0000-00-00_00.00.00_";
    let is_time = |bytes: &[u8]| {
        bytes
            .iter()
            .zip(time.bytes())
            .all(|(&byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form })
    };
    let mut rest = text.as_bytes();
    let mut result = Vec::new();
    while let Some(place) = rest.windows(time.len()).position(is_time) {
        result.extend_from_slice(&rest[..place]);
        result.extend_from_slice(b"TIME");
        let behind = &rest[place + time.len()..];
        rest = &behind[behind.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    }
    result.extend_from_slice(rest);
    String::from_utf8_lossy(&result).into_owned()
}

/// A text without numbers of processes and times.
pub(crate) fn without_clock(text: &str) -> String {
    without_times(&without_jobs(text))
}

/// A trace without names, numbers and times of the job.
pub(crate) fn plain_trace(lines: &[String], number: u32, name: &str) -> Vec<String> {
    let plain = |line: &String| {
        // JobId, the directory of the program, and the distribution that it runs on.
        let (head, value) = line.split_once(" = ").unwrap_or((line, ""));
        let variable = head.contains(" variable at ").then(|| head.rsplit(' ').next().unwrap_or_default());
        let line = match variable {
            Some("1") => line.replace(&format!("= {number}, "), "= N, "),
            Some("19") => format!("{head} = DISTRIBUTION"),
            Some("17") => format!("{head} = {}", if value.starts_with("\"/") { "EXECUTABLE" } else { value }),
            _ => line.replace(&format!("JobId={number} "), "JobId=N "),
        };
        let line = without_clock(&line.replace(&format!("{name}-"), "client-").replace(&format!("/{name}"), "/client"));
        // A file that could not be opened has no change time with ours (documented).
        if line.contains("/i.noopen\"") { line.replace(" TIME 0]", " TIME TIME]") } else { line }
    };
    lines.iter().map(plain).collect()
}

/// An `LStat` without the time of access, which changes when a file of the tree is read; in decimal
/// numbers, where chance is easier to see.
pub(crate) fn numbers(lstat: &[u8]) -> Vec<u8> {
    let Some(mut numbers) = LStat::numbers(lstat).filter(|numbers| numbers.len() == 16) else { return lstat.to_vec() };
    numbers[10] = 0;
    format!("{numbers:?}").into_bytes()
}

/// The line of a record or of the catalog. What could not be opened has no change time with ours;
/// the stock daemon's is that of its contents.
fn with_change_time(line: String) -> String {
    if !["/@tp/no-open", "/i.noopen"].iter().any(|name| line.contains(name)) {
        return line;
    }
    let Some((head, rest)) = line.split_once('[') else { return line };
    let Some((numbers, tail)) = rest.split_once(']') else { return line };
    let mut numbers: Vec<_> = numbers.split(", ").collect();
    if let [.., mtime, ctime, _, _, _] = &mut numbers[..]
        && *ctime == "0"
    {
        *ctime = mtime;
    }
    format!("{head}[{}]{tail}", numbers.join(", "))
}

/// A record's data, decompressed, without bytes that the stock daemon leaves to chance.
fn unpacked(record: &Record) -> Vec<u8> {
    let inflate = |packed: &[u8]| {
        let mut data = Vec::new();
        flate2::read::ZlibDecoder::new(packed).read_to_end(&mut data).unwrap();
        data
    };
    let without = |filler: usize| &record.data[..record.data.len().saturating_sub(filler)];
    match record.stream & 0x7ff {
        // An address stands before each block of a sparse file and of one with offsets.
        4 | 7 => {
            let has_address = record.stream & (1 << 26) != 0 || record.stream & 0x7ff == 7;
            let (address, packed) = record.data.split_at(if has_address { 8 } else { 0 });
            [address, &inflate(packed)].concat()
        }
        28 => {
            // FileIndex, type, index, stored length, length, compression, command; then the name.
            let mut parts = without(1).splitn(3, |&byte| byte == 0);
            let (head, name, stored) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let mut words: Vec<_> = head.splitn(7, |&byte| byte == b' ').collect();
            if words[5] != b"1" {
                return without(1).to_vec();
            }
            words[3] = b"packed";
            [words.join(&b' '), name.to_vec(), inflate(stored)].join(&0)
        }
        35 | 36 => without(8).to_vec(),
        _ => record.data.clone(),
    }
}

/// A job's records, each a line.
pub(crate) fn records(records: Result<Records>) -> Result<Vec<String>> {
    let line = |record: Record| {
        let data = unpacked(&record);
        let parts = data.split(|&byte| byte == 0);
        let has_lstat = matches!(record.stream, 1 | 37);
        let kept: Vec<_> = parts.map(|part| if has_lstat { numbers(part) } else { part.to_vec() }).collect();
        let kept = kept.join(&0);
        let shown = if kept.len() > 400 {
            format!(
                "{}… {:?}",
                kept[..100].escape_ascii(),
                openssl::hash::hash(openssl::hash::MessageDigest::md5(), &kept).unwrap()
            )
        } else {
            kept.escape_ascii().to_string()
        };
        let line = |len| format!("{} {} {len} {shown}", record.file_index, stream_name(record.stream));
        let ours = line(data.len());
        // A change time of 2001 has four digits more than none.
        if with_change_time(ours.clone()) == ours { ours } else { with_change_time(line(data.len() + 4)) }
    };
    // A job that never came to the Storage Daemon has no volume.
    match records {
        Err(_) => Ok(vec!["no records".to_owned()]),
        Ok(records) => records.map(|record| record.map(line)).collect(),
    }
}

/// What the catalog holds of a job.
pub(crate) fn catalog(catalog: &Catalog, job: u32, lstat: fn(&[u8]) -> Vec<u8>) -> Result<Vec<String>> {
    let files = catalog.files(job)?;
    let mut lines: Vec<_> = files
        .iter()
        .map(|file| {
            let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
            with_change_time(format!(
                "File {} {} {} {} {}",
                file.file_index,
                text(&file.path),
                text(&lstat(&file.lstat)),
                text(&file.digest),
                file.delta_seq
            ))
        })
        .collect();
    // Two encoders pack differently.
    let tables = [
        (
            "RestoreObject",
            "ObjectName; CASE ObjectCompression WHEN 0 THEN RestoreObject END; PluginName; \
             CASE ObjectCompression WHEN 0 THEN ObjectLength END; ObjectFullLength; ObjectIndex; ObjectType; FileIndex; \
             ObjectCompression",
        ),
        (
            "Object",
            "Path; Filename; PluginName; ObjectCategory; ObjectType; ObjectName; ObjectSource; ObjectUUID; ObjectSize; \
             ObjectStatus; ObjectCount",
        ),
        (
            "FileEvents",
            "CASE WHEN SourceJobId = JobId THEN 'same' ELSE 'other' END; FileIndex; Type; Description; Severity; Source",
        ),
        ("MetaEmail", "EmailTenant; EmailOwner; EmailSubject; FileIndex"),
    ];
    for (table, columns) in tables {
        let also = if table == "FileEvents" { format!("SourceJobId = {job}") } else { "0".to_owned() };
        let columns: Vec<_> = columns.split("; ").collect();
        let rows = catalog.rows(&columns, &format!("FROM {table} WHERE JobId = {job} OR {also} ORDER BY rowid"))?;
        for row in rows {
            let cells: Vec<_> = row.iter().map(|cell| cell.escape_ascii().to_string()).collect();
            lines.push(format!("{table} {}", cells.join(" | ")));
        }
    }
    Ok(lines)
}

/// The counts of the Director's report. Of a job that failed it depends on chance what the Storage
/// Daemon had written, and whether its last words are heard.
pub(crate) fn report(job: &JobResult) -> Vec<String> {
    let report = job.report();
    let by_chance =
        ["SD Files Written", "Software Compression", "Non-fatal FD errors", "FD Files Written", "FD Bytes Written"];
    // Two encoders pack differently.
    let of_packing = ["Software Compression", "FD Bytes Written"];
    let is_packed = job.row.job.contains("packed") || job.row.job.contains("verified");
    let is_told = |key: &&str| {
        *key != "FileSet"
            && (job.row.status == 'T' || !by_chance.contains(key))
            && !(is_packed && of_packing.contains(key))
    };
    let told = |key: &str| {
        let told = report.get(key).and_then(|value| value.split(", since=").next()).unwrap_or("-").to_owned();
        match (key, told.parse::<usize>()) {
            ("Non-fatal FD errors", Ok(errors)) => {
                let only_ours = [ENDED_EARLY, NOT_CLOSED].map(|text| job.log.matches(text).count());
                (errors - only_ours.iter().sum::<usize>()).to_string()
            }
            _ => told,
        }
    };
    let counts = COUNTS_OF_A_REPORT.iter().copied().filter(is_told);
    counts.map(|key| format!("{key}: {}", told(key))).collect()
}

/// What a restore's report says of the File Daemon.
pub(crate) fn report_of_restore(job: &JobResult) -> Vec<String> {
    let report = job.report();
    let keys =
        ["Files Expected", "Files Restored", "Bytes Restored", "FD Errors", "FD termination status", "Termination"];
    keys.map(|key| format!("{key}: {}", report.get(key).map_or("-", String::as_str))).to_vec()
}

/// What a verify's report says.
pub(crate) fn report_of_verify(job: &JobResult) -> Vec<String> {
    let report = job.report();
    let keys = ["Expected Files", "Files Examined", "Files Expected", "FD termination status", "Termination"];
    keys.map(|key| format!("{key}: {}", report.get(key).map_or("-", String::as_str))).to_vec()
}

/// What lies below a folder: everything but the times of what has no time of its own.
pub(crate) fn tree(place: &Path) -> Vec<String> {
    let mut lines: Vec<_> = walkdir::WalkDir::new(place)
        .into_iter()
        .filter_map(std::result::Result::ok)
        .map(|entry| {
            let facts = entry.metadata().unwrap();
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            let content = if facts.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            let sum = openssl::hash::hash(openssl::hash::MessageDigest::md5(), &content).unwrap();
            let time =
                if facts.mtime() > RECENT.try_into().unwrap() { "now".to_owned() } else { facts.mtime().to_string() };
            format!(
                "{} {:o} {}:{} {} {time} {} {sum:x?}",
                entry.path().strip_prefix(place).unwrap().display(),
                facts.mode(),
                facts.uid(),
                facts.gid(),
                if facts.is_dir() { 0 } else { facts.size() },
                target.display(),
            )
        })
        .collect();
    lines.sort();
    lines
}
