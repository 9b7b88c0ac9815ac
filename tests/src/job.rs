//! What is known about a job after it has ended: its row, its log, the Director's report.

use std::collections::BTreeMap;

use crate::catalog::JobRow;
use crate::error::{BedError, Result};

/// Messages of Verify jobs that depend on where a record happens to stand, on numbers and on times.
pub const CHANCES_OF_A_CHECK: [&str; 6] = [
    "dir: Verifying against JobId",
    "dir: Start Verify JobId",
    "sd: Ready to read from volume",
    "sd: Forward spacing Volume",
    "sd: End of Volume",
    "sd: End of all volumes",
];

/// Lines of a report that name the job, the client or times.
pub const NAMES_AND_TIMES: [&str; 10] = [
    "Build OS",
    "JobId",
    "Job",
    "Client",
    "Verify JobId",
    "Verify Job",
    "Start time",
    "End time",
    "Elapsed time",
    "FileSet",
];

/// A finished job.
#[derive(Debug, Clone)]
pub struct JobResult {
    /// The catalog's row.
    pub row: JobRow,
    /// Everything said about it.
    pub log: String,
}

impl JobResult {
    /// Fails, with the whole log, unless the job ended well and without errors or warnings.
    pub fn must_be_good(self) -> Result<Self> {
        if self.row.status == 'T' && self.row.errors == 0 { Ok(self) } else { Err(self.problem("is not good")) }
    }

    /// Fails, with the whole log, unless the job ended in the given state.
    pub fn must_be(self, status: char) -> Result<Self> {
        if self.row.status == status { Ok(self) } else { Err(self.problem(&format!("expected status {status}"))) }
    }

    /// The lines `  Key:   value` of the Director's report at the end of the log.
    pub fn report(&self) -> BTreeMap<String, String> {
        self.log
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect()
    }

    /// The log's lines from the given daemon, without its name and the job's number: `Error: …`,
    /// `Connected to …`.
    pub fn messages_of(&self, daemon: &str) -> Vec<String> {
        let head = format!("{daemon} JobId {}: ", self.row.id);
        let of_daemon = |line: &str| line.split_once(&head).map(|(_, text)| text.to_owned());
        self.log.lines().filter_map(of_daemon).collect()
    }

    /// The job's messages without times, names and numbers of the job, to be compared with those of
    /// the same job of another client; the report is left out.
    pub fn plain_messages(&self, client: &str) -> Vec<String> {
        let text = self.log.split("bed-dir 15.0.3").next().unwrap_or_default();
        let number = format!(" JobId {}: ", self.row.id);
        let whose = [
            (format!("{client}-fd{number}"), "fd: "),
            (format!("bed-dir{number}"), "dir: "),
            (format!("bed-sd{number}"), "sd: "),
        ];
        let plain = |line: &str| {
            let told =
                whose.iter().find_map(|(head, short)| line.split_once(head).map(|(_, rest)| format!("{short}{rest}")));
            told.unwrap_or_else(|| line.to_owned())
                .replace(&format!("{client}-"), "client-")
                .replace(&format!("-{client}"), "-client")
        };
        leave_out(text.lines().map(plain), &DEPENDS_ON_CHANCE)
    }

    fn problem(&self, problem: &str) -> BedError {
        BedError::Usage(format!("job {}: {problem}; status {}, log:\n{}", self.row.job, self.row.status, self.log))
    }
}

/// The lines without those that contain one of `parts`, and without the blank lines that such a
/// message may end in.
pub fn leave_out(lines: impl IntoIterator<Item = String>, parts: &[&str]) -> Vec<String> {
    let mut is_out = false;
    let mut stays = |line: &String| {
        is_out = parts.iter().any(|part| line.contains(part)) || is_out && line.is_empty();
        !is_out
    };
    lines.into_iter().filter(|line| stays(line)).collect()
}

/// Messages of the Director and the Storage Daemon with the volume of a job, or its duration.
const DEPENDS_ON_CHANCE: [&str; 18] = [
    // Of a job that failed early: whether Director or Storage Daemon hangs up first.
    "dir: Error: Director's connection to SD for this Job was lost.",
    "dir: Start Backup JobId",
    "dir: Connected to ",
    "dir: Created new Volume",
    "dir: Using Device",
    "dir: Using BaseJobId",
    "dir: Max configured use",
    "sd: Elapsed time=",
    "sd: Labeled new Volume",
    "sd: Wrote label to ",
    "sd: Volume \"",
    "sd: Ready to append",
    "sd: New volume",
    "sd: Sending spooled attrs",
    "sd: Recycled volume",
    // Of a volume that other jobs write, too, whose end the catalog does not know yet.
    "sd: Warning: For Volume \"",
    "The sizes do not match! Metadata Volume=",
    "   Correcting Catalog",
];

/// Which part of the report must be the same when two File Daemons saved the same tree. Not in it:
/// names, numbers and times of the job itself, and the ratio of the line compression, which depends
/// on the skill of the LZ4 encoder.
pub const COUNTS_OF_A_REPORT: [&str; 12] = [
    "Backup Level",
    "FileSet",
    "FD Files Written",
    "SD Files Written",
    "FD Bytes Written",
    "Software Compression",
    "Snapshot/VSS",
    "Encryption",
    "Accurate",
    "Non-fatal FD errors",
    "FD termination status",
    "Termination",
];
