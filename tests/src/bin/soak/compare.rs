//! What two jobs of one lane must have in common.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use bed::{
    Bed, BedError, COUNTS_OF_A_REPORT, COUNTS_OF_A_VERIFY, FileRow, JobResult, Record, RecordRules, Result, Session,
    TreeRules, compare_records, compare_trees, line_differences, set_fixed_times,
};
use openssl::pkey::{PKey, Private};

use crate::plan::{Lane, Pair};
use crate::{sealed, unpack};

/// All records of a client's volumes by session.
pub(crate) type Sessions = HashMap<Session, Vec<Record>>;

/// `UNIX_ATTRIBUTES`, and a file's plain data.
const ATTRIBUTES: i32 = 1;
const DATA: i32 = 2;
/// A plugin's restore object.
const OBJECT: i32 = 28;
/// Where `LStat` has its times (reference 04 §6.3).
const TIMES: std::ops::RangeInclusive<usize> = 10..=12;

/// How far the clocks of Director and File Daemon are apart is measured anew by each job.
const CLOCKS: &str = "DIR and FD clocks differ by ";

/// The key of the clients that encrypt.
pub(crate) struct Key {
    pub(crate) id: Vec<u8>,
    pub(crate) key: PKey<Private>,
}

/// Two backups of a lane: the stock daemon's, and ours. Gives the records compared, too.
pub(crate) fn backups(
    bed: &Bed,
    lane: &Lane,
    jobs: &[JobResult; 2],
    volumes: [&Sessions; 2],
    key: &Key,
) -> Result<(u64, Vec<String>)> {
    let [stock, ours] = jobs;
    let records = |side: usize| {
        let row = if side == 0 { &stock.row } else { &ours.row };
        volumes.get(side).and_then(|volume| volume.get(&row.session)).cloned().unwrap_or_default()
    };
    let mut differences = statuses(jobs, 'T');
    let mut count = 0;
    if lane.pair == Pair::Sealed {
        let open = |records: Vec<Record>| sealed::open(records.into_iter().map(Ok), &key.id, &key.key);
        let (left, right) = (open(records(0)), open(records(1)));
        count = left.0.len() as u64;
        if left.0.len() != right.0.len() {
            differences.push(format!("volume: {} and {} items", left.0.len(), right.0.len()));
        }
        let differ = left.0.iter().zip(&right.0).find(|(left, right)| left != right);
        differences.extend(differ.map(|pair| format!("volume: {:.4000}", format!("{pair:?}"))));
    } else {
        let (left, right) = (plain(lane, records(0)), plain(lane, records(1)));
        let found = compare_records(left.into_iter().map(Ok), right.into_iter().map(Ok), RecordRules::default())?;
        count += found.records;
        differences.extend(found.differences.into_iter().map(|text| format!("volume: {text}")));
    }
    let rows = [bed.catalog().files(stock.row.id)?, bed.catalog().files(ours.row.id)?];
    let told = |row: &FileRow| {
        let lstat = if is_of_a_program(lane, &row.path) { without_times(&row.lstat) } else { row.lstat.clone() };
        let [path, lstat, digest] = [&row.path, &lstat, &row.digest].map(|bytes| bytes.escape_ascii().to_string());
        format!("{} {path} {lstat} {digest} {}", row.file_index, row.delta_seq)
    };
    let [left, right] = rows.map(|rows| rows.iter().map(told).collect::<Vec<_>>());
    // ZSTD is another stream, which LStat names.
    if !lane.zstd {
        differences.extend(line_differences("catalog", &left, &right));
    } else if left.len() != right.len() {
        differences.push(format!("catalog: {} and {} rows", left.len(), right.len()));
    }
    let clients = lane.pair.clients();
    let [left, right] = [0, 1].map(|side| messages(lane, side, jobs, clients));
    differences.extend(line_differences("message", &left, &right));
    differences.extend(line_differences("count", &counts(lane, stock), &counts(lane, ours)));
    Ok((count, differences))
}

/// The jobs' states, if not both are the wanted one.
pub(crate) fn statuses(jobs: &[JobResult; 2], wanted: char) -> Vec<String> {
    let is_wrong = jobs.iter().any(|job| job.row.status != wanted);
    let told = |job: &JobResult| format!("job {} ended with {}:\n{}", job.row.id, job.row.status, job.log);
    if is_wrong { jobs.iter().map(told).collect() } else { Vec::new() }
}

