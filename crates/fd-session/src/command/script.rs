//! The commands that bring a command line to be run on this host (reference 02 §4.8).

use fd_bsock::scan::{Lenient, unbash_spaces};

/// What runs programs on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptCommand {
    /// `RunBeforeJob`: a command line to be run now.
    BeforeJob(Vec<u8>),
    /// `RunBeforeNow`: the scripts of this moment are to be run.
    BeforeNow,
    /// `RunAfterJob`: a script to be run at the end of the job.
    AfterJob(RunScript),
    /// `Run`: a script to be run later.
    Run(RunScript),
}

impl ScriptCommand {
    pub(super) fn before_job(frame: &[u8]) -> Self {
        Self::BeforeJob(command_behind("RunBeforeJob ", frame))
    }

    pub(super) fn after_job(frame: &[u8]) -> Self {
        let command = command_behind("RunAfterJob ", frame);
        let when = RunScript::AFTER;
        Self::AfterJob(RunScript { on_success: true, on_failure: false, abort_on_error: true, when, command })
    }

    pub(super) fn run(frame: &[u8]) -> Option<Self> {
        let mut scan = Lenient::new(frame);
        let on_success = scan.text("Run OnSuccess=")?.u32() != 0;
        let on_failure = scan.text(" OnFailure=")?.u32() != 0;
        let abort_on_error = scan.text(" AbortOnError=")?.u32() != 0;
        let when = scan.text(" When=")?.u32();
        let command = unbash_spaces(scan.text(" Command=")?.word(usize::MAX));
        Some(Self::Run(RunScript { on_success, on_failure, abort_on_error, when, command }))
    }
}

/// The command line behind `head`.
fn command_behind(head: &str, frame: &[u8]) -> Vec<u8> {
    Lenient::new(frame).text(head).map(|scan| unbash_spaces(scan.word(usize::MAX))).unwrap_or_default()
}

/// A program that is to be run on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunScript {
    /// Run if the job is well.
    pub on_success: bool,
    /// Run if the job has failed.
    pub on_failure: bool,
    /// A program that fails makes the job fail.
    pub abort_on_error: bool,
    /// When: the sum of [`RunScript::AFTER`], [`RunScript::BEFORE`], [`RunScript::AFTER_VSS`].
    pub when: u32,
    /// The command line, with job codes.
    pub command: Vec<u8>,
}

impl RunScript {
    /// At the end of the job.
    pub const AFTER: u32 = 1;
    /// At `RunBeforeNow`.
    pub const BEFORE: u32 = 2;
    /// When snapshots are made, before the first file.
    pub const AFTER_VSS: u32 = 4;
}
