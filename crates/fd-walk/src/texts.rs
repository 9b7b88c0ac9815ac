//! The messages of the walk, word for word (reference 03 §8).

use fd_messages::one_line;

use crate::settings::Purpose;

/// Appends a line of these parts.
fn join(text: &mut Vec<u8>, parts: &[&[u8]]) {
    text.extend_from_slice(&one_line(parts));
}

/// The five blanks before texts about single entries.
const INDENT: &[u8] = b"     ";

/// Something that could not be done with an entry in a backup.
pub fn could_not(text: &mut Vec<u8>, what: &str, path: &[u8], error: &str) {
    failed(text, Purpose::Backup, what, path, error);
}

pub(crate) fn failed(text: &mut Vec<u8>, purpose: Purpose, what: &str, path: &[u8], error: &str) {
    let quote: &[u8] = if purpose == Purpose::Verify { b"" } else { b"\"" };
    join(text, &[INDENT, what.as_bytes(), b" ", quote, path, quote, b": ERR=", error.as_bytes(), b"\n"]);
}

pub(crate) fn unchanged(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[INDENT, b"Unchanged file skipped: ", path, b"\n"]);
}

/// A socket is left out.
pub fn socket(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[INDENT, b"Socket file skipped: ", path, b"\n"]);
}

/// A directory is saved without its contents.
pub fn no_recursion(text: &mut Vec<u8>, top: &[u8], path: &[u8]) {
    join(text, &[INDENT, b"Recursion turned off. Will not descend from ", top, b" into ", path, b"\n"]);
}

/// A directory of another file system is saved without its contents.
pub fn other_file_system(text: &mut Vec<u8>, top: &[u8], path: &[u8]) {
    join(text, &[INDENT, path, b" is a different filesystem. Will not descend from ", top, b" into it.\n"]);
}

/// A directory is saved without its contents: its file system has a type that is not allowed.
pub fn disallowed_file_system(text: &mut Vec<u8>, top: &[u8], path: &[u8]) {
    join(text, &[INDENT, b"Disallowed filesystem. Will not descend from ", top, b" into ", path, b"\n"]);
}

pub(crate) fn verify_no_recursion(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[INDENT, b"Recursion turned off. Directory skipped: ", path, b"\n"]);
}

pub(crate) fn verify_other_file_system(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[INDENT, b"File system change prohibited. Directory skipped: ", path, b"\n"]);
}

pub(crate) fn verify_unknown_type(text: &mut Vec<u8>, code: u16, path: &[u8]) {
    join(text, &[INDENT, b"Unknown file type ", code.to_string().as_bytes(), b": ", path, b"\n"]);
}

/// The misspelling is the stock daemon's.
pub(crate) fn verifying(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[b"Veryfying: ", path, b"\n"]);
}

pub(crate) fn unlisted_fstype(text: &mut Vec<u8>, path: &[u8], name: &str) {
    join(text, &[b"Top level directory \"", path, b"\" has unlisted fstype \"", name.as_bytes(), b"\"\n"]);
}

pub(crate) fn unlisted_drivetype(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[b"Top level directory \"", path, b"\" has an unlisted drive type \"unknown\"\n"]);
}

pub(crate) fn ignored_directory(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[b"Skipping ignored directory ", path, b" (found file with ExcludeDirContaining pattern)\n"]);
}

pub(crate) fn out_of_limits(text: &mut Vec<u8>, path: &[u8]) {
    join(text, &[b"Skipping directory ", path, b", it's out of allowed ones\n"]);
}

/// ferrofd's own.
pub(crate) fn device_out_of_limits(text: &mut Vec<u8>, path: &[u8]) {
    const WHY: &[u8] = b" is not saved: for this Director it has to be in /dev, or itself an allowed directory.\n";
    join(text, &[b"The data of the device ", path, WHY]);
}

/// ferrofd's own.
pub(crate) fn wrong_scan(text: &mut Vec<u8>, path: &[u8], was_looked_up: bool) {
    let why: &[u8] =
        if was_looked_up { b"the file is not as the scan has found it" } else { b"the file can't be looked up" };
    let end = b". All files are looked up.\n";
    join(text, &[b"The inode scan of the file system of ", path, b" is not used: ", why, end]);
}

/// The warning at the end of a backup about directories that the Director may not read.
pub fn skipped_directories(count: u64) -> Vec<u8> {
    format!("Skipped {count} directories which were out of backup allowed directories.\n").into_bytes()
}

/// The stock daemon's message about an entry that has vanished since its directory was read.
pub fn gone(path: &[u8], error: &str) -> Vec<u8> {
    let mut text = Vec::new();
    could_not(&mut text, STAT, path, error);
    text
}

/// What could not be done: reading attributes.
pub const STAT: &str = "Could not stat";
/// What could not be done: reading the target of a link.
pub const FOLLOW: &str = "Could not follow link";
/// What could not be done: opening a directory.
pub const OPEN_DIRECTORY: &str = "Could not open directory";
/// ferrofd's own: the stock daemon takes a read error for the end of the directory.
pub(crate) const READ_DIRECTORY: &str = "Could not read directory";
