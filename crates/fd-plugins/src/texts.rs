//! What users read, word for word as the stock daemon's `bpipe` says it (reference 07 §10).

use std::fmt::Display;

/// A command without a part of it.
pub(crate) fn terminator_not_found(part: &str, command: &[u8]) -> Vec<u8> {
    [part.as_bytes(), b" terminator not found: ", command, b"\n"].concat()
}

/// A program that could not be started; `end` is `reader` or `writer`.
pub(crate) fn open_failed(end: &str, command: &[u8], error: impl Display) -> Vec<u8> {
    [b"Open pipe ", end.as_bytes(), b"=", command, format!(" failed: ERR={error}\n").as_bytes()].concat()
}

/// What a program has said.
pub(crate) fn said(file: &[u8], text: &[u8]) -> Vec<u8> {
    [file, b": ", text, b"\n"].concat()
}

/// A program that has failed.
pub(crate) fn closing_failed(file: &[u8], number: i32) -> Vec<u8> {
    [b"bpipe-fd: Error closing for file ", file, format!(": {number}\n").as_bytes()].concat()
}

/// An error of a pipe; `what` is `read` or `write`.
pub(crate) fn pipe_failed(what: &str, error: impl Display) -> Vec<u8> {
    format!("Pipe {what} error: ERR={error}\n").into_bytes()
}

/// A call for a program that does not run; `what` is `read FD`, `write FD` or `FD on bpipe close`.
pub(crate) fn nothing_open(what: &str) -> Vec<u8> {
    format!("Logic error: NULL {what}\n").into_bytes()
}

/// The restore command that a user has given.
pub(crate) fn user_command(command: &[u8]) -> Vec<u8> {
    [b"Using user supplied restore command: \"", command, b"\"\n"].concat()
}

/// A user's options that can't be read.
pub(crate) const OPTIONS_NOT_READ: &[u8] = b"Unable to parse the User supplied restore options\n";
/// A user's options without a restore command.
pub(crate) const OPTIONS_NOT_VALID: &[u8] = b"User supplied restore options are not valid\n";
