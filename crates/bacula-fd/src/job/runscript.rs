//! Programs that the Director orders to run on this host, before and after a job
//! (reference 02 §10).

use std::cell::Cell;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt as _;

use fd_fileset::ProgramNotAllowed;
use fd_messages::MessageType;
use fd_os::io_error_text;
use fd_session::JobStatus;
use fd_session::command::RunScript;

use crate::job::job_codes::Surroundings;
use crate::job::program::{self, NotRun};
use crate::shared::job::Job;
use crate::texts;
use fd_os::process::{Group, Watched, is_unwanted};

/// Longest piece of output that makes one message, in bytes.
const LINE_MAX: usize = 499;
/// How much a script may print after the Director has gone, in bytes.
const UNHEARD_MAX: usize = 1 << 20;
/// Status of a program that could not even be tried.
const NOT_STARTED: i32 = -402_653_185;

/// When scripts are run, and what messages call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// The command `RunBeforeJob` itself.
    AtOnce,
    /// The command `RunBeforeNow`.
    Before,
    /// Before the first file of a backup.
    AfterVss,
    /// At the end of the connection.
    After,
}

impl Moment {
    const fn label(self) -> &'static str {
        match self {
            Self::AtOnce => "ClientRunBeforeJob",
            Self::Before => "ClientBeforeJob",
            Self::AfterVss => "ClientAfterVSS",
            Self::After => "ClientAfterJob",
        }
    }

    const fn bit(self) -> u32 {
        match self {
            Self::AtOnce | Self::Before => RunScript::BEFORE,
            Self::AfterVss => RunScript::AFTER_VSS,
            Self::After => RunScript::AFTER,
        }
    }

    const fn is_before_the_job(self) -> bool {
        matches!(self, Self::AtOnce | Self::Before)
    }

    /// Whether a job in this state counts as successful at this moment.
    const fn is_well(self, status: JobStatus) -> bool {
        match self {
            Self::AtOnce => true,
            Self::Before => matches!(status, JobStatus::Running | JobStatus::Created),
            Self::AfterVss => matches!(status, JobStatus::Blocked),
            Self::After => matches!(status, JobStatus::Terminated | JobStatus::Warnings),
        }
    }

    /// Whether `script` is to be run now, given the job's state.
    pub(crate) const fn wants(self, script: &RunScript, status: JobStatus) -> bool {
        let failed =
            status.is_canceled() || (matches!(status, JobStatus::Differences) && !matches!(self, Self::AfterVss));
        script.when & self.bit() != 0 && ((script.on_success && self.is_well(status)) || (script.on_failure && failed))
    }
}

/// Whether a script is still wanted.
///
/// A `cancel` ends scripts before the job, whichever comes first. After the job it ends the script
/// that runs at that time, and no later one: scripts that clean up after a canceled job run.
/// Without its Director a job that has not begun will not begin, so the scripts before it end,
/// too. Those of a job that runs or has run go on, because their effect on the host is still
/// needed, but not without a bound: their output has no reader.
struct Watch<'w> {
    job: &'w Job,
    aborts: u32,
    moment: Moment,
    ask_director_gone: &'w dyn Fn() -> bool,
    director_gone: Cell<bool>,
    unheard: Cell<usize>,
}

impl<'w> Watch<'w> {
    fn new(job: &'w Job, moment: Moment, ask_director_gone: &'w dyn Fn() -> bool) -> Self {
        let (director_gone, unheard) = (Cell::new(false), Cell::new(0));
        let aborts = if moment.is_before_the_job() { 0 } else { job.aborts() };
        Self { job, aborts, moment, ask_director_gone, director_gone, unheard }
    }

    fn is_wanted(&self) -> bool {
        if self.job.aborts() != self.aborts {
            return false;
        }
        let gone = self.director_gone.get() || (self.ask_director_gone)();
        self.director_gone.set(gone);
        !gone || (!self.moment.is_before_the_job() && self.unheard.get() <= UNHEARD_MAX)
    }

    fn printed(&self, bytes: usize) {
        if self.director_gone.get() {
            self.unheard.set(self.unheard.get().saturating_add(bytes));
        }
    }
}

/// Runs the scripts of this moment, one after the other; each starts from the state that the
/// previous one left.
pub(crate) fn run_all(
    scripts: &[RunScript],
    moment: Moment,
    job: &Job,
    surroundings: &Surroundings,
    director_gone: &dyn Fn() -> bool,
    say: &mut dyn FnMut(MessageType, &[u8]),
) {
    for script in scripts {
        if moment.wants(script, job.status()) {
            run(script, moment, job, surroundings, director_gone, say);
        }
    }
}

