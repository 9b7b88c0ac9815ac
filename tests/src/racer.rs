//! A daemon that is stopped at its system calls by the program `racer`, which
//! `tests/src/bin/racer` describes.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};

use crate::error::{BedError, Result};
use crate::patience::wait_for_input;
use crate::process::converse;

/// What is done at which call.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Calls about this directory or something below it count; without it all.
    pub below: Option<PathBuf>,
    /// The number of the call, from 1. With 0 they are only counted.
    pub nth: u64,
    /// Names of system calls with commas between them, or `*`.
    pub calls: String,
    /// As `errno 5`, `errno 24 30`, `short 10`, `kill`, `do link`.
    pub action: String,
}

/// What came of a rule.
#[derive(Debug, Clone)]
pub struct Counted {
    /// How many calls counted.
    pub calls: u64,
    /// What it has done.
    pub acted: Option<Acted>,
}

/// What a rule has done.
#[derive(Debug, Clone)]
pub struct Acted {
    /// The system call.
    pub call: String,
    /// `failed`, `shortened`, `enough`, `killed`, `done`, or an error of the other user.
    pub outcome: String,
    /// What the call was about.
    pub path: String,
}

/// Every call that creates, changes, renames or removes a file, or makes that durable.
pub const WRITING: &str = "open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,truncate,ftruncate,\
    fallocate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mknod,mknodat,\
    chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,fsetxattr,lsetxattr,setxattr,fsync,fdatasync";

/// A process that is being watched.
#[derive(Debug)]
pub struct Racer {
    child: Child,
    input: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    rules: usize,
}

impl Racer {
    /// Why no process can be watched here, if so.
    pub fn missing() -> Option<&'static str> {
        if cfg!(not(target_arch = "x86_64")) {
            return Some("needs x86-64");
        }
        (!nix::unistd::geteuid().is_root()).then_some("needs root")
    }

    /// Attaches to a process, and returns when every call counts. `program` is racer, `arguments`
    /// are its options; the rules are written to a file in `folder`.
    pub fn attach(program: &Path, arguments: &[OsString], pid: u32, rules: &[Rule], folder: &Path) -> Result<Self> {
        let mut text = String::new();
        for Rule { below, nth, calls, action } in rules {
            let below = below.as_ref().map_or("*".to_owned(), |path| path.display().to_string());
            // Into a string, which does not fail.
            let _ = writeln!(text, "{below} {nth} {calls} {action}");
        }
        let file = folder.join("rules");
        fs::write(&file, text).map_err(BedError::file("write", &file))?;
        let mut argv: Vec<OsString> = vec![program.into()];
        argv.extend_from_slice(arguments);
        argv.extend([pid.to_string().into(), file.into()]);
        let (child, input, answers) = converse(&argv)?;
        let mut racer = Self { child, input: Some(input), answers, rules: rules.len() };
        wait_for_input("racer to be ready", racer.answers.get_ref())?;
        let mut line = String::new();
        racer.answers.read_line(&mut line).map_err(|error| problem(error.to_string()))?;
        if line == "ready\n" { Ok(racer) } else { Err(problem(format!("expected \"ready\", got {line:?}"))) }
    }

    /// Lets the process run on, and says what came of each rule.
    pub fn finish(mut self) -> Result<Vec<Counted>> {
        drop(self.input.take());
        let mut report = String::new();
        self.answers.read_to_string(&mut report).map_err(|error| problem(error.to_string()))?;
        let counted: Vec<_> = report.lines().map_while(Counted::parse).collect();
        if counted.len() == self.rules { Ok(counted) } else { Err(problem(format!("not a report: {report:?}"))) }
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        drop(self.input.take());
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Counted {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ').skip(2);
        let calls = words.next()?.parse().ok()?;
        let mut word = || words.next().map(str::to_owned);
        let acted = match (word(), word(), word()) {
            (Some(call), Some(outcome), Some(path)) => Some(Acted { call, outcome, path }),
            _ => None,
        };
        Some(Self { calls, acted })
    }
}

fn problem(problem: String) -> BedError {
    BedError::Program { program: "racer".to_owned(), problem }
}
