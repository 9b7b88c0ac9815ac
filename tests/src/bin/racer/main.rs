//! Stops another process at its system calls, and lets something happen there.
//!
//! `racer --uid N --spare DIR --grave DIR --lure DIR PID RULES` attaches to all threads of a
//! process and prints `ready`. It detaches and ends when its standard input ends. RULES is a file
//! with a rule on each line:
//!
//! `PATH NTH CALLS ACTION`
//!
//! PATH is a directory: a call counts if it is about this directory or something below it, by a
//! name or by a descriptor. `*` is any call, about whatever. NTH is the number of the call, from 1,
//! at which the rule acts; 0 only counts. CALLS are names of system calls with commas
//! between them, or `*`. ACTION is one of:
//!
//! - `errno N [TIMES]`: the call is not done and fails with this number (`close` is done), and so
//!   do those after it, until so many have failed (1).
//! - `short N`: the call reads or writes at most so many bytes.
//! - `kill`: the process is killed before the call.
//! - `do WHAT`: another user (`--uid`) does something to the object that the call is about, before
//!   it: see `actor.rs`.
//!
//! At the end there is a line for each rule: `rule INDEX CALLS`, with how many calls counted; and
//! if it has acted, ` CALL OUTCOME PATH` behind it.
//!
//! A tool of tests, for x86-64. Programs that the process starts are not watched.

mod actor;
mod arguments;
mod calls;
mod memory;
mod rules;
mod tracer;

use std::fs::File;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;

use actor::Actor;
use arguments::Arguments;
use rules::Rules;
use tracer::Tracer;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails, too.
            let _ = writeln!(io::stderr(), "racer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    if arguments.act {
        return actor::obey(arguments);
    }
    let mut rules = Rules::read(&arguments.rules)?;
    let log = arguments.log.as_ref().map(File::create).transpose()?;
    let mut tracer = Tracer::attach(arguments.pid, Actor::start()?, log)?;
    writeln!(io::stdout(), "ready")?;
    tracer.run(&mut rules)?;
    io::stdout().write_all(&rules.report())
}
