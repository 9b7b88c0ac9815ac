//! `bacula-fd`: command line, start-up, and the wiring of the crates that do the work.
//!
//! Its rooms, from the top: [`daemon`] is the process and the services that it starts; [`director`]
//! answers a Director's commands, [`status`] and [`metrics`] tell what runs; [`job`] runs backups,
//! restores and scripts; [`connection`] makes connections and leads the dialogues on them;
//! [`shared`] is the state that all of them share; [`security`] guards the host and its
//! connections.

mod clock;
mod connection;
mod daemon;
mod delivery;
mod director;
mod job;
mod metrics;
mod print;
mod security;
mod shared;
mod status;
mod texts;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::daemon::{bfdjson, start};
use crate::job::matcher;

/// Memory that is freed by threads that handle secrets is overwritten.
#[global_allocator]
static ALLOCATOR: fd_os::wiping::Wiping = fd_os::wiping::Wiping;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if matcher::is_meant(&arguments) {
        return ExitCode::from(matcher::serve());
    }
    if bfdjson::is_meant(&arguments) { ExitCode::from(bfdjson::run(arguments)) } else { start::run(arguments) }
}
