//! Runs a program in which the kernel refuses a system call.
//!
//! `refuse CALL ERROR PROGRAM ARGUMENTS...` becomes PROGRAM. In it, and in what it starts, the
//! system call with the number CALL does nothing and fails with the number ERROR. So answers a
//! container runtime that does not know the call, or a kernel that does not have it.
//!
//! A tool of tests.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Parser;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Runs a program in which the kernel refuses a system call.
#[derive(Debug, Parser)]
struct Arguments {
    /// The number of the system call.
    call: i64,
    /// The number of the error.
    error: u32,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let error = match filter(&arguments) {
        Ok(filter) => run(&filter, &arguments.program),
        Err(error) => io::Error::other(error),
    };
    // Nothing is left to report to if this fails, too.
    let _ = writeln!(io::stderr(), "refuse: {error}");
    ExitCode::FAILURE
}

/// Refuses the call, and permits all others.
fn filter(arguments: &Arguments) -> Result<BpfProgram, BackendError> {
    let rules = [(arguments.call, Vec::new())].into();
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(arguments.error), arch)?.try_into()
}

/// Becomes the program; returns only if that fails.
fn run(filter: &BpfProgram, program: &[OsString]) -> io::Error {
    if let Err(error) = seccompiler::apply_filter(filter) {
        return io::Error::other(error);
    }
    let (name, arguments) = program.split_first().map_or_else(Default::default, |(name, rest)| (name.clone(), rest));
    Command::new(name).args(arguments).exec()
}
