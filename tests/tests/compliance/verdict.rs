//! Compares what two jobs left: records, catalog rows, messages, the report's counts.

use std::collections::HashMap;
use std::fs;

use bed::{
    Bed, COUNTS_OF_A_REPORT, JobResult, Record, RecordRules, Records, Result, Session, compare_records,
    line_differences,
};

use crate::row::Row;
use crate::unpack::{COMPRESSED, DATA, FRONT, unpack};

/// All records of a client's volumes by session, their content unpacked.
pub(crate) type Sessions = HashMap<Session, Vec<Record>>;

/// What comparing two jobs found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) files: u64,
    pub(crate) records: u64,
    /// Files that came back.
    pub(crate) restored: u64,
    pub(crate) differences: Vec<String>,
}

/// Reads a client's volumes once.
pub(crate) fn sessions(bed: &Bed, client: &str) -> Result<Sessions> {
    let folder = bed.folder().join("volumes").join(client);
    let mut volumes: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    volumes.sort();
    let mut sessions = Sessions::new();
    if volumes.is_empty() {
        return Ok(sessions);
    }
    for record in Records::new(volumes, None)? {
        let record = record?;
        // What cannot be unpacked stays as it is, and so differs from what can.
        let record = unpack(record.clone()).unwrap_or(record);
        sessions.entry(record.session).or_default().push(record);
    }
    Ok(sessions)
}

/// Compares the jobs of two clients for a row, the stock daemon's first; each with the name of its
/// client and all that its volumes hold.
pub(crate) fn compare(bed: &Bed, row: &Row, sides: [(&str, &JobResult, &Sessions); 2]) -> Result<Verdict> {
    let jobs = sides.map(|(_, job, _)| job);
    let sessions = sides.map(|(_, _, sessions)| sessions);
    let [left, mut right] = [0, 1].map(|side| sessions[side].get(&jobs[side].row.session).cloned().unwrap_or_default());
    let beyond = row.beyond.map(|stream| (stream, as_stock(&mut right, stream)));
    let [left, right] = [left, right].map(|records| records.into_iter().map(Ok));
    let comparison = if row.alone {
        compare_records(left.map(without_times), right.map(without_times), RecordRules::default())?
    } else {
        compare_records(left, right, RecordRules::default())?
    };
    let mut verdict = Verdict {
        files: jobs[0].row.files,
        records: comparison.records,
        restored: 0,
        differences: comparison.differences,
    };
    if let Some((stream, count @ 1..)) = beyond {
        verdict.differences.push(format!("{count} records of stream {stream} only of ours"));
    }
    let rows = [bed.catalog().files(jobs[0].row.id)?, bed.catalog().files(jobs[1].row.id)?];
    let told = |file: &bed::FileRow| {
        let lstat = if row.alone { masked(&file.lstat) } else { file.lstat.clone() };
        let [path, lstat, digest] = [&file.path, &lstat, &file.digest].map(|bytes| bytes.escape_ascii().to_string());
        format!("{} {path} {lstat} {digest} {}", file.file_index, file.delta_seq)
    };
    verdict.lines("catalog", rows.map(|rows| rows.iter().map(told).collect()));
    let told = |job: &JobResult, client| {
        let lines = job.plain_messages(client);
        if row.alone { lines.into_iter().filter(|line| !line.contains(" frw")).collect() } else { lines }
    };
    verdict.lines("message", [told(jobs[0], sides[0].0), unescaped(&told(jobs[1], sides[1].0))]);
    verdict.lines("count", [counts(row, jobs[0]), counts(row, jobs[1])]);
    for (job, whose) in jobs.iter().zip(["the stock daemon's", "ours"]) {
        if job.row.status != row.status {
            let (got, wanted) = (job.row.status, row.status);
            verdict.differences.push(format!("status of {whose} job: {got} instead of {wanted}\n{}", job.log));
        }
    }
    Ok(verdict)
}

/// The lines as the stock daemon has them, which does not escape names of files.
fn unescaped(lines: &[String]) -> Vec<String> {
    let unescape = |line: &String| {
        let mut pieces = line.split("\\x");
        let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
        for piece in pieces {
            match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => {
                    bytes.push(byte);
                    bytes.extend_from_slice(&piece.as_bytes()[2..]);
                }
                None => bytes.extend([b"\\x", piece.as_bytes()].concat()),
            }
        }
        String::from_utf8_lossy(&bytes).replace("\\n", "\n").replace("\\r", "\r")
    };
    lines.iter().map(unescape).collect::<Vec<_>>().join("\n").lines().map(str::to_owned).collect()
}

/// Takes out a stream that the stock daemon does not have, or turns it into the plain data that it
/// sends instead, and says how often.
fn as_stock(records: &mut Vec<Record>, stream: i32) -> usize {
    let is_beyond = |record: &Record| record.stream == stream;
    let count = records.iter().filter(|record| is_beyond(record)).count();
    if stream == COMPRESSED {
        for record in records.iter_mut().filter(|record| is_beyond(record)) {
            record.stream = DATA;
            record.data.drain(..FRONT);
        }
    } else {
        records.retain(|record| !is_beyond(record));
    }
    count
}

/// `LStat` without modification and change time: writing into a FIFO sets them.
fn masked(lstat: &[u8]) -> Vec<u8> {
    let fields = lstat.split(|&byte| byte == b' ').enumerate();
    let fields: Vec<_> = fields.map(|(at, field)| if at == 11 || at == 12 { b"-" } else { field }).collect();
    fields.join(&b' ')
}

/// A record without those times.
fn without_times(record: Result<Record>) -> Result<Record> {
    let mut record = record?;
    if record.stream == 1 {
        let fields = record.data.split(|&byte| byte == 0).enumerate();
        let fields: Vec<_> = fields.map(|(at, field)| if at == 1 { masked(field) } else { field.to_vec() }).collect();
        record.data = fields.join(&0);
    }
    Ok(record)
}

impl Verdict {
    /// Notes the lines that only one side has, or both in another order.
    fn lines(&mut self, what: &str, [left, right]: [Vec<String>; 2]) {
        self.differences.extend(line_differences(what, &left, &right));
    }
}

/// The counts of the report and of the catalog.
fn counts(row: &Row, job: &JobResult) -> Vec<String> {
    let report = job.report();
    let depends_on_encoder =
        |key: &str| row.is_compressed() && ["FD Bytes Written", "Software Compression"].contains(&key);
    // The Director counts its own message about the Storage Daemon among them.
    let depends_on_chance = |key: &str| row.status == 'f' && key == "Non-fatal FD errors";
    let mut counts: Vec<_> = COUNTS_OF_A_REPORT
        .into_iter()
        .filter(|key| !depends_on_encoder(key) && !depends_on_chance(key))
        .map(|key| {
            let value = report.get(key).map(String::as_str).unwrap_or_default();
            // The level's time is that of the job before.
            format!("{key}: {}", value.split_once(", since=").map_or(value, |(level, _)| level))
        })
        .collect();
    let row_of_job = &job.row;
    counts.push(format!("files {}", row_of_job.files));
    if row.status != 'f' {
        counts.push(format!("errors {}", row_of_job.errors));
    }
    counts.push(format!("level {} read {}", row_of_job.level, row_of_job.read_bytes));
    if !row.is_compressed() {
        counts.push(format!("bytes {}", row_of_job.bytes));
    }
    counts
}
