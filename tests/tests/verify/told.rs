//! What a Verify job reported: its messages, the Director's report, and what the catalog has of the
//! job, in lines that are the same on each machine.

use std::path::PathBuf;

use bed::{COUNTS_OF_A_VERIFY, FileRow, JobResult, LStat};

use crate::row::{Phase, Row};

/// What the catalog keeps of a file. Inodes, blocks and the sizes of directories belong to the file
/// system; that they are those of the disk, the suite of compliance shows.
pub(crate) fn kept(file: &FileRow) -> String {
    let [path, digest] = [&file.path, &file.digest].map(|bytes| bytes.escape_ascii().to_string());
    let numbers = LStat::numbers(&file.lstat).unwrap_or_default();
    let of_the_disk = if path.ends_with('/') { &[0, 1, 3, 7, 8, 9, 12][..] } else { &[0, 1, 8, 9, 12] };
    let rest = numbers.iter().enumerate().filter(|(field, _)| !of_the_disk.contains(field)).map(|(_, number)| number);
    format!("{path}: kept {:?} {digest}", rest.collect::<Vec<_>>())
}

/// The files that were not looked at in the order in which a walk meets them: directories at their
/// begin and at their end.
pub(crate) fn out_of_order(lines: &[String], met: &[PathBuf]) -> Vec<String> {
    let met: Vec<_> = met.iter().map(|path| path.display().to_string()).collect();
    let mut at = 0;
    let mut told = Vec::new();
    for name in lines.iter().filter_map(|line| line.strip_prefix("fd: Veryfying: ")) {
        match met.iter().skip(at).position(|met| met.ends_with(name.trim_end_matches('/'))) {
            Some(next) => at += next + 1,
            None => told.push(format!("not in the order of the walk: {name}")),
        }
    }
    told
}

/// The lines in the order of the files that they are about; what is said about a file stays
/// together.
pub(crate) fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut file = String::new();
    let told = |line: String| {
        if let Some(name) = line.strip_prefix("dir: File: ") {
            name.clone_into(&mut file);
        }
        if line.starts_with("dir:       ") && !line.contains('@') { format!("{file}: {line}") } else { line }
    };
    let mut lines: Vec<_> = lines.map(told).collect();
    let key = |line: &str| line.split_once('@').map(|(_, name)| name.to_owned());
    lines.sort_by_cached_key(|line| (key(line), line.clone()));
    lines
}

/// Everything that is compared.
///
/// How long a compressed record is depends on the encoder that made it. A Verify that ends at the
/// first record that can't be unpacked closes the connection to the Storage Daemon: whether that
/// was still sending is chance.
pub(crate) fn told(job: &JobResult, client: &str, row: &Row, phase: Phase) -> Vec<String> {
    let mut lines = job.plain_messages(client);
    let is_broken_off = phase == Phase::Damaged && row.damage.ends_the_job();
    // How far the Storage Daemon was, and whether its error is counted, is chance then.
    let is_sure = |key: &&&str| !(is_broken_off && (key.starts_with("SD ") || **key == "Non-fatal FD errors"));
    let report = job.report();
    let counts = COUNTS_OF_A_VERIFY.iter().filter(is_sure).filter_map(|key| Some((key, report.get(*key)?)));
    lines.extend(counts.map(|(key, value)| format!("report {key}: {value}")));
    let of_job = &job.row;
    lines.push(format!("status {}", of_job.status));
    lines.push(format!("files {} bytes {}", of_job.files, of_job.bytes));
    if !is_broken_off {
        lines.push(format!("errors {}", of_job.errors));
    }
    if row.is_compressed() {
        let without_lengths = |line: &str| line.split_once(" comp_len=").map(|(head, _)| head.to_owned());
        for line in &mut lines {
            *line = without_lengths(line).unwrap_or_else(|| line.clone());
        }
    } else {
        lines.push(format!("read {}", of_job.read_bytes));
    }
    lines
}
