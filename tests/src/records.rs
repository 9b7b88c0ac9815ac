//! `bed records`: puts recordings of the stock daemon together, and shows what is kept.

use std::path::PathBuf;

use bed::{BedError, Kept, Result, Root, say};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Make the records of a suite of what its runs with the stock daemon have written; see
    /// scripts/record.
    Merge {
        /// The suite.
        suite: String,
        /// The folders with the recordings, one for each run.
        #[arg(required = true)]
        recordings: Vec<PathBuf>,
    },
    /// Print the records of a suite as text.
    Show {
        /// The suite.
        suite: String,
        /// Only what is chance: places within a line (¤), lines that may be missing (?), rows whose
        /// lines come in any order (~).
        #[arg(long)]
        chance: bool,
    },
}

/// Does it.
pub(crate) fn run(action: &Action) -> Result<()> {
    match action {
        Action::Merge { suite, recordings } => {
            let kept = Kept::merge(suite, recordings, &daemons(&Root::find()?)?)?;
            let size = kept.write(suite)?;
            say(&format!("{suite}: {} rows, {size} bytes", kept.rows.len()));
        }
        Action::Show { suite, chance } => {
            let text = Kept::text(suite)?;
            let mut row = "";
            for line in text.lines() {
                if line.starts_with('=') {
                    row = line;
                }
                let is_chance = line.starts_with(['?', '~']) || line.contains('¤');
                if *chance && is_chance && !row.is_empty() && !line.starts_with('~') {
                    say(row);
                    row = "";
                }
                if is_chance || !chance {
                    say(line);
                }
            }
        }
    }
    Ok(())
}

/// The packages that are recorded, with their versions.
fn daemons(root: &Root) -> Result<String> {
    let path = root.inside("var/lib/dpkg/status");
    let status = std::fs::read_to_string(&path)
        .map_err(|error| BedError::Usage(format!("{}: {error}: no package database", path.display())))?;
    let version = |package: &str| {
        let paragraph =
            status.split("\n\n").find(|text| text.lines().any(|line| line == format!("Package: {package}")));
        paragraph.and_then(|text| text.lines().find_map(|line| line.strip_prefix("Version: "))).unwrap_or("absent")
    };
    let packages = ["bacula-fd", "bacula-director-sqlite3", "bacula-sd", "bacula-console"];
    Ok(packages.map(|package| format!("{package} {}", version(package))).join(", "))
}
