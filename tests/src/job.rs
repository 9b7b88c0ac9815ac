//! What is known about a job after it has ended: its row, its log, the Director's report.

use std::collections::BTreeMap;

use crate::catalog::JobRow;
use crate::error::{BedError, Result};

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

    /// The job's messages of the File Daemon, and those of the Director about it: errors, and what
    /// a Verify job has found. Without times, names and numbers of the job, to be compared with
    /// those of the same job of another client. What else the Director says, and what the Storage
    /// Daemon says, is about the volume, which other jobs write, too, and about how soon it notices
    /// that a connection has ended. The report is left out.
    pub fn plain_messages(&self, client: &str) -> Vec<String> {
        let number = format!(" JobId {}: ", self.row.id);
        let whose = [
            (format!("{client}-fd{number}"), "fd: "),
            (format!("bed-dir{number}"), "dir: "),
            (format!("bed-sd{number}"), "sd: "),
        ];
        let mut is_told = true;
        let mut plain = Vec::new();
        for line in self.log.lines() {
            let told = whose.iter().find_map(|(head, short)| Some((*short, line.split_once(head)?.1)));
            let (short, text) = match told {
                // The report.
                Some(("dir: ", text)) if text.contains("Bacula bed-dir ") => break,
                Some((short, text)) => {
                    is_told = short == "fd: " || short == "dir: " && is_about_the_file_daemon(text);
                    (short, text)
                }
                // One more line of a message.
                None => ("", line),
            };
            if is_told {
                let text = text.replace(&format!("{client}-"), "client-").replace(&format!("-{client}"), "-client");
                plain.push(format!("{short}{text}"));
            }
        }
        plain
    }

    fn problem(&self, problem: &str) -> BedError {
        BedError::Usage(format!("job {}: {problem}; status {}, log:\n{}", self.row.job, self.row.status, self.log))
    }
}

/// Whether a message of the Director is one about the File Daemon. Which of its connections has
/// broken, it says in fatal errors only.
fn is_about_the_file_daemon(text: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    let of_a_connection = begins(&["Error: bsock.c", "Error: openssl.c", "Error: Director's connection to SD"]);
    let of_a_verify = begins(&["File: ", "New file: ", "      "]);
    of_a_verify || begins(&["Error:", "Fatal error:", "Warning:"]) && !of_a_connection
}

/// Messages of ours as the stock daemon has them, which does not escape names of files.
pub fn unescaped(lines: &[String]) -> Vec<String> {
    let unescape = |line: &String| {
        let mut pieces = line.split("\\x");
        let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
        for piece in pieces {
            let escaped =
                piece.split_at_checked(2).and_then(|(digits, rest)| Some((u8::from_str_radix(digits, 16).ok()?, rest)));
            match escaped {
                Some((byte, rest)) => bytes.extend([&[byte], rest.as_bytes()].concat()),
                None => bytes.extend([b"\\x", piece.as_bytes()].concat()),
            }
        }
        String::from_utf8_lossy(&bytes).replace("\\n", "\n").replace("\\r", "\r")
    };
    lines.iter().map(unescape).collect::<Vec<_>>().join("\n").lines().map(str::to_owned).collect()
}

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

/// The same for the report of a Verify job.
pub const COUNTS_OF_A_VERIFY: [&str; 9] = [
    "Verify Level",
    "Files Expected",
    "Files Examined",
    "Accurate",
    "Non-fatal FD errors",
    "SD Errors",
    "FD termination status",
    "SD termination status",
    "Termination",
];
