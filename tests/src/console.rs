//! A console that stays logged in: what a job takes counts from a command that needs no login, to
//! the last write of the catalog for the job.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bed::Bed;
use crate::error::{BedError, Result};
use crate::job::JobResult;
use crate::patience::PATIENCE;
use crate::process::converse;

/// What the console says when it has logged in.
const LOGGED_IN: &str = "Enter a period to cancel a command.\n";
/// What it says of each job.
const QUEUED: &str = "Job queued. JobId=";
/// Where SQLite has what the Director writes.
const CATALOG: [&str; 3] = ["bacula.db", "bacula.db-wal", "bacula.db-journal"];

/// A console; one command at a time.
#[derive(Debug)]
pub struct Console(Mutex<Talk>);

/// Its process, which ends with the value.
#[derive(Debug)]
struct Talk {
    child: Child,
    says: ChildStdin,
    hears: ChildStdout,
    /// What it has said and nobody has looked for yet.
    heard: String,
}

/// Jobs that have ended.
#[derive(Debug)]
pub struct Clocked {
    /// What became of them, in the order of their commands.
    pub results: Vec<JobResult>,
    /// When the first command was given.
    pub begun: SystemTime,
    /// From then to the last write of the catalog.
    pub took: Duration,
}

impl Clocked {
    /// The result of the only job.
    pub fn one(self) -> Result<JobResult> {
        let [result] = <[JobResult; 1]>::try_from(self.results)
            .map_err(|results| BedError::Usage(format!("{} jobs instead of one", results.len())))?;
        Ok(result)
    }

    /// From the first command to this moment, milliseconds.
    pub fn until(&self, moment: SystemTime) -> f64 {
        moment.duration_since(self.begun).unwrap_or_default().as_secs_f64() * 1e3
    }
}

impl Console {
    /// Logs in.
    pub fn of(bed: &Bed) -> Result<Self> {
        let (child, says, hears) = converse(&bed.console_argv()?)?;
        let mut talk = Talk { child, says, hears: hears.into_inner(), heard: String::new() };
        talk.hear("the login", |heard| heard.find(LOGGED_IN).map(|at| ((), at + LOGGED_IN.len())))?;
        Ok(Self(Mutex::new(talk)))
    }

    /// Queues jobs, each when the one before is queued, and waits for the end of all.
    pub fn run(&self, bed: &Bed, commands: &[String]) -> Result<Clocked> {
        let mut talk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = SystemTime::now();
        let jobs = commands.iter().map(|command| talk.queue(command)).collect::<Result<Vec<_>>>()?;
        bed.wait_for_reports(&jobs)?;
        let ended = last_write(bed)?;
        let results = jobs.into_iter().map(|job| bed.ended(job)).collect::<Result<Vec<_>>>()?;
        Ok(Clocked { results, begun, took: ended.duration_since(begun).unwrap_or_default() })
    }
}

impl Talk {
    /// Queues a job; its `JobId`.
    fn queue(&mut self, command: &str) -> Result<u32> {
        self.says.write_all(format!("{command}\n").as_bytes()).map_err(|error| problem(command, &error, ""))?;
        self.hear(command, |heard| {
            let begin = heard.find(QUEUED)? + QUEUED.len();
            // The number is whole when something follows it.
            let length = heard.get(begin..)?.find(|letter: char| !letter.is_ascii_digit())?;
            Some((heard.get(begin..begin + length)?.parse().ok()?, begin + length))
        })
    }

    /// Listens until `find` has found something, and forgets what it has said up to the end of it.
    fn hear<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<(T, usize)>) -> Result<T> {
        let asked = Instant::now();
        loop {
            if let Some((found, end)) = find(&self.heard) {
                self.heard.drain(..end);
                return Ok(found);
            }
            let left = PATIENCE.saturating_sub(asked.elapsed());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut ready = [PollFd::new(self.hears.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, timeout).map_err(|source| BedError::System { what: "poll", source })? == 0 {
                return Err(problem(what, &format!("no answer in {PATIENCE:?}"), &self.heard));
            }
            let mut bytes = [0; 4096];
            let length = self.hears.read(&mut bytes).map_err(|error| problem(what, &error, &self.heard))?;
            if length == 0 {
                return Err(problem(what, &"it has ended", &self.heard));
            }
            self.heard.push_str(&String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()));
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Both only fail when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When the Director last wrote to the catalog. A file that is not there has nothing to say.
fn last_write(bed: &Bed) -> Result<SystemTime> {
    let folder = bed.folder().join("work/dir");
    let times = CATALOG.iter().filter_map(|name| fs::metadata(folder.join(name)).and_then(|meta| meta.modified()).ok());
    times.max().ok_or_else(|| BedError::Usage(format!("no catalog in {}", folder.display())))
}

fn problem(command: &str, problem: &dyn std::fmt::Display, answer: &str) -> BedError {
    BedError::Console { command: command.to_owned(), problem: problem.to_string(), answer: answer.to_owned() }
}
