//! How another program is told to save a tree: `rivals/NAME.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bed::{BedError, Result};
use serde::Deserialize;

use crate::programs::is_on_path;

/// A program. Its commands are given to a shell, which has `TREE`, `STORE` and `WORK` as variables:
/// what is saved, where to, and a folder for caches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Its word; that of the file.
    #[serde(skip)]
    pub name: String,
    /// The programs that must be there.
    pub programs: Vec<String>,
    /// `plain`, `compressed` or `encrypted`.
    pub class: String,
    /// Prints the version.
    pub version: String,
    /// Runs all the time and takes what is saved over a socket, on the `PORT` of 127.0.0.1.
    pub serve: Option<String>,
    /// Before the first step; not measured.
    pub prepare: String,
    /// Each copy; `STEP` is its number, from 1.
    pub save: String,
    /// Restores copy `STEP`, the newest, to the empty folder `OUT` or below it. Left out for a
    /// program that no host here has had.
    pub restore: Option<String>,
    /// Whether it names what it saves after the second, and refuses a second copy within one.
    #[serde(default)]
    pub by_the_second: bool,
    /// Further variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl Adapter {
    /// All that a folder describes, in the order of their names.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(folder).map_err(BedError::file("read", folder))?.flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(BedError::file("read", path))?;
        let wrong = |error| BedError::Usage(format!("{}: {error}", path.display()));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, ..toml::from_str(&text).map_err(wrong)? })
    }

    /// Whether its programs are on this host.
    pub fn is_here(&self) -> bool {
        self.programs.iter().all(|program| is_on_path(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adapter_of_the_paper_is_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper").join("perf-analysis/rivals");
        let all = Adapter::all(&folder).unwrap();
        assert!(all.len() >= 5);
        for adapter in all {
            assert!(["plain", "compressed", "encrypted"].contains(&adapter.class.as_str()), "{}", adapter.name);
            let mut commands = [adapter.prepare.as_str(), &adapter.save].into_iter().chain(adapter.serve.as_deref());
            let is_told = commands.any(|command| command.contains("STORE"));
            assert!(is_told || adapter.environment.values().any(|value| value.contains("STORE")), "{}", adapter.name);
        }
    }
}
