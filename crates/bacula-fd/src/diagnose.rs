//! `bacula-fd --diagnose`: is everything there that a daemon with this configuration needs? One
//! line for each finding, with a hint where something is wrong, or JSON.
//!
//! - `apart`: the checks run in a second process
//! - `arguments`: what is asked for
//! - `world`: the questions to the host, which a test answers as it likes; `host`: their answers
//! - `rights`: those of the running daemon, or of the unit that starts it
//! - `patience`: storage may never answer
//! - `checks`: from the configuration and the world to findings; nothing is changed
//! - `report`: the findings as text and as JSON
//!
//! Not here: anything that a job does. No secret is ever in a finding.

mod apart;
mod arguments;
mod checks;
mod finding;
mod host;
mod patience;
mod report;
mod rights;
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
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let wish = match arguments::parse(arguments.iter().cloned()) {
        Ok(wish) => wish,
        Err(text) => {
            print(&mut io::stderr(), &text);
            return ExitCode::FAILURE;
        }
    };
    if apart::is_meant(arguments) {
        let (report, status) = report(&wish);
        apart::send(&report, status);
        return ExitCode::SUCCESS;
    }
    // Without a second process, as where there is no /proc, this one looks itself.
    let (report, status) = apart::report(arguments).unwrap_or_else(|_| report(&wish));
    print(&mut io::stdout(), &report);
    ExitCode::from(status)
}

/// What was found, as it is asked for, and the status.
fn report(wish: &Wish) -> (Vec<u8>, u8) {
    // The configuration holds passwords.
    fd_os::wiping::wipe_what_this_thread_frees();
    fd_os::locale::set_from_environment();
    let (name, findings) = findings(wish);
    let text = if wish.json { report::json(&name, &findings) } else { report::text(&findings) };
    let has_fault = findings.iter().any(|finding| finding.state == State::Fault);
    (text.into_bytes(), u8::from(has_fault))
}

/// The daemon's name, if it is known, and what was found. As in a start, the configuration and the
/// keys are read before the process becomes another user.
fn findings(wish: &Wish) -> (String, Vec<Finding>) {
    // A user or group of the command line stands for the daemon's, whatever the unit says.
    let host = ThisHost::new(wish.cli.user.is_none() && wish.cli.group.is_none());
    let (mut findings, read) = configuration::read(&wish.cli.config_file, &host.patience);
    let case = read.as_ref().map(|read| Case { read, world: &host, storages: &wish.storages });
    if let Some(read) = &read {
        host.look_for_the_daemon(&read.config.file_daemon);
    }
    for check in checks::BEFORE_THE_USER {
        findings.extend(case.as_ref().map(check).unwrap_or_default());
    }
    findings.extend(become_the_user(wish, &host).err());
    for check in checks::AS_THE_USER {
        findings.extend(case.as_ref().map(check).unwrap_or_default());
    }
    for check in checks::OF_THE_HOST {
        findings.extend(check(&host));
    }
    let name = read.map(|read| read.config.file_daemon.name).unwrap_or_default();
    (name, findings)
}

/// As a start does. Without the options for that, root becomes what the daemon is.
fn become_the_user(wish: &Wish, host: &ThisHost) -> Result<(), Finding> {
    let cli = &wish.cli;
    let is_asked = cli.user.is_some() || cli.group.is_some();
    let (user, group, reads_all) = match host.other_user() {
        _ if is_asked => (cli.user.clone(), cli.group.clone(), cli.keep_read_all),
        Some((user, group, reads_all)) => (Some(user), Some(group), reads_all),
        None => return Ok(()),
    };
    if host.patience.is_lost() {
        return Err(Finding::fault(texts::PROCESS, texts::NOT_AS_THE_USER, texts::HINT_NOT_AS_THE_USER));
    }
    drop_privileges(user.as_deref(), group.as_deref(), reads_all).map_err(|error| {
        if is_asked {
            Finding::fault(texts::PROCESS, error.reason(), texts::HINT_USER)
        } else {
            Finding::warning(texts::PROCESS, error.reason(), texts::HINT_OTHER_USER)
        }
    })
}
