//! A line for a shell as a process, if *Allowed Script Directories* take it (reference 07 §15.3).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use fd_fileset::{ProgramNotAllowed, check_allowed, lies_in};
use fd_os::process::is_unwanted;
use fd_os::{NOT_ALLOWED_CHARACTER, NOT_IN_ALLOWED_PATHS, error_text, io_error_text};
use nix::errno::Errno;

/// Why a line was not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotRun {
    /// The error's number.
    pub(crate) errno: i32,
    /// Its words.
    pub(crate) words: String,
}

impl NotRun {
    pub(crate) fn from_errno(errno: i32) -> Self {
        Self { errno, words: error_text(errno) }
    }

    /// Whether it was not wanted any more.
    pub(crate) const fn is_unwanted(&self) -> bool {
        self.errno == Errno::ECANCELED as i32
    }
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> Self {
        if is_unwanted(&error) {
            return Self::from_errno(Errno::ECANCELED as i32);
        }
        Self { errno: error.raw_os_error().unwrap_or(Errno::EIO as i32), words: io_error_text(&error) }
    }
}

/// A shell that runs the line. With allowed directories the line must begin with a program that is
/// in one of them, links followed; the shell gets that path, and nothing by which it could run
/// another program.
pub(crate) fn prepare(line: &[u8], allowed: &[Vec<u8>]) -> Result<Command, NotRun> {
    let mut shell = fd_os::process::command("/bin/sh");
    shell.arg("-c");
    if line.is_empty() {
        return Err(NotRun::from_errno(Errno::ENOENT as i32));
    }
    if line.contains(&0) {
        return Err(NotRun::from_errno(Errno::EINVAL as i32));
    }
    if allowed.is_empty() {
        shell.arg(OsStr::from_bytes(line));
        return Ok(shell);
    }
    check_allowed(line, allowed).map_err(|refused| {
        NotRun::from_errno(match refused {
            ProgramNotAllowed::Path => NOT_IN_ALLOWED_PATHS,
            ProgramNotAllowed::Character => NOT_ALLOWED_CHARACTER,
        })
    })?;
    // A shell begins a new command there.
    if line.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Err(NotRun::from_errno(NOT_ALLOWED_CHARACTER));
    }
    let (program, arguments) = split_program(line).ok_or_else(|| NotRun::from_errno(NOT_IN_ALLOWED_PATHS))?;
    let real = fs::canonicalize(OsStr::from_bytes(program))?;
    let lies = |directory: &Vec<u8>| {
        fs::canonicalize(OsStr::from_bytes(directory))
            .is_ok_and(|directory| lies_in(real.as_os_str().as_bytes(), directory.as_os_str().as_bytes()))
    };
    if !allowed.iter().any(lies) {
        return Err(NotRun::from_errno(NOT_IN_ALLOWED_PATHS));
    }
    let line = [b"exec \"$0\"", arguments].concat();
    shell.arg(OsStr::from_bytes(&line)).arg(real);
    Ok(shell)
}

/// Whether these directories take a line.
///
/// # Errors
/// They don't: the number of the error.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "plugin hosts use it"))]
pub(crate) fn check_program(line: &[u8], allowed: &[Vec<u8>]) -> Result<(), i32> {
    prepare(line, allowed).map(drop).map_err(|why| why.errno)
}

/// The program of a line, and the rest, which is empty or begins with a blank. `None` if a shell
/// would make another word of it.
fn split_program(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let (program, rest) = if let (quote @ (b'"' | b'\''), rest) = line.split_first()? {
        let end = rest.iter().position(|byte| byte == quote)?;
        (rest.get(..end)?, rest.get(end + 1..)?)
    } else {
        let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let program = line.get(..end)?;
        if program.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'*' | b'?' | b'[')) {
            return None;
        }
        (program, line.get(end..)?)
    };
    matches!(rest.first(), None | Some(b' ' | b'\t')).then_some((program, rest))
}

#[cfg(test)]
mod tests;
