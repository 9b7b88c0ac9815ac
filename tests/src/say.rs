//! What the programs of the bed and the bench print.

use std::io::{self, Write as _};

/// Prints a line at once; a closed standard output is no reason to stop halfway.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
