//! Programs named in a FileSet (`|program`) and elsewhere: job codes, splitting into arguments, allowed directories
//! (reference 03 §1.5.1). Pure functions; running the program is the caller's.

use std::borrow::Cow;

use crate::plain_path::{lies_in, plain_path};
use crate::texts;

/// Most words that a command is split into.
const MOST_WORDS: usize = 100;

/// Characters that a command may not contain when script directories are restricted.
const FORBIDDEN: &[u8] = b"$!;\\&|<>`()";

/// What the `%` codes stand for.
#[derive(Clone, Copy, Default, Debug)]
pub struct JobCodes<'a> {
    /// `%c`, `%d`: name of this File Daemon.
    pub client: &'a [u8],
    /// `%D`: name of the Director.
    pub director: &'a [u8],
    /// `%e`: status of the job in words.
    pub status: &'a [u8],
    /// `%E`: errors so far.
    pub errors: u32,
    /// `%i`: JobId.
    pub job_id: u32,
    /// `%j`: unique name of the job; `%n` is the same without its last three parts.
    pub job: &'a [u8],
    /// `%l`: level in words.
    pub level: &'a [u8],
    /// `%s`: since time.
    pub since: &'a [u8],
    /// `%S`: name of the previous job.
    pub previous_job: &'a [u8],
    /// `%F`: files so far.
    pub files: u32,
    /// `%b`: bytes saved so far.
    pub bytes: u64,
    /// `%R`: bytes read so far.
    pub read_bytes: u64,
    /// `%t`: type of the job in words.
    pub job_type: &'a [u8],
    /// `%v`: volume.
    pub volume: &'a [u8],
    /// `%o`: priority.
    pub priority: i32,
    /// `%P`: process id.
    pub process: u32,
    /// `%r`: who a message is for; nobody in scripts.
    pub recipients: &'a [u8],
}

impl<'a> JobCodes<'a> {
    /// What `%<code>` stands for; `None` if nothing.
    fn value(&self, code: u8) -> Option<Cow<'a, [u8]>> {
        let number = |text: String| Cow::Owned(text.into_bytes());
        Some(match code {
            b'%' => Cow::Borrowed(b"%".as_slice()),
            b'r' => Cow::Borrowed(self.recipients),
            b'c' | b'd' => Cow::Borrowed(self.client),
            b'D' => Cow::Borrowed(self.director),
            b'e' => Cow::Borrowed(self.status),
            b'j' => Cow::Borrowed(self.job),
            b'n' => Cow::Borrowed(self.job.rsplitn(4, |byte| *byte == b'.').nth(3).unwrap_or(self.job)),
            b'l' => Cow::Borrowed(self.level),
            b's' => Cow::Borrowed(self.since),
            b'S' => Cow::Borrowed(self.previous_job),
            b't' => Cow::Borrowed(self.job_type),
            b'v' => Cow::Borrowed(self.volume),
            b'E' => number(self.errors.to_string()),
            b'i' => number(self.job_id.to_string()),
            b'F' => number(self.files.to_string()),
            b'b' => number(self.bytes.to_string()),
            b'R' => number(self.read_bytes.to_string()),
            b'o' => number(self.priority.to_string()),
            b'P' => number(self.process.to_string()),
            _ => return None,
        })
    }
}

/// `command` with every `%` code replaced. Unknown codes stay as they are.
pub fn expand_job_codes(command: &[u8], codes: &JobCodes<'_>) -> Vec<u8> {
    let mut expanded = Vec::with_capacity(command.len());
    let mut rest = command;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match after.split_first() {
            Some((&code, after_code)) if byte == b'%' => {
                rest = after_code;
                match codes.value(code) {
                    Some(value) => expanded.extend_from_slice(&value),
                    None => expanded.extend_from_slice(&[b'%', code]),
                }
            }
            _ => expanded.push(byte),
        }
    }
    expanded
}

/// Splits a command into the program and its arguments. No shell is involved.
///
/// Blanks and tabs separate words. A word that starts with a quote runs to the next quote of the same kind; any other
/// word ends at a blank only. Words beyond the hundredth are dropped.
pub fn split_arguments(command: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = command;
    while words.len() < MOST_WORDS {
        let Some(start) = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')) else { break };
        rest = rest.get(start..).unwrap_or_default();
        let end = match rest.split_first() {
            Some((&quote @ (b'"' | b'\''), after)) => {
                rest = after;
                quote
            }
            _ => b' ',
        };
        let mut parts = rest.splitn(2, |byte| *byte == end);
        words.push(parts.next().unwrap_or_default().to_vec());
        rest = parts.next().unwrap_or_default();
    }
    words
}

/// Why a command may not be run; the text is that of the reference's `ERR=`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramNotAllowed {
    /// No allowed directory is a prefix of the command.
    #[error("{}", texts::NOT_IN_ALLOWED_PATHS)]
    Path,
    /// The command contains a character that a shell would read.
    #[error("{}", texts::NOT_ALLOWED_CHARACTER)]
    Character,
}

/// Whether *Allowed Script Directories* lets this command run, as far as its text tells: the program's path, without
/// `..`, has to be in one of them. Without directories everything may. Links are the caller's business.
pub fn check_allowed<D: AsRef<[u8]>>(command: &[u8], directories: &[D]) -> Result<(), ProgramNotAllowed> {
    if directories.is_empty() {
        return Ok(());
    }
    let words = split_arguments(command);
    let program = plain_path(words.first().map_or(b"".as_slice(), Vec::as_slice));
    let is_in = |directory: &D| {
        let directory = plain_path(directory.as_ref());
        directory.starts_with(b"/") && lies_in(&program, &directory)
    };
    if !directories.iter().any(is_in) {
        return Err(ProgramNotAllowed::Path);
    }
    if command.iter().any(|byte| FORBIDDEN.contains(byte)) {
        return Err(ProgramNotAllowed::Character);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
