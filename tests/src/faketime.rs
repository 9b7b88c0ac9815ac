//! Another clock for a client: Debian's `libfaketime` asks a file for it.

use std::fs;
use std::path::Path;

use crate::error::{BedError, Result};

/// The library, which not every host has.
pub const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// How far the clock of the daemons that ask this file is off: `+60`, `-3d`.
pub fn set(file: &Path, off: &str) -> Result<()> {
    fs::write(file, format!("{off}\n")).map_err(BedError::file("write", file))
}

/// The environment of a daemon that asks this file. Times of files and waits stay as they are.
pub fn variables(file: &Path) -> Vec<(String, String)> {
    let file = file.display().to_string();
    let variables = [
        ("LD_PRELOAD", LIBRARY),
        ("FAKETIME_TIMESTAMP_FILE", &file),
        ("FAKETIME_NO_CACHE", "1"),
        ("NO_FAKE_STAT", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
