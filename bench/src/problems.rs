//! What became of replicas that have no good rows, or rows more than once: `problems.csv` beside
//! the raw file. Nobody has to guess what was left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bed::{BedError, Result};

use crate::cell::Cell;
use crate::paper::folders::append;

const HEAD: &str = "cell,replica,began,what,reason";
/// A job's log may have a line for each file.
const LONGEST: usize = 4000;

/// What happened to a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A job did not end well, or the harness failed.
    Failed,
    /// The two daemons have not made the same.
    Differed,
    /// It was measured before, or was to be.
    Again,
    /// The run was ended before it.
    Interrupted,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Differed => "differed",
            Self::Again => "again",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is wrong with a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What happened.
    pub what: What,
    /// Why, or what was seen.
    pub reason: String,
}

impl Problem {
    /// A job did not end well.
    pub fn failed(reason: &impl ToString) -> Self {
        Self { what: What::Failed, reason: reason.to_string() }
    }

    /// The two daemons have not made the same.
    pub fn differed(reason: &impl ToString) -> Self {
        Self { what: What::Differed, reason: reason.to_string() }
    }

    /// Writes it beside a raw file.
    pub fn note(&self, raw: &Path, (cell, replica): (Cell, u32)) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let reason: String = self.reason.trim().lines().collect::<Vec<_>>().join("; ").chars().take(LONGEST).collect();
        let line = format!("{cell},{replica},{now},{},\"{}\"\n", self.what.word(), reason.replace('"', "\"\""));
        append(&beside(raw), HEAD, &line)
    }
}

/// What is noted of a replica: the words, in the order of the file.
pub fn noted(raw: &Path, (cell, replica): (Cell, u32)) -> Result<Vec<String>> {
    let path = beside(raw);
    let text =
        if path.exists() { fs::read_to_string(&path).map_err(BedError::file("read", &path))? } else { String::new() };
    let begin = format!("{cell},{replica},");
    let word = |line: &str| Some(line.strip_prefix(&begin)?.split(',').nth(1)?.to_owned());
    Ok(text.lines().filter_map(word).collect())
}

fn beside(raw: &Path) -> PathBuf {
    raw.with_file_name("problems.csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_a_line_with_its_reason_quoted() {
        let folder = bed::Folder::new("problems").unwrap();
        let raw = folder.path().join("raw.csv");
        let [one, other] = ["empty full default", "empty incr default"].map(|name| Cell::choose(name).unwrap()[0]);
        Problem::failed(&"it said \"no\",\nand ended").note(&raw, (one, 3)).unwrap();
        Problem::differed(&"5 against 6 files").note(&raw, (one, 3)).unwrap();
        let text = fs::read_to_string(folder.path().join("problems.csv")).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, HEAD));
        assert!(lines[1].starts_with("empty full default,3,"), "{text}");
        assert!(lines[1].ends_with(",failed,\"it said \"\"no\"\",; and ended\""), "{text}");
        assert_eq!(noted(&raw, (one, 3)).unwrap(), ["failed", "differed"]);
        assert_eq!(noted(&raw, (other, 3)).unwrap(), Vec::<String>::new());
        assert_eq!(noted(&raw, (one, 30)).unwrap(), Vec::<String>::new());
    }
}
