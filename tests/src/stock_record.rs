//! What the stock daemon did, kept in files: one file a suite, `tests/records/SUITE.zst`.
//!
//! A suite runs one daemon, that under test, and hands in what it saw as lines, row by row. `make
//! record` runs it five times with the stock daemon, under circumstances that differ, and keeps
//! what the five have in common (`pattern.rs`); what differs between them is chance, and computed.
//! `make test` compares ours with that; `FD_UNDER_TEST=stock` shows whether a record has grown
//! stale.
//!
//! Each row has a digest of its input. A row whose input has changed since is not compared: the
//! test fails, and says what to do.

mod dates;
mod file;
mod pattern;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{BedError, Result};
use crate::options::Fd;

pub use dates::undated;
pub use file::Kept;
use file::Row;

/// A file in which each row that is compared is noted. `test-runner` looks for those that are not.
pub const ASKED: &str = "FERROFD_ASKED";

/// Notes that a row is compared.
fn note(row: &str) -> Result<()> {
    let Some(path) = env::var_os(ASKED).map(PathBuf::from) else { return Ok(()) };
    // In one piece, since many tests may write at a time.
    let noted = File::options().create(true).append(true).open(&path);
    let noted = noted.and_then(|mut file| file.write_all(format!("{row}\n").as_bytes()));
    noted.map_err(BedError::file("write", &path))
}

/// The records of the stock daemon for one suite.
#[derive(Debug)]
pub struct StockRecord {
    suite: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// Where this run with the stock daemon is written down.
    Recording(PathBuf),
    /// What is compared with.
    Kept(BTreeMap<String, Row>),
}

impl StockRecord {
    /// Reads the suite's records; or, if `FERROFD_RECORD` names a folder, writes new ones there.
    pub fn open(suite: &'static str) -> Result<Self> {
        let source = match env::var_os("FERROFD_RECORD") {
            Some(folder) if Fd::under_test()? == Fd::Stock => {
                let folder = Path::new(&folder).join(suite);
                fs::create_dir_all(&folder).map_err(BedError::file("create", &folder))?;
                Source::Recording(folder)
            }
            Some(_) => return Err(BedError::Usage("only the stock daemon is recorded: FD_UNDER_TEST=stock".into())),
            None => Source::Kept(Kept::read(suite)?.rows),
        };
        Ok(Self { suite, source })
    }

    /// What a row's lines have that the stock daemon's did not, and the other way round. `input` is
    /// what the row is made of: its commands, its FileSet, its tree. `what` begins each text.
    ///
    /// While the stock daemon is recorded, there are no differences.
    pub fn differences(&self, row: &str, what: &str, input: &str, lines: &[String]) -> Result<Vec<String>> {
        let name = format!("{row}: {what}");
        let input = xxh3_64(input.as_bytes());
        // A line is one line, whatever is in it.
        let lines: Vec<_> = lines.iter().map(|line| undated(line).replace('\\', "\\\\").replace('\n', "\\n")).collect();
        match &self.source {
            Source::Recording(folder) => {
                // Many rows are named after commands.
                let path = folder.join(format!("{:016x}", xxh3_64(name.as_bytes())));
                let lines: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
                let text = format!("{name}\n{input:016x}\n{lines}");
                fs::write(&path, text).map_err(BedError::file("write", &path))?;
                Ok(Vec::new())
            }
            Source::Kept(rows) => {
                note(&name)?;
                let again = |why: &str| BedError::Usage(format!("{}: {name}: {why}: record again", self.suite));
                let row = rows.get(&name).ok_or_else(|| again("there is no record"))?;
                if row.input != input {
                    return Err(again("its input has changed since it was recorded"));
                }
                Ok(row.pattern.differences(what, &lines))
            }
        }
    }
    /// The same for each part of a row. The bed's folder becomes `@`, and the row begins each text.
    pub fn differences_of_parts(
        &self,
        folder: &Path,
        row: &str,
        input: &str,
        parts: Vec<(&'static str, Vec<String>)>,
    ) -> Result<Vec<String>> {
        let folder = folder.display().to_string();
        let mut wrong = Vec::new();
        for (part, lines) in parts {
            let lines: Vec<_> = lines.iter().map(|line| line.replace(&folder, "@")).collect();
            let told = self.differences(row, part, input, &lines)?;
            wrong.extend(told.into_iter().map(|text| format!("{row}: {text}")));
        }
        Ok(wrong)
    }
}
