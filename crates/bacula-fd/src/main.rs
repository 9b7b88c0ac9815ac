//! `bacula-fd`: command line, start-up, and the wiring of the crates that do the work. Thin.

mod backup;
mod bfdjson;
mod child;
mod cli;
mod clock;
mod collectors;
mod daemon;
mod debug;
mod dial;
mod director;
mod exchange;
mod getopt;
mod hang_up;
mod host;
mod hosts_access;
mod job;
mod keyring;
mod keys;
mod lifecycle;
mod log;
mod matcher;
mod metrics;
mod notify;
mod outbox;
mod packet_check;
mod places;
mod platform;
mod probe;
mod program;
mod pulses;
mod record_feed;
mod registration;
mod restore;
mod runscript;
mod sent_records;
mod signatures;
mod start;
mod state_file;
mod statistics;
mod status;
mod storage;
mod supervisor;
mod texts;
mod timetable;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

/// What threads free that handle secrets is overwritten.
#[global_allocator]
static ALLOCATOR: fd_os::wiping::Wiping = fd_os::wiping::Wiping;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if matcher::is_meant(&arguments) {
        return ExitCode::from(matcher::serve());
    }
    if bfdjson::is_meant(&arguments) { ExitCode::from(bfdjson::run(arguments)) } else { start::run(arguments) }
}
