//! One step of one program in the raw file.

use std::fs;
use std::path::Path;

use bed::{BedError, Result};

use crate::paper::folders;

const HEAD: &str = "system,step,replica,turn,began,outcome,wall_s,cpu_s,peak_rss_bytes,stored_bytes,load";

/// The steps, in their order.
pub const STEPS: [&str; 6] = ["initial", "unchanged", "onefile", "more", "duplicate", RESTORE];
/// So many of them are copies.
pub const COPIES: usize = 5;
/// The newest copy of all files, to an empty folder.
pub const RESTORE: &str = "restore";
/// After all others: one more copy, of files that nobody can write. Only its outcome counts.
pub const READ_ONLY: &str = "readonly";
/// How tables call them.
pub const SAID: [&str; STEPS.len()] =
    ["first copy", "unchanged", "one file", "two fifths more", "the same again", "restore"];

/// What a step took.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `stock`, `ours`, or an adapter's word.
    pub system: String,
    /// One of [`STEPS`], or [`READ_ONLY`].
    pub step: String,
    /// From 1.
    pub replica: u32,
    /// Whether it ran first in its step, second …
    pub turn: u32,
    /// Seconds since 1970.
    pub began: u64,
    /// `T` good, `D` a restored file differs, others failed.
    pub outcome: char,
    /// From submitting to the end, seconds.
    pub wall: f64,
    /// Of all its processes, seconds.
    pub cpu: f64,
    /// Peak memory, bytes: of the three daemons together; of others, of the largest process.
    pub memory: f64,
    /// What is stored after the step, bytes.
    pub stored: f64,
    /// Load average when it began.
    pub load: f64,
}

impl Row {
    fn line(&self) -> String {
        let Self { system, step, replica, turn, began, outcome, wall, cpu, memory, stored, load } = self;
        format!(
            "{system},{step},{replica},{turn},{began},{outcome},{wall:.3},{cpu:.3},{memory:.0},{stored:.0},{load}\n"
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let [system, step, replica, turn, began, outcome, wall, cpu, memory, stored, load] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            system: system.to_owned(),
            step: STEPS.into_iter().chain([READ_ONLY]).find(|known| *known == step)?.to_owned(),
            replica: replica.parse().ok()?,
            turn: turn.parse().ok()?,
            began: began.parse().ok()?,
            outcome: outcome.chars().next()?,
            wall: wall.parse().ok()?,
            cpu: cpu.parse().ok()?,
            memory: memory.parse().ok()?,
            stored: stored.parse().ok()?,
            load: load.parse().ok()?,
        })
    }
}

/// Adds rows to the raw file, which gets its head when it is new.
pub fn append(path: &Path, rows: &[Row]) -> Result<()> {
    folders::append(path, HEAD, &rows.iter().map(Row::line).collect::<String>())
}

/// All rows of a raw file; none if it is not there.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
    let parse =
        |line: &str| Row::parse(line).ok_or_else(|| BedError::Usage(format!("{}: not a row: {line}", path.display())));
    text.lines().filter(|line| *line != HEAD && !line.is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = Row {
            system: "ours".to_owned(),
            step: "more".to_owned(),
            replica: 2,
            turn: 1,
            began: 17,
            outcome: 'T',
            wall: 1.25,
            cpu: 0.5,
            memory: 1e7,
            stored: 2e9,
            load: 0.5,
        };
        assert_eq!(Row::parse(row.line().trim_end()), Some(row));
        assert_eq!(Row::parse("ours,nonsense"), None);
    }
}
