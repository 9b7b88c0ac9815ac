//! One program of the run: what it is, and how it ended.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bed::{ASKED, BedError, Kept, Result, wait_for};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::table::{self, Group};
use crate::verdict::{self, Counts};

/// Tests of these are run once more as if the processor were the oldest that there is.
const DIGEST_PROGRAMS: [&str; 5] =
    ["fd-crypto", "fd-backup", "fd-restore", "fd-restore/restore", "fd-restore/overlapped"];
/// Which of their tests.
const DIGEST_TESTS: [&str; 5] = ["multi_buffer", "batch", "digest", "long_files", "the_stream_does_not"];

/// No program takes longer, and one that hangs is killed with what it has started.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// cargo, as everywhere.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A test program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The package's folder, and the target if that is not its library: `tests/compliance`.
    pub(crate) name: String,
    pub(crate) group: Group,
    program: OsString,
    arguments: Vec<OsString>,
    folder: PathBuf,
    /// Beside the environment that all have.
    variable: Option<(&'static str, &'static str)>,
    /// What it skips, another entry has skipped before.
    again: bool,
    /// It prints a result for each package.
    is_cargo: bool,
}

impl Entry {
    /// A program that cargo has built. It is run in its package's folder, as cargo does.
    pub(crate) fn program(name: String, executable: PathBuf, folder: PathBuf) -> Self {
        let group = table::group(&name);
        let (arguments, variable) = (Vec::new(), None);
        Self { name, group, program: executable.into(), arguments, folder, variable, again: false, is_cargo: false }
    }

    /// The same once more without vector instructions, if it has tests of digests.
    pub(crate) fn baseline(&self) -> Option<Self> {
        DIGEST_PROGRAMS.contains(&self.name.as_str()).then(|| Self {
            name: format!("{}, baseline", self.name),
            arguments: DIGEST_TESTS.map(OsString::from).to_vec(),
            variable: Some(("FERROFD_CPU", "baseline")),
            again: true,
            ..self.clone()
        })
    }

    /// The models of it only. Each plays its threads on one, and what is static may not be seen by
    /// two of them at a time.
    pub(crate) fn models(self) -> Self {
        let arguments = vec!["models::".into(), "--test-threads=1".into()];
        Self { name: format!("{}, models", self.name), arguments, ..self }
    }

    /// The doc tests of all packages, which only cargo can run.
    pub(crate) fn doc_tests() -> Self {
        let arguments = ["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"].map(OsString::from).to_vec();
        Self { arguments, is_cargo: true, ..Self::program("doc tests".to_owned(), cargo().into(), PathBuf::from(".")) }
    }

    /// Runs it to its end.
    pub(crate) fn run(self, logs: &Path, skips: &Path) -> Outcome {
        let log = logs.join(self.name.replace(['/', ' ', ','], "-")).with_extension("log");
        let begun = Instant::now();
        let ended = self.ended(&log, skips);
        let took = begun.elapsed();
        let output = fs::read(&log).unwrap_or_default();
        let counts = verdict::counts(&output, self.is_cargo);
        let (problem, cpu) = match ended {
            Ok((status, cpu)) if status.success() => {
                let problem = verdict::problem(counts, !self.is_cargo && !self.arguments.is_empty());
                (problem.or_else(|| self.unasked(&log, skips)), cpu)
            }
            Ok((status, cpu)) => (Some(status.to_string()), cpu),
            Err(error) => (Some(error.to_string()), Duration::ZERO),
        };
        Outcome { name: self.name, counts: counts.unwrap_or_default(), problem, took, cpu, output }
    }

    /// How it ended, and what processor time it took with all processes that it waited for.
    fn ended(&self, log: &Path, skips: &Path) -> Result<(ExitStatus, Duration)> {
        let failed = |error| BedError::Program { program: self.name.clone(), problem: format!("{error}") };
        let file = File::create(log).map_err(BedError::file("make", log))?;
        let again = file.try_clone().map_err(BedError::file("open", log))?;
        // It ends with us, and all that it has started with it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).envs(self.variable);
        command.env(ASKED, asked(log));
        command.env("FERROFD_SKIPS", if self.again { Path::new("") } else { skips });
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let mut child = command.spawn().map_err(failed)?;
        // Its times can be read until it is waited for.
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        let ended = wait_for("its end", LONGEST, || {
            let looked = waitid(Id::Pid(pid), flags).map_err(|source| BedError::System { what: "waitid", source })?;
            Ok(if looked == WaitStatus::StillAlive { Err(format!("see {}", log.display())) } else { Ok(()) })
        });
        if ended.is_err() {
            // It fails only if it has ended after all.
            let _ = child.kill();
        }
        let cpu = bed::cpu_with_children(child.id()).unwrap_or_default();
        let status = child.wait().map_err(failed)?;
        ended.map(|()| (status, cpu))
    }

    /// The records of the stock daemon with which the suite has compared nothing, unless it was to
    /// choose, or can't run here as a whole.
    fn unasked(&self, log: &Path, skips: &Path) -> Option<String> {
        let suite = self.name.strip_prefix("tests/")?;
        let chooses = env::vars_os().any(|(name, _)| name.to_string_lossy().ends_with("_ROWS"));
        let skips = fs::read_to_string(skips.join("skips")).unwrap_or_default();
        if chooses || skips.lines().any(|line| line.starts_with(&format!("tests/tests/{suite}"))) {
            return None;
        }
        let rows = match Kept::rows_but(suite, &fs::read_to_string(asked(log)).unwrap_or_default()) {
            Ok(rows) => rows,
            Err(error) => return Some(error.to_string()),
        };
        let some: Vec<_> = rows.iter().take(5).map(String::as_str).collect();
        (!rows.is_empty()).then(|| format!("nothing was compared with {} records: {}", rows.len(), some.join("; ")))
    }
}

/// Where a program notes which records it has compared with.
fn asked(log: &Path) -> PathBuf {
    log.with_extension("asked")
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    name: String,
    pub(crate) counts: Counts,
    /// Why it is not right, beside tests that failed.
    problem: Option<String>,
    took: Duration,
    cpu: Duration,
    /// All that it printed.
    pub(crate) output: Vec<u8>,
}

impl Outcome {
    pub(crate) fn is_red(&self) -> bool {
        self.failed() > 0
    }

    /// Tests that failed; a program that died counts as one.
    pub(crate) fn failed(&self) -> usize {
        self.counts.failed.max(usize::from(self.problem.is_some()))
    }

    /// One line about it.
    pub(crate) fn head(&self) -> String {
        let Self { name, counts, problem, took, cpu, .. } = self;
        let result = if self.is_red() { "FAILED" } else { "ok" };
        let problem = problem.as_ref().map(|problem| format!(", {problem}")).unwrap_or_default();
        format!(
            "=== {name}: {result}, {} passed, {} failed{problem}; {} s, CPU {} s",
            counts.passed,
            counts.failed,
            took.as_secs(),
            cpu.as_secs()
        )
    }
}