/// The records in a form that does not depend on encoders and programs.
fn plain(lane: &Lane, records: Vec<Record>) -> Vec<Record> {
    let mut kept: Vec<Record> = Vec::new();
    let mut of_a_program = false;
    for record in records {
        // What cannot be unpacked stays as it is, and so differs from what can.
        let mut record = unpack::unpack(record.clone()).unwrap_or(record);
        if record.stream == ATTRIBUTES {
            of_a_program = lane.bpipe && record.data.windows(5).any(|part| part == b"/few/");
            let fields = record.data.split(|&byte| byte == 0).enumerate();
            let mask = |(at, field): (usize, &[u8])| match at {
                1 if of_a_program => without_times(field),
                1 if lane.zstd => without_stream(field),
                _ => field.to_vec(),
            };
            record.data = fields.map(mask).collect::<Vec<_>>().join(&0);
        }
        if record.stream == OBJECT {
            // The stock daemon leaves the byte behind an object to chance.
            record.data.pop();
        }
        if lane.zstd && matches!(record.stream, unpack::COMPRESSED | 30) {
            let (stream, front) = if record.stream == 30 { (6, 8) } else { (DATA, 0) };
            record.stream = stream;
            record.data.drain(front..(front + unpack::FRONT).min(record.data.len()));
        }
        // The stock daemon's blocks are as long as what its reads happen to find.
        match kept.last_mut() {
            Some(last) if of_a_program && last.stream == record.stream && is_data(record.stream) => {
                last.data.append(&mut record.data);
            }
            _ => kept.push(record),
        }
    }
    kept
}

fn is_data(stream: i32) -> bool {
    matches!(stream, DATA | 4 | 29)
}

fn is_of_a_program(lane: &Lane, path: &[u8]) -> bool {
    lane.bpipe && path.starts_with(b"/few/")
}

/// `LStat` without its times.
fn without_times(lstat: &[u8]) -> Vec<u8> {
    let fields = lstat.split(|&byte| byte == b' ').enumerate();
    fields.map(|(at, field)| if TIMES.contains(&at) { b"-" } else { field }).collect::<Vec<_>>().join(&b' ')
}

/// `LStat` without the number of the data stream, its last.
fn without_stream(lstat: &[u8]) -> Vec<u8> {
    lstat.rsplitn(2, |&byte| byte == b' ').last().unwrap_or(lstat).to_vec()
}

/// A name or a line as messages of ours have it: without what orders a terminal about.
pub(crate) fn shown(name: &[u8]) -> String {
    let mut text = Vec::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            let bytes = character.to_string().into_bytes();
            let is_escaped = character.is_control() && character != '\t';
            text.extend(if is_escaped { bytes.escape_ascii().collect() } else { bytes });
        }
        for byte in chunk.invalid() {
            let is_escaped = matches!(byte, 0x80..=0x9F);
            text.extend(if is_escaped { byte.escape_ascii().collect() } else { vec![*byte] });
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Messages with line ends as ours name files: the stock daemon's go on in the next line.
fn whole(lines: Vec<String>) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    for line in lines {
        let begins = ["fd: ", "dir: ", "sd: "].iter().any(|head| line.starts_with(head));
        match whole.last_mut().filter(|_| !begins) {
            Some(last) => last.extend(["\\n", &shown(line.as_bytes())]),
            None => whole.push(shown(line.as_bytes())),
        }
    }
    whole
}

fn messages(lane: &Lane, side: usize, jobs: &[JobResult; 2], clients: [&str; 2]) -> Vec<String> {
    let (Some(job), Some(client)) = (jobs.get(side), clients.get(side)) else { return Vec::new() };
    let lines = whole(job.plain_messages(client));
    let is_told = |line: &String| {
        !(line.contains(CLOCKS)
            || lane.bpipe && line.contains(" /few/")
            || lane.zstd && (line.contains("ZSTD") || line.contains("Zstd") || line.contains("zstd")))
    };
    lines.into_iter().filter(is_told).collect()
}

/// The counts of the report and of the catalog.
fn counts(lane: &Lane, job: &JobResult) -> Vec<String> {
    let report = job.report();
    let depends_on_encoder = |key: &str| lane.packed && ["FD Bytes Written", "Software Compression"].contains(&key);
    let counts = COUNTS_OF_A_REPORT.into_iter().filter(|key| !depends_on_encoder(key)).map(|key| {
        let value = report.get(key).map(String::as_str).unwrap_or_default();
        // The level's time is that of the job before.
        format!("{key}: {}", value.split_once(", since=").map_or(value, |(level, _)| level))
    });
    let row = &job.row;
    let own = [format!("files {}", row.files), format!("errors {} level {}", row.errors, row.level)];
    let mut counts: Vec<_> = counts.chain(own).collect();
    if !lane.packed {
        counts.extend([format!("bytes {}", row.bytes), format!("read {}", row.read_bytes)]);
    }
    counts
}

