//! `bsnapshot`: makes, mounts and deletes the snapshots of one backup job, for the File Daemon
//! (reference 07 §12.4, §12.7).
//!
//! The daemon starts it once for each action and says in environment variables what is wanted; the
//! answer is `key=value` pairs on standard output. It runs as root on paths that other users may
//! have made, so:
//! - programs are found in a fixed list of directories, and run without a shell (`tools`);
//! - directories are opened component by component, never through a link (`place`);
//! - only what it could have made itself is unmounted or deleted (`backend`).

mod answer;
mod arguments;
mod backend;
mod failure;
mod mounts;
mod place;
mod request;
mod settings;
mod texts;
mod tools;
mod trace;

use std::io::Write as _;
use std::process::ExitCode;

use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::backend::{Work, check_all, run};
use crate::request::{Action, Request};
use crate::settings::Settings;
use crate::tools::Tools;
use crate::trace::Trace;

/// Wrong use: no action, unknown options.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(complaint) => return usage(&complaint),
    };
    let request = Request::from_environment(|name| std::env::var_os(name), &arguments);
    let Some(action) = request.action else { return usage(b"") };
    let answer = serve(&arguments, &request, action);
    // The daemon judges by what it gets; there is no one else to tell.
    let written = std::io::stdout().write_all(answer.text()).and_then(|()| std::io::stdout().flush());
    if written.is_ok() && answer.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(complaint: &[u8]) -> ExitCode {
    let mut text = complaint.to_vec();
    if !text.is_empty() {
        text.push(b'\n');
    }
    text.extend_from_slice(texts::USAGE.as_bytes());
    let _ = std::io::stderr().write_all(&text);
    ExitCode::from(USAGE)
}

fn serve(arguments: &Arguments, request: &Request, action: Action) -> Answer {
    let (settings, understood) = Settings::read(&arguments.settings_file, arguments.settings_given);
    let settings = settings.with(arguments);
    // Else `create` says it aloud, and what there is can be removed.
    if let Err(problem) = understood
        && action.needs_settings()
    {
        return Answer::failed(action, settings.fail_job_on_error, &problem);
    }
    let trace = Trace::open(&settings);
    let tools = Tools::new(&settings, &trace);
    trace.request(request);
    let work = Work { request, settings: &settings, tools: &tools };
    let answer = if action == Action::Check { check_all(&work) } else { run(&work, action) };
    trace.line(2, &[b"answer: ", answer.text()].concat());
    answer
}
