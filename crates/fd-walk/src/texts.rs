//! What the walk says, word for word (reference 03 §8).

/// The parts of a text, paths as they are.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// The five blanks before texts about single entries.
const INDENT: &[u8] = b"     ";

pub(crate) fn could_not(purpose: crate::Purpose, what: &str, path: &[u8], error: &str) -> Vec<u8> {
    let quote: &[u8] = if purpose == crate::Purpose::Verify { b"" } else { b"\"" };
    join(&[INDENT, what.as_bytes(), b" ", quote, path, quote, b": ERR=", error.as_bytes(), b"\n"])
}

pub(crate) fn unchanged(path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Unchanged file skipped: ", path, b"\n"])
}

pub(crate) fn socket(path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Socket file skipped: ", path, b"\n"])
}

pub(crate) fn no_recursion(top: &[u8], path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Recursion turned off. Will not descend from ", top, b" into ", path, b"\n"])
}

pub(crate) fn other_file_system(top: &[u8], path: &[u8]) -> Vec<u8> {
    join(&[INDENT, path, b" is a different filesystem. Will not descend from ", top, b" into it.\n"])
}

pub(crate) fn disallowed_file_system(top: &[u8], path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Disallowed filesystem. Will not descend from ", top, b" into ", path, b"\n"])
}

pub(crate) fn verify_no_recursion(path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Recursion turned off. Directory skipped: ", path, b"\n"])
}

pub(crate) fn verify_other_file_system(path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"File system change prohibited. Directory skipped: ", path, b"\n"])
}

pub(crate) fn verify_unknown_type(code: u16, path: &[u8]) -> Vec<u8> {
    join(&[INDENT, b"Unknown file type ", code.to_string().as_bytes(), b": ", path, b"\n"])
}

/// The misspelling is the stock daemon's.
pub(crate) fn verifying(path: &[u8]) -> Vec<u8> {
    join(&[b"Veryfying: ", path, b"\n"])
}

pub(crate) fn unlisted_fstype(path: &[u8], name: &str) -> Vec<u8> {
    join(&[b"Top level directory \"", path, b"\" has unlisted fstype \"", name.as_bytes(), b"\"\n"])
}

pub(crate) fn unlisted_drivetype(path: &[u8]) -> Vec<u8> {
    join(&[b"Top level directory \"", path, b"\" has an unlisted drive type \"unknown\"\n"])
}

pub(crate) fn ignored_directory(path: &[u8]) -> Vec<u8> {
    join(&[b"Skipping ignored directory ", path, b" (found file with ExcludeDirContaining pattern)\n"])
}

pub(crate) fn out_of_limits(path: &[u8]) -> Vec<u8> {
    join(&[b"Skipping directory ", path, b", it's out of allowed ones\n"])
}

/// The warning at the end of a backup that left directories out because the Director may not see them.
pub fn skipped_directories(count: u64) -> Vec<u8> {
    format!("Skipped {count} directories which were out of backup allowed directories.\n").into_bytes()
}

pub(crate) const STAT: &str = "Could not stat";
pub(crate) const FOLLOW: &str = "Could not follow link";
pub(crate) const OPEN_DIRECTORY: &str = "Could not open directory";
