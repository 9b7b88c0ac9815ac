//! Runs a program in which the kernel refuses system calls.
//!
//! `refuse CALL,CALL... ERROR PROGRAM ARGUMENTS...` becomes PROGRAM. In it, and in what it starts,
//! the system calls with the numbers CALL do nothing and fail with the number ERROR. So answers a
//! container runtime that does not know a call, or a kernel that does not have it.
//!
//! A tool of tests.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::num::ParseIntError;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::str::FromStr;

use clap::Parser;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Runs a program in which the kernel refuses system calls.
#[derive(Debug, Parser)]
struct Arguments {
    /// The numbers of the system calls.
    calls: Calls,
    /// The number of the error.
    error: u32,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Numbers with commas between them.
#[derive(Clone, Debug)]
struct Calls(Vec<i64>);

impl FromStr for Calls {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
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

/// Refuses the calls, and permits all others.
fn filter(arguments: &Arguments) -> Result<BpfProgram, BackendError> {
    let rules = arguments.calls.0.iter().map(|&call| (call, Vec::new())).collect();
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