/// Two Verify jobs.
pub(crate) fn checks(lane: &Lane, jobs: &[JobResult; 2]) -> Vec<String> {
    let clients = lane.pair.clients();
    let told = |side: usize| {
        let (Some(job), Some(client)) = (jobs.get(side), clients.get(side)) else { return Vec::new() };
        let mut lines = whole(job.plain_messages(client));
        let report = job.report();
        let kept = COUNTS_OF_A_VERIFY.iter().filter_map(|key| Some((key, report.get(*key)?)));
        lines.extend(kept.map(|(key, value)| format!("report {key}: {value}")));
        lines.push(format!("status {} errors {} files {}", job.row.status, job.row.errors, job.row.files));
        lines
    };
    line_differences("check", &told(0), &told(1))
}

/// Two restores whose jobs and trees must be the same; how many trees were compared is one.
pub(crate) fn restores(jobs: &[JobResult; 2], places: [&Path; 2], begin: i64) -> Result<Vec<String>> {
    let [stock, ours] = jobs;
    let count = |job: &JobResult| (job.row.status, job.row.files, job.row.bytes, job.row.errors);
    let mut differences = Vec::new();
    if count(stock) != count(ours) {
        let [left, right] = [stock, ours].map(|job| format!("{:?}\n{}", count(job), job.log));
        differences.push(format!("restores: {left}\n{right}"));
    }
    let [left, right] = places;
    cover_ancestors(right)?;
    for place in places {
        // What the writer of `bpipe` has made has no other time.
        let made = place.join("from-bpipe");
        if made.exists() {
            set_fixed_times(&made)?;
        }
    }
    cover(&right.join("from-bpipe"), 0o666, 0o644)?;
    settle(left, right, begin)?;
    let trees = compare_trees(left, right, TreeRules::restored())?;
    differences.extend(trees.into_iter().map(|text| format!("restored: {text}")));
    Ok(differences)
}

/// While another job sets attributes, the stock daemon's umask is cleared, and what has no record
/// may be open to all (docs/differences.md): what the writer of `bpipe` has made, and the
/// directories above the tree.
fn cover(path: &Path, open: u32, covered: u32) -> Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.mode() & 0o7777 == open) {
        let private = fs::Permissions::from_mode(covered);
        fs::set_permissions(path, private).map_err(BedError::file("change mode of", path))?;
    }
    Ok(())
}

/// See [`cover`].
fn cover_ancestors(stock: &Path) -> Result<()> {
    let mut folder = stock.to_owned();
    while folder.file_name().is_some_and(|name| name != "tree") {
        cover(&folder, 0o777, 0o755)?;
        let entries = fs::read_dir(&folder).map_err(BedError::file("read", &folder))?;
        let inside = entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.is_dir());
        let Some(inside) = inside else { break };
        folder = inside;
    }
    Ok(())
}

/// Gives fixed times to the directories that have the time of the restore when the stock daemon has
/// restored them. If only ours left that time on a directory, it still is a difference.
fn settle(ours: &Path, stock: &Path, begin: i64) -> Result<()> {
    for entry in fs::read_dir(ours).map_err(BedError::file("read", ours))? {
        let entry = entry.map_err(BedError::file("read", ours))?;
        let other = stock.join(entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && fs::symlink_metadata(&other).is_ok_and(|facts| facts.is_dir()) {
            settle(&entry.path(), &other, begin)?;
        }
    }
    if fs::metadata(stock).map_err(BedError::file("examine", stock))?.mtime() >= begin {
        set_fixed_times(ours)?;
        set_fixed_times(stock)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_line_end_is_the_same_in_messages_of_both() {
        let name = "fd: /a/new\nline\t\u{1b} \u{e4}";
        let stock = name.split('\n').map(ToOwned::to_owned).chain(["fd: next".to_owned()]).collect();
        assert_eq!(whole(stock), [shown(name.as_bytes()), "fd: next".to_owned()]);
        assert_eq!(shown(b"new\nline\t\x1b \xc3\xa4 \x80\xff"), "new\\nline\t\\x1b \u{e4} \\x80\u{fffd}");
    }
}
