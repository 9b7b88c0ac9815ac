//! Makes the manual pages of the packages from pages of the manual, so that a fact is written once.
//!
//! `man-pages DOCS OUT VERSION DATE` writes into the directory OUT what [`PAGES`] lists.
//!
//! Not here: HTML. The same pages are part of the book (`make book`).

#![expect(clippy::print_stderr, reason = "it is a program of the build")]

mod roff;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use roff::{Head, page};

/// A manual page's name and section, its source below `docs/`, and what it is in a few words. A
/// source that has none of these words begins with the sections Name and Synopsis itself.
const PAGES: [(&str, u8, &str, Option<&str>); 5] = [
    ("bacula-fd", 8, "man/bacula-fd.8.md", None),
    ("bacula-fd.conf", 5, "man/bacula-fd.conf.5.md", None),
    ("bacula-fd.toml", 5, "settings.md", Some("settings that only ferrofd's bacula-fd has")),
    ("bfdjson", 8, "man/bfdjson.8.md", None),
    ("bsnapshot", 8, "man/bsnapshot.8.md", None),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [docs, out, version, date] = words.as_slice() else {
        eprintln!("man-pages DOCS OUT VERSION DATE");
        return ExitCode::FAILURE;
    };
    match write(Path::new(docs), Path::new(out), version, date) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("man-pages: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(docs: &Path, out: &Path, version: &str, date: &str) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    for (name, section, source, purpose) in PAGES {
        let text = fs::read_to_string(docs.join(source)).map_err(|error| format!("{source}: {error}"))?;
        let head = Head { name, section, purpose, version, date };
        let made = page(&head, &text).map_err(|error| format!("{source}: {error}"))?;
        fs::write(out.join(format!("{name}.{section}")), made)?;
    }
    Ok(())
}
