//! What an operator reads about a FileSet, word for word as the reference says it (reference 03
//! §1.5, §1.6).
//!
//! Texts are bytes, because they quote file names; each ends with a newline.

use std::fmt::Write as _;

/// Fatal: an unknown line. The code letter is not part of the text.
pub(crate) fn invalid_command(argument: &[u8]) -> Vec<u8> {
    join(&[b"Invalid FileSet command: ", argument])
}

/// Fatal: a regular expression does not compile, also one of `regexwhere` (ferrofd's own there).
#[must_use]
pub fn bad_regex(pattern: &[u8], error: &str) -> Vec<u8> {
    join(&[b"REGEX ", pattern, b" compile error. ERR=", error.as_bytes()])
}

/// Fatal: a list file cannot be opened.
pub(crate) fn cannot_open_list(file: &[u8], error: &str) -> Vec<u8> {
    join(&[b"Cannot open FileSet input file: ", file, b". ERR=", error.as_bytes()])
}

/// Fatal: a program is not allowed or cannot be started.
pub(crate) fn cannot_run(program: &[u8], error: &str) -> Vec<u8> {
    join(&[b"Cannot run program: ", program, b". ERR=", error.as_bytes()])
}

/// Fatal: a program ended with another status than 0.
pub(crate) fn program_failed(program: &[u8], status: i32, error: &str) -> Vec<u8> {
    let mut numbers = String::new();
    let _infallible = write!(numbers, ". stat={status}: ERR=");
    join(&[b"Error running program: ", program, numbers.as_bytes(), error.as_bytes()])
}

/// Fatal: a plugin command without a configured Plugin Directory.
pub fn no_plugin_directory(command: &[u8]) -> Vec<u8> {
    join(&[b"Plugin Directory not defined. Cannot use plugin: \"", command, b"\""])
}

/// Error, the job continues: a plugin command with a space before any colon. The source place is
/// part of the reference's text.
pub fn malformed_plugin_command(command: &[u8]) -> Vec<u8> {
    join(&[b"fd_plugins.c:464 Malformed plugin command: ", command])
}

/// Fatal: the FileSet takes too much memory. The reference has no bound.
pub fn too_large(most: usize) -> Vec<u8> {
    let mut text = String::new();
    let _infallible = write!(text, "The FileSet is too large: it needs more than {} MiB of memory.", most >> 20);
    join(&[text.as_bytes()])
}

/// Error, the job continues: an unknown option letter. The source place is part of the reference's
/// text.
pub fn unknown_letter(letter: u8) -> Vec<u8> {
    join(&[b"job.c:2141 Unknown include/exclude option: ", &[letter]])
}

/// Why a program outside the allowed script directories is not run.
pub const NOT_IN_ALLOWED_PATHS: &str = "Not in allowed paths";

/// Why a program with shell characters is not run when script directories are restricted.
pub const NOT_ALLOWED_CHARACTER: &str = "Contains not allowed character";

fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = parts.concat();
    text.push(b'\n');
    text
}
