//! The answer on standard output: `key=value` pairs (reference 07 §12.4).

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt as _;

use crate::request::Action;

/// The longest error text, in bytes; what is longer is cut.
const ERROR: usize = 1000;

/// What is printed, and whether the program ends with 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    text: Vec<u8>,
    failed: bool,
}

impl Answer {
    /// An answer without a pair, and success.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// `status=1`, and success.
    pub(crate) fn good() -> Self {
        Self::new().bare("status", "1")
    }

    /// `status=0` with the error, and failure. The daemon ends a job whose snapshot can't be made,
    /// unless the status is 2.
    pub(crate) fn failed(action: Action, fail_job: bool, error: &dyn Display) -> Self {
        let status = if action == Action::Create && !fail_job { "2" } else { "0" };
        Self { failed: true, ..Self::new().bare("status", status).error(error).end_line() }
    }

    /// Nothing is printed, and failure: the file system has none of what was asked for.
    pub(crate) fn nothing() -> Self {
        Self { failed: true, ..Self::default() }
    }

    /// A pair whose value is a number or a word.
    pub(crate) fn bare(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.text.extend_from_slice(value.as_bytes());
        self
    }

    /// A pair whose value is in quotes, as the daemon reads them: `\"` and `\\`; all other bytes,
    /// newlines included, stand for themselves.
    pub(crate) fn quoted(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.key(key);
        self.text.push(b'"');
        for &byte in value.as_ref().as_bytes() {
            if byte == b'"' || byte == b'\\' {
                self.text.push(b'\\');
            }
            self.text.push(byte);
        }
        self.text.push(b'"');
        self
    }

    /// An error text, as one line of printable characters.
    pub(crate) fn error(self, error: &dyn Display) -> Self {
        let printable = |character: char| if character.is_control() { ' ' } else { character };
        let mut text: String = error.to_string().chars().map(printable).collect();
        if let Some((end, _)) = text.char_indices().find(|(at, _)| *at > ERROR) {
            text.truncate(end);
        }
        self.quoted("error", text)
    }

    /// The end of a line, which may be that of an entry.
    pub(crate) fn end_line(mut self) -> Self {
        self.text.push(b'\n');
        self
    }

    /// The same with another answer behind it, whose failure counts for both.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        if !(self.text.is_empty() || self.text.ends_with(b"\n") || self.text.ends_with(b" ")) {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(&other.text);
        self.failed |= other.failed;
        self
    }

    /// What is printed.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the exit status is 0.
    pub(crate) const fn is_success(&self) -> bool {
        !self.failed
    }

    fn key(&mut self, key: &str) {
        if !(self.text.is_empty() || self.text.ends_with(b"\n")) {
            self.text.push(b' ');
        }
        self.text.extend_from_slice(key.as_bytes());
        self.text.push(b'=');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_stay_one_value() {
        let answer = Answer::good().quoted("device", OsStr::from_bytes(b"/a \"b\\c\nd\xff")).bare("type", "btrfs");
        assert_eq!(answer.text(), b"status=1 device=\"/a \\\"b\\\\c\nd\xff\" type=btrfs");
        assert!(answer.is_success());
    }

    #[test]
    fn an_error_is_one_bounded_line() {
        let error = Answer::failed(Action::Mount, true, &"no\n\"mount\"\t");
        assert_eq!(error.text(), b"status=0 error=\"no \\\"mount\\\" \"\n");
        assert!(!error.is_success());
        assert!(Answer::failed(Action::Mount, true, &"ä".repeat(9000)).text().len() < 1100);
    }

    #[test]
    fn a_failed_creation_spares_the_job_if_that_is_set() {
        assert_eq!(Answer::failed(Action::Create, true, &"x").text(), b"status=0 error=\"x\"\n");
        assert_eq!(Answer::failed(Action::Create, false, &"x").text(), b"status=2 error=\"x\"\n");
        assert_eq!(Answer::failed(Action::Delete, false, &"x").text(), b"status=0 error=\"x\"\n");
    }
}
