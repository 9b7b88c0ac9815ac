//! `bacula-fd`: command line, start-up, and the wiring of the crates that do the work.
//!
//! Its rooms, each of which uses those below it only:
//! - [`diagnose`]: whether everything is there that a daemon needs
//! - [`daemon`]: the process: command line, start, end, and the services that run as long as it
//! - [`director`]: a Director's connection, and a handler for each of its commands
//! - [`status`], [`metrics`]: what runs, for people and for programs
//! - [`job`]: backups, restores, verify jobs, and the programs that run for them
//! - [`connection`]: connections that the daemon makes, and the dialogues on any connection
//! - [`shared`]: the state that all threads share; it starts nothing
//! - [`delivery`]: messages to files, mail, the operator and the system's log
//! - [`security`]: certificates, keys, access rules, bounded places for callers

#[cfg(test)]
mod alone;
mod clock;
mod connection;
mod daemon;
mod delivery;
mod diagnose;
mod director;
mod job;
mod metrics;
mod print;
mod security;
mod shared;
mod shortage;
mod status;
mod texts;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use fd_plugins::library;

use crate::daemon::{bfdjson, start};
use crate::job::matcher;
use crate::metrics::check;

/// Memory that is freed by threads that handle secrets is overwritten.
#[global_allocator]
static ALLOCATOR: fd_os::wiping::Wiping = fd_os::wiping::Wiping;

fn main() -> ExitCode {
    fd_os::process::expect_children();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if matcher::is_meant(&arguments) {
        return ExitCode::from(matcher::serve());
    }
    if library::is_meant(&arguments) {
        return ExitCode::from(library::serve());
    }
    if diagnose::is_meant(&arguments) {
        return diagnose::run(&arguments);
    }
    let name = arguments.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    match name.as_bytes() {
        b"check_ferrofd" => ExitCode::from(check::run(arguments)),
        b"bfdjson" => ExitCode::from(bfdjson::run(arguments)),
        _ => start::run(arguments),
    }
}