/// Runs one script. A failure is an error of the job, and with `abort_on_error` its end.
fn run(
    script: &RunScript,
    moment: Moment,
    job: &Job,
    surroundings: &Surroundings,
    director_gone: &dyn Fn() -> bool,
    say: &mut dyn FnMut(MessageType, &[u8]),
) {
    let label = moment.label();
    let watch = Watch::new(job, moment, director_gone);
    let ended = if let Some(command) = surroundings.expand(&script.command, job) {
        say(MessageType::Info, &texts::script_starts(label, &command));
        execute(&command, &surroundings.allowed, &watch, &mut |line| {
            say(MessageType::Info, &texts::script_says(label, line));
        })
    } else {
        Err(Failure::of_exec(&program::too_long()))
    };
    if let Err(failure) = ended {
        if let Some(why) = failure.refused {
            say(MessageType::Warning, &texts::script_refused(label, why));
        }
        say(MessageType::Error, &texts::script_failed(label, failure.status, &failure.error));
        if script.abort_on_error {
            job.change_status(JobStatus::Error);
        }
    }
}

struct Failure {
    status: i32,
    error: String,
    /// Why the program may not be run.
    refused: Option<ProgramNotAllowed>,
}

impl Failure {
    fn not_started() -> Self {
        Self { status: NOT_STARTED, error: "Unknown Error".to_owned(), refused: None }
    }

    fn of(why: &NotRun) -> Self {
        match why {
            NotRun::Exec(error) if !is_unwanted(error) => Self::of_exec(error),
            NotRun::NoProcess(error) => {
                // The message has no reason (reference 02 §10.5).
                tracing::warn!(%error, "a script can't be started");
                Self::not_started()
            }
            NotRun::Refused(why) => Self { refused: Some(*why), ..Self::not_started() },
            NotRun::Exec(_) | NotRun::Empty => Self::not_started(),
        }
    }

    fn of_exec(error: &io::Error) -> Self {
        let status = program::exec_status(error);
        let words = if status == 255 { "Unknown error during program execvp".to_owned() } else { io_error_text(error) };
        Self { status, error: words, refused: None }
    }
}

fn execute(command: &[u8], allowed: &[Vec<u8>], watch: &Watch<'_>, line: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
    let wanted = || watch.is_wanted();
    let (child, output) =
        program::start_while(command, allowed, Group::Stays, &wanted).map_err(|why| Failure::of(&why))?;
    let mut output =
        Pieces { output: BufReader::new(Watched::new(output, &wanted)), piece: Vec::new(), may_pair: false };
    let ended = loop {
        match output.next() {
            Ok(None) => break child.wait(&wanted).ok(),
            Ok(Some(piece)) => {
                // A NUL ends the text of a message.
                line(piece.split(|byte| *byte == 0).next().unwrap_or_default());
                watch.printed(piece.len() + 1);
            }
            Err(error) if is_unwanted(&error) => break child.end(),
            Err(error) => {
                tracing::warn!(%error, "a script's output can't be read");
                break child.wait(&wanted).ok();
            }
        }
    };
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let number = status.code().or_else(|| status.signal()).unwrap_or(NOT_STARTED);
            Err(Failure { status: number, error: texts::ended(status), refused: None })
        }
        None => Err(Failure::not_started()),
    }
}

/// The pieces of a program's output that make one message each: lines, however they end, and parts
/// of lines that are too long.
struct Pieces<R> {
    output: R,
    piece: Vec<u8>,
    /// The piece before has ended with a carriage return: a line feed now is part of that end.
    may_pair: bool,
}

impl<R: BufRead> Pieces<R> {
    /// The next one, without its end; `None` at the end of the output.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.piece.clear();
        while self.piece.len() < LINE_MAX {
            let mut rest = self.output.fill_buf()?;
            if rest.is_empty() {
                return Ok((!self.piece.is_empty()).then_some(&self.piece));
            }
            if std::mem::take(&mut self.may_pair) && rest.first() == Some(&b'\n') {
                self.output.consume(1);
                continue;
            }
            rest = rest.get(..LINE_MAX - self.piece.len()).unwrap_or(rest);
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            self.piece.extend_from_slice(text);
            self.may_pair = end.is_some_and(|end| rest.get(end) == Some(&b'\r'));
            let used = text.len() + usize::from(end.is_some());
            self.output.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(Some(&self.piece))
    }
}

#[cfg(test)]
mod tests;
