//! `bacula-fd --diagnose`: is everything there that a daemon with this configuration needs? One
//! line for each finding, with a hint where something is wrong, or JSON.
//!
//! - `arguments`: what is asked for
//! - `world`: the questions to the host, which a test answers as it likes; `host`: their answers
//! - `checks`: from the configuration and the world to findings; nothing is changed
//! - `report`: the findings as text and as JSON
//!
//! Not here: anything that a job does. No secret is ever in a finding.

mod arguments;
mod checks;
mod finding;
mod host;
mod report;
mod texts;
mod world;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use crate::daemon::privileges::drop_privileges;
use crate::diagnose::arguments::Wish;
use crate::diagnose::checks::{Case, configuration};
use crate::diagnose::finding::{Finding, State};
use crate::diagnose::host::ThisHost;
use crate::print::print;

pub(crate) use arguments::is_meant;

/// Runs the checks; the status is 1 if there is a fault.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let wish = match arguments::parse(arguments) {
        Ok(wish) => wish,
        Err(text) => {
            print(&mut io::stderr(), &text);
            return ExitCode::FAILURE;
        }
    };
    // The configuration holds passwords.
    fd_os::wiping::wipe_what_this_thread_frees();
    fd_os::locale::set_from_environment();
    let (name, findings) = findings(&wish);
    let out = if wish.json { report::json(&name, &findings) } else { report::text(&findings) };
    print(&mut io::stdout(), out.as_bytes());
    let has_fault = findings.iter().any(|finding| finding.state == State::Fault);
    if has_fault { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The daemon's name, if it is known, and what was found. As in a start, the configuration and the
/// keys are read before the process becomes another user.
fn findings(wish: &Wish) -> (String, Vec<Finding>) {
    let (mut findings, read) = configuration::read(&wish.cli.config_file);
    let case = read.as_ref().map(|read| Case { read, world: &ThisHost, storages: &wish.storages });
    for check in checks::BEFORE_THE_USER {
        findings.extend(case.as_ref().map(check).unwrap_or_default());
    }
    let cli = &wish.cli;
    if let Err(error) = drop_privileges(cli.user.as_deref(), cli.group.as_deref(), cli.keep_read_all) {
        findings.push(Finding::fault(texts::PROCESS, error.reason(), texts::HINT_USER));
    }
    for check in checks::AS_THE_USER {
        findings.extend(case.as_ref().map(check).unwrap_or_default());
    }
    for check in checks::OF_THE_HOST {
        findings.extend(check(&ThisHost));
    }
    let name = read.map(|read| read.config.file_daemon.name).unwrap_or_default();
    (name, findings)
}
