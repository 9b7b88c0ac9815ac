//! What a job left, in lines that are the same on each machine: records, rows of the catalog,
//! messages, the report's counts.
//!
//! What is the file system's own, as inode numbers and blocks, is compared with the disk; the
//! record of the stock daemon has the outcome.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bed::{Attributes, Bed, COUNTS_OF_A_REPORT, JobResult, LStat, Record, Result, Session, stream_name, unescaped};
use openssl::hash::{MessageDigest, hash};
use walkdir::WalkDir;

use crate::row::Row;
use crate::unpack::{COMPRESSED, DATA, FRONT, unpack};

/// `UNIX_ATTRIBUTES` once more, of a file whose attributes alone have changed.
const UPDATE: i32 = 37;
/// Of a file that an accurate job no longer finds.
const GONE: &str = " UATTR 23 ";
/// Longer data are shown by their digest.
const SHOWN: usize = 100;
/// The numbers of `LStat` that the disk has, and which of them are times (reference 04 §6.3).
const OF_THE_DISK: [&str; 13] =
    ["dev", "inode", "mode", "links", "owner", "group", "rdev", "size", "blksize", "blocks", "atime", "mtime", "ctime"];
const FIRST_TIME: usize = 10;

/// All records of a client's volumes by session, their content unpacked.
pub(crate) type Sessions = HashMap<Session, Vec<Record>>;

/// Reads a client's volumes once. What cannot be unpacked stays as it is, and so differs from what
/// can.
pub(crate) fn sessions(bed: &Bed, client: &str) -> Result<Sessions> {
    let mut sessions = bed.sessions(client)?;
    for record in sessions.values_mut().flatten() {
        if let Ok(unpacked) = unpack(record.clone()) {
            *record = unpacked;
        }
    }
    Ok(sessions)
}

/// What the disk says of the files of a tree, at the end of each phase: by device and inode.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    phases: Vec<HashMap<(i64, i64), [i64; 13]>>,
    /// The times of what is gone may be those of any phase.
    times: HashSet<(PathBuf, i64, i64)>,
}

impl Disk {
    /// Looks at all of them once more.
    pub(crate) fn look(&mut self, source: &Path) {
        let mut found = HashMap::new();
        for entry in WalkDir::new(source) {
            let entry = entry.unwrap();
            let status = entry.metadata().unwrap();
            let numbers = LStat::of(&status);
            found.insert((numbers[0], numbers[1]), numbers);
            self.times.insert((entry.into_path(), status.mtime(), status.ctime()));
        }
        self.phases.push(found);
    }

    /// An `LStat` in words: what is not as on the disk, and the numbers that are the daemon's. What
    /// is gone has times only, if the disk had them.
    fn lstat(&self, path: &[u8], text: &[u8], has_times: bool) -> String {
        let Some(numbers) = LStat::numbers(text).filter(|numbers| numbers.len() == OF_THE_DISK.len() + 3) else {
            return text.escape_ascii().to_string();
        };
        let (of_the_disk, of_the_daemon) = numbers.split_at(OF_THE_DISK.len());
        let differing = |disk: &[i64; 13]| {
            let fields = OF_THE_DISK.iter().zip(of_the_disk).zip(disk).enumerate();
            let differing = fields.filter(|(at, ((_, told), disk))| told != disk && (has_times || *at < FIRST_TIME));
            differing.map(|(_, ((name, told), _))| format!("{name} {told}")).collect::<Vec<_>>()
        };
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        let is_gone = of_the_disk[..=FIRST_TIME].iter().all(|&number| number == 0)
            && self.times.contains(&(path.to_owned(), of_the_disk[FIRST_TIME + 1], of_the_disk[FIRST_TIME + 2]));
        let file = (of_the_disk[0], of_the_disk[1]);
        // What was left as it was is told of as it was last seen.
        let seen = self.phases.iter().rev().filter_map(|phase| phase.get(&file)).map(differing);
        let told = match seen.min_by_key(Vec::len) {
            None if is_gone => "gone, its times".to_owned(),
            None => format!("{of_the_disk:?}"),
            Some(differing) if differing.is_empty() => "as on the disk".to_owned(),
            Some(differing) => differing.join(", "),
        };
        format!("{told} {of_the_daemon:?}")
    }
}

/// Lines, each list with what they are about.
pub(crate) type Parts = [(&'static str, Vec<String>); 4];

/// What is needed to tell of a row's jobs.
pub(crate) struct Teller<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) disk: &'a Disk,
    pub(crate) row: &'a Row,
    pub(crate) client: &'a str,
    pub(crate) sessions: &'a Sessions,
}

