//! Which jobs have written their report: the Director appends all messages to a file, which costs
//! it nothing when it is read. A question to the catalog takes its lock there, and the Director's
//! own command `wait` looks every few seconds only.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::{BedError, Result};

/// The name of the Director's file of messages, below the bed's folder.
pub(crate) const REPORTS: &str = "work/dir/messages";

/// That file.
#[derive(Debug)]
pub(crate) struct Reports {
    path: PathBuf,
    seen: Mutex<Seen>,
}

/// What has been read of it.
#[derive(Debug, Default)]
struct Seen {
    bytes: u64,
    /// The begin of a line whose end is not there yet.
    rest: Vec<u8>,
    /// The job whose report is being read.
    job: Option<u32>,
    /// How many reports each job has; one that is resumed has one more.
    ended: HashMap<u32, usize>,
}

impl Reports {
    /// The file may come later.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, seen: Mutex::default() }
    }

    /// Whether the report of a job is there.
    pub(crate) fn has(&self, job: u32) -> Result<bool> {
        Ok(self.count(job)? > 0)
    }

    /// How many reports of a job are there.
    pub(crate) fn count(&self, job: u32) -> Result<usize> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match File::open(&self.path) {
            Ok(file) => seen.read(file).map_err(BedError::file("read", &self.path))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(BedError::file("open", &self.path)(error)),
        }
        Ok(seen.ended.get(&job).copied().unwrap_or(0))
    }
}

impl Seen {
    fn read(&mut self, mut file: File) -> std::io::Result<()> {
        file.seek(SeekFrom::Start(self.bytes))?;
        let mut new = Vec::new();
        self.bytes += file.read_to_end(&mut new)? as u64;
        self.take(&new);
        Ok(())
    }

    fn take(&mut self, new: &[u8]) {
        self.rest.extend_from_slice(new);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        for line in lines.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if let Some(number) = line.strip_prefix("  JobId:") {
                self.job = number.trim().parse().ok();
            } else if line.starts_with("  Termination:")
                && let Some(job) = self.job.take()
            {
                *self.ended.entry(job).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_when_its_last_line_is_whole() {
        let mut seen = Seen::default();
        seen.take(b"24-Nov 11:30 bed-dir JobId 7: Start\n  JobId:                  7\n  Job:  x\n  Termin");
        assert!(seen.ended.is_empty());
        seen.take(b"ation:            Backup OK\n\n  JobId:                  8\n");
        assert_eq!(seen.ended, [(7, 1)].into());
        seen.take(b"  Termination:            *** Backup Error ***\n");
        assert_eq!(seen.ended, [(7, 1), (8, 1)].into());
    }
}
