//! The file with the records of a suite: text, compressed.
//!
//! The first line says what was recorded, each row begins with `= INPUT NAME` (or `~`, if the order
//! of its lines is chance), and each of its lines with a blank, or with `?` if it may be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{BedError, Result};

use super::pattern::{Line, Pattern};

/// The records of one suite.
#[derive(Debug, Default)]
pub struct Kept {
    /// Which daemons were recorded, and how often.
    pub head: String,
    /// The rows by name.
    pub rows: BTreeMap<String, Row>,
}

/// The record of one row.
#[derive(Debug)]
pub struct Row {
    /// A digest of what the row is made of.
    pub input: u64,
    /// What all runs have in common.
    pub pattern: Pattern,
}

/// Where the records of a suite are.
fn place(suite: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("records").join(format!("{suite}.zst"))
}

impl Kept {
    /// Reads the records of a suite.
    pub fn read(suite: &str) -> Result<Self> {
        Self::parse(&Self::text(suite)?)
            .ok_or_else(|| BedError::Usage(format!("{} is damaged: record again", place(suite).display())))
    }

    /// The rows of a suite that are not among these lines; none if it has no records.
    pub fn rows_but(suite: &str, lines: &str) -> Result<Vec<String>> {
        if !place(suite).exists() {
            return Ok(Vec::new());
        }
        let asked: BTreeSet<_> = lines.lines().collect();
        Ok(Self::read(suite)?.rows.into_keys().filter(|row| !asked.contains(row.as_str())).collect())
    }

    /// The records of a suite as text.
    pub fn text(suite: &str) -> Result<String> {
        let path = place(suite);
        let packed = fs::read(&path).map_err(BedError::file("read", &path))?;
        let text = zstd::decode_all(packed.as_slice()).map_err(BedError::file("unpack", &path))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Puts several recordings of a suite together: folders with a file for each row.
    pub fn merge(suite: &str, recordings: &[PathBuf], daemons: &str) -> Result<Self> {
        let mut runs: BTreeMap<String, (u64, Vec<Vec<String>>)> = BTreeMap::new();
        for folder in recordings {
            let folder = folder.join(suite);
            for entry in fs::read_dir(&folder).map_err(BedError::file("list", &folder))? {
                let path = entry.map_err(BedError::file("list", &folder))?.path();
                let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
                let (name, input, lines) =
                    split(&text).ok_or_else(|| BedError::Usage(format!("{} is no recording", path.display())))?;
                let row = runs.entry(name.clone()).or_insert((input, Vec::new()));
                if row.0 != input {
                    return Err(BedError::Usage(format!("{suite}: {name}: its input differs from run to run")));
                }
                row.1.push(lines);
            }
        }
        let mut kept = Self { head: format!("{daemons}; {} recordings", recordings.len()), rows: BTreeMap::new() };
        for (name, (input, runs)) in runs {
            if runs.len() != recordings.len() {
                return Err(BedError::Usage(format!("{suite}: {name}: only {} recordings have it", runs.len())));
            }
            let Some(pattern) = Pattern::of(&runs) else { continue };
            if pattern.holds_nothing() {
                return Err(BedError::Usage(format!("{suite}: {name}: the recordings have no line in common")));
            }
            kept.rows.insert(name, Row { input, pattern });
        }
        Ok(kept)
    }

    /// Writes them into the source tree; how many bytes.
    pub fn write(&self, suite: &str) -> Result<usize> {
        let mut text = format!("{}\n", self.head);
        for (name, Row { input, pattern }) in &self.rows {
            let mark = if pattern.any_order { '~' } else { '=' };
            let _ = writeln!(text, "{mark} {input:016x} {name}");
            for Line { text: line, may_be_missing } in &pattern.lines {
                let _ = writeln!(text, "{}{line}", if *may_be_missing { '?' } else { ' ' });
            }
        }
        let path = place(suite);
        let packed = zstd::encode_all(text.as_bytes(), 19).map_err(BedError::file("pack", &path))?;
        fs::write(&path, &packed).map_err(BedError::file("write", &path))?;
        Ok(packed.len())
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let mut kept = Self { head: head.to_owned(), rows: BTreeMap::new() };
        let mut row: Option<&mut Row> = None;
        for line in rest.lines() {
            let (mark, rest) = line.split_at_checked(1)?;
            match mark {
                "=" | "~" => {
                    let (input, name) = rest.trim_start().split_once(' ')?;
                    let pattern = Pattern { lines: Vec::new(), any_order: mark == "~" };
                    let new = Row { input: u64::from_str_radix(input, 16).ok()?, pattern };
                    row = Some(kept.rows.entry(name.to_owned()).or_insert(new));
                }
                " " | "?" => {
                    let line = Line { text: rest.to_owned(), may_be_missing: mark == "?" };
                    row.as_mut()?.pattern.lines.push(line);
                }
                _ => return None,
            }
        }
        Some(kept)
    }
}

/// Name, input and lines of one recording of a row.
fn split(text: &str) -> Option<(String, u64, Vec<String>)> {
    let (name, rest) = text.split_once('\n')?;
    let (input, rest) = rest.split_once('\n')?;
    let input = u64::from_str_radix(input, 16).ok()?;
    Some((name.to_owned(), input, rest.lines().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    #[test]
    fn records_are_read_as_they_were_written() {
        let text = "stock\n= 000000000000000a row: x\n one\n?two ¤\n~ 000000000000000b next: y\n  three\n";
        let kept = Kept::parse(text).unwrap();
        assert_eq!((kept.head.as_str(), kept.rows.len()), ("stock", 2));
        let row = &kept.rows["row: x"];
        assert_eq!((row.input, row.pattern.any_order, row.pattern.lines[1].may_be_missing), (10, false, true));
        assert_eq!(kept.rows["next: y"].pattern.lines[0].text, " three");
        assert!(Kept::parse("no row\n line\n").is_none());
    }

    #[test]
    fn a_row_whose_recordings_have_nothing_in_common_is_refused() {
        let merged = |second: &str| {
            let folder = Folder::new("recordings").unwrap();
            let runs = ["a restored file", second].map(|line| {
                let run = folder.make(&format!("of-{}/suite", line.len())).unwrap();
                fs::write(run.join("row"), format!("row: tree\n000000000000000a\n{line}\n")).unwrap();
                run.parent().unwrap().to_owned()
            });
            Kept::merge("suite", &runs, "stock").map(|kept| kept.rows.len()).map_err(|error| error.to_string())
        };
        assert_eq!(merged("a restored file 2"), Ok(1));
        assert_eq!(merged("!"), Err("suite: row: tree: the recordings have no line in common".to_owned()));
    }
}