impl Teller<'_> {
    /// Everything about a job, in parts; and how many records it has.
    pub(crate) fn told(&self, job: &JobResult) -> Result<(usize, Parts)> {
        let mut records = self.sessions.get(&job.row.session).cloned().unwrap_or_default();
        let count = records.len();
        let mut counts = counts(self.row, job);
        if let Some(stream) = self.row.beyond {
            counts.extend(as_stock(&mut records, stream));
        }
        let (names, records) = self.records(&records);
        let parts = [
            ("record", records),
            ("catalog", self.catalog(job, &names)?),
            ("message", self.messages(job)),
            ("count", counts),
        ];
        Ok((count, parts.map(|(what, lines)| (what, lines.iter().map(|line| self.plain(line)).collect()))))
    }

    /// A line with `@` for the row's tree, and `BED` for the bed's folder.
    fn plain(&self, line: &str) -> String {
        plain(self.bed, self.row, line)
    }

    /// The records, each a line, and the names of their files. A `FileIndex` is told if it is not
    /// the next one.
    fn records(&self, records: &[Record]) -> (HashMap<i64, String>, Vec<String>) {
        let (mut names, mut lines, mut index) = (HashMap::new(), Vec::new(), 0);
        for Record { file_index, stream, data, .. } in records {
            let is_file = [Attributes::STREAM, UPDATE].contains(&(stream & 0x7ff));
            index += i32::from(is_file);
            if index != *file_index {
                lines.push(format!("FileIndex {file_index} in the place of {index}"));
                index = *file_index;
            }
            let stream = stream_name(*stream);
            if !is_file {
                lines.push(format!("{stream} {}", shown(data)));
                continue;
            }
            let Attributes { kind, path, lstat, .. } = Attributes::of(data);
            let name = path.escape_ascii().to_string();
            let own_index = format!("{file_index} ");
            let mut parts = data.split(|&byte| byte == 0);
            let head = parts.next().unwrap_or_default();
            let wrong = if head.starts_with(own_index.as_bytes()) { "" } else { " of another FileIndex" };
            let rest: Vec<_> = parts.skip(1).map(|part| part.escape_ascii().to_string()).collect();
            let lstat = self.disk.lstat(path, lstat, !self.row.alone);
            lines.push(format!("{stream} {kind} {name}{wrong}: {lstat} {}", rest.join("|")));
            names.insert(i64::from(*file_index), name);
        }
        // The order of what is gone is that of a table by names, among which the bed's is.
        let is_gone = |line: &String| line.contains(GONE);
        for gone in lines.chunk_by_mut(|one, other| is_gone(one) && is_gone(other)) {
            gone.sort();
        }
        (names, lines)
    }

    fn catalog(&self, job: &JobResult, names: &HashMap<i64, String>) -> Result<Vec<String>> {
        let told = |file: &bed::FileRow| {
            let [path, digest] = [&file.path, &file.digest].map(|bytes| bytes.escape_ascii().to_string());
            let place = match names.get(&file.file_index) {
                _ if file.file_index == 0 => " deleted",
                Some(name) if *name == path => "",
                _ => " of another job",
            };
            let lstat = self.disk.lstat(&file.path, &file.lstat, !self.row.alone);
            format!("{path}: {lstat} {digest} {}{place}", file.delta_seq)
        };
        // In no order: each row names its record.
        let mut lines: Vec<_> = self.bed.catalog().files(job.row.id)?.iter().map(told).collect();
        lines.sort();
        Ok(lines)
    }

    /// What was said. The listing of a FIFO that was read has the time of the job.
    fn messages(&self, job: &JobResult) -> Vec<String> {
        let lines = job.plain_messages(self.client).into_iter();
        let lines: Vec<_> = lines.filter(|line| !(self.row.alone && line.contains(" frw"))).collect();
        unescaped(&lines)
    }
}

/// A line with `@` for the row's tree, and `BED` for the bed's folder.
pub(crate) fn plain(bed: &Bed, row: &Row, line: &str) -> String {
    let folder = bed.folder();
    let tree = folder.join("source").join(row.tree.name()).display().to_string();
    let name = folder.file_name().unwrap_or_default().display().to_string();
    line.replace(&tree, "@").replace(&folder.display().to_string(), "BED").replace(&name, "BED")
}

/// Takes out a stream that the stock daemon does not have, or turns it into the plain data that it
/// sends instead, and says how often.
fn as_stock(records: &mut Vec<Record>, stream: i32) -> Option<String> {
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
    (count > 0).then(|| format!("{count} records of stream {stream}"))
}

/// The counts of the report and of the catalog.
fn counts(row: &Row, job: &JobResult) -> Vec<String> {
    let report = job.report();
    // The rate depends on the bed's name, which is in each file's; the bytes, on the encoder. The
    // Director counts its own messages about a Storage Daemon that has gone among the errors.
    let is_told = |key: &&str| {
        let depends_on_encoder = row.is_compressed() && *key == "FD Bytes Written";
        let depends_on_storage = row.status == 'f' && *key == "Non-fatal FD errors";
        *key != "Software Compression" && !depends_on_encoder && !depends_on_storage
    };
    let mut counts: Vec<_> = COUNTS_OF_A_REPORT
        .into_iter()
        .filter(is_told)
        .map(|key| {
            let value = report.get(key).map(String::as_str).unwrap_or_default();
            // The level's time is that of the job before.
            format!("{key}: {}", value.split_once(", since=").map_or(value, |(level, _)| level))
        })
        .collect();
    let of_job = &job.row;
    counts.push(format!("status {} files {} level {}", of_job.status, of_job.files, of_job.level));
    if row.status != 'f' {
        counts.push(format!("errors {}", of_job.errors));
    }
    counts.push(format!("read {}", of_job.read_bytes));
    if !row.is_compressed() {
        counts.push(format!("bytes {}", of_job.bytes));
    }
    counts
}

/// Data, or their length and digest if they are long.
fn shown(data: &[u8]) -> String {
    if data.len() <= SHOWN {
        return data.escape_ascii().to_string();
    }
    let digest = hash(MessageDigest::md5(), data).unwrap();
    format!("{} {:x}", data.len(), u128::from_be_bytes(digest.as_ref().try_into().unwrap()))
}
