//! Raw rows below the folder of all data: `PHASE/SITTING/raw.csv`. A sitting is a host and a
//! commit. The text is about one of them, so it mixes no programs and no hosts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bed::{BedError, Result};

/// The rows that the text is about.
#[derive(Debug, Clone)]
pub struct Sitting {
    data: PathBuf,
    /// Its name: host and commit; empty if there are no rows.
    pub name: String,
}

impl Sitting {
    /// The wanted one if a phase has it, otherwise that of most phases; of several, the last by
    /// name.
    pub fn find(data: &Path, wanted: Option<&str>) -> Result<Self> {
        let mut phases: BTreeMap<String, u32> = BTreeMap::new();
        for phase in names(data)? {
            for one in names(&data.join(phase))? {
                *phases.entry(one).or_default() += 1;
            }
        }
        let wanted = wanted.filter(|wanted| phases.contains_key(*wanted)).map(str::to_owned);
        let most = phases.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
        Ok(Self { data: data.to_owned(), name: wanted.or(most).unwrap_or_default() })
    }

    /// The folder of a phase.
    pub fn folder(&self, phase: &str) -> PathBuf {
        self.data.join(phase).join(&self.name)
    }

    /// The rows of a phase; none if it was not measured.
    pub fn rows<T>(&self, phase: &str, read: impl Fn(&Path) -> Result<Vec<T>>) -> Result<Vec<T>> {
        let raw = self.folder(phase).join("raw.csv");
        if raw.exists() { read(&raw) } else { Ok(Vec::new()) }
    }
}

/// Adds rows to a file, which gets its head when it is new.
pub fn append(path: &Path, head: &str, rows: &str) -> Result<()> {
    let head = if path.exists() { String::new() } else { format!("{head}\n") };
    let mut file = File::options().append(true).create(true).open(path).map_err(BedError::file("open", path))?;
    file.write_all(format!("{head}{rows}").as_bytes()).map_err(BedError::file("write", path))
}

/// The rows of a file with this head, each as its columns.
///
/// # Errors
/// A row has not as many columns as the head.
pub fn columns(path: &Path, head: &str) -> Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
    let whole = head.split(',').count();
    let rows: Vec<Vec<String>> =
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect();
    match rows.iter().find(|row| row.len() != whole) {
        Some(row) => Err(BedError::Usage(format!("{}: {row:?} has not {whole} columns", path.display()))),
        None => Ok(rows),
    }
}

/// The names in a folder, in their order.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(BedError::file("read", folder))?.flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_sitting_counts_and_otherwise_the_one_with_most_phases() {
        let folder = bed::Folder::new("folders").unwrap();
        for (phase, host) in [("nine", "a"), ("nine", "b"), ("nine", "c"), ("far", "a"), ("far", "b")] {
            fs::write(folder.make(&format!("{phase}/{host}")).unwrap().join("raw.csv"), format!("{host}\n")).unwrap();
        }
        let name = |wanted| Sitting::find(folder.path(), wanted).unwrap().name;
        assert_eq!((name(None).as_str(), name(Some("c")).as_str(), name(Some("d")).as_str()), ("b", "c", "b"));
        let read = |path: &Path| Ok(fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect());
        let sitting = Sitting::find(folder.path(), Some("c")).unwrap();
        let rows = |phase| -> Vec<String> { sitting.rows(phase, read).unwrap() };
        assert_eq!((rows("nine"), rows("far")), (vec!["c".to_owned()], Vec::new()));
        assert_eq!(Sitting::find(&folder.path().join("none"), None).unwrap().name, "");
    }
}
