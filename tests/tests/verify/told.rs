//! What a Verify job reported: its messages, the Director's report, and what the catalog has of the
//! job.

use bed::{CHANCES_OF_A_CHECK, FileRow, JobResult, NAMES_AND_TIMES, leave_out};

use crate::row::{Phase, Row};

/// What depends on how far the Storage Daemon was when its connection closed.
const OF_A_BROKEN_SESSION: [&str; 4] = ["sd: ", "report SD ", "report Non-fatal FD errors", "errors "];

/// What the catalog keeps of a file.
pub(crate) fn kept(file: &FileRow) -> String {
    let [path, lstat, digest] = [&file.path, &file.lstat, &file.digest].map(|bytes| bytes.escape_ascii().to_string());
    format!("kept {} {path} {lstat} {digest}", file.file_index)
}

/// Everything that should be the same for the two jobs.
///
/// How long a compressed record is depends on the encoder that made it. A Verify that ends at the
/// first record that can't be unpacked closes the connection to the Storage Daemon: whether that
/// was still sending is chance.
pub(crate) fn told(job: &JobResult, client: &str, row: &Row, phase: Phase) -> Vec<String> {
    let mut lines = leave_out(job.plain_messages(client), &CHANCES_OF_A_CHECK);
    let report = job.report();
    let counts = report.iter().filter(|(key, _)| !NAMES_AND_TIMES.contains(&key.as_str()));
    lines.extend(counts.map(|(key, value)| format!("report {key}: {value}")));
    let of_job = &job.row;
    lines.push(format!("status {}", of_job.status));
    lines.push(format!("errors {}", of_job.errors));
    lines.push(format!("files {} bytes {}", of_job.files, of_job.bytes));
    if phase == Phase::Damaged && row.damage.ends_the_job() {
        lines.retain(|line| !OF_A_BROKEN_SESSION.iter().any(|part| line.starts_with(part)));
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
