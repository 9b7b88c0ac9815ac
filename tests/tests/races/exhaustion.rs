//! The process is out of threads, descriptors or memory: the n-th call that asks for one fails, or
//! that one and some after it. `RACES=20000` takes all calls instead of a selection.
//!
//! A daemon may not die of it, except without memory: the standard library ends a process that
//! can't begin a thread or grow a buffer for want of it. Whether it lives or not, no file is lost
//! or spoiled without a message, and the next job is good. As a Director waits a minute for a
//! daemon that has died, memory has its turns only if `RACES` is set.

use std::process::ExitStatus;

use bed::{Fd, JobResult, ONLY_OURS, PATIENCE, Racer, Result, Rule, wait_for};

use crate::faults::{ESTIMATE, Stage, WHATS, judge_backup};
use crate::scene::{Tally, remove, spread, wanted};

/// Units of one job.
const UNITS: usize = 12;
/// Of each kind and job in `make test`.
const USUALLY: usize = 3;

/// What there may be none of.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    /// The calls that ask for it.
    calls: &'static str,
    /// How they fail.
    errno: i32,
}

/// With EAGAIN, EMFILE, ENOMEM.
static KINDS: [Kind; 3] = [
    Kind { name: "thread", calls: "clone,clone3", errno: 11 },
    Kind {
        name: "descriptor",
        calls: "open,openat,openat2,creat,socket,accept4,pipe2,epoll_create1,eventfd2,fcntl",
        errno: 24,
    },
    Kind { name: "memory", calls: "mmap,brk,mremap,mprotect", errno: 12 },
];
/// The threads that a Director's connection has before it is known.
const THREADS: usize = 2;
/// How many calls in a row fail.
const TIMES: [u64; 2] = [1, 30];

/// One job in which something is not to be had.
#[derive(Debug)]
struct Turn {
    what: &'static str,
    kind: &'static Kind,
    /// 0: the calls are only counted.
    nth: usize,
    times: u64,
}

/// What became of it.
enum Outcome {
    Ended(JobResult),
    /// What an estimate has printed.
    Listed(String),
    /// The daemon has died, and the job with it.
    Died(ExitStatus, Option<u32>),
}

impl Turn {
    /// One for each thread of the Director's connection.
    fn brief_for_a_session() -> Vec<Self> {
        (1..=THREADS).map(|nth| Self { what: "backup", kind: &KINDS[0], nth, times: 1 }).collect()
    }

    /// Whether it is a thread of the Director's connection that can't be had at once: its own, or
    /// the one that asks whether it may connect.
    fn is_brief_for_a_session(&self) -> bool {
        self.what == "backup" && self.kind.name == "thread" && self.nth <= THREADS && self.times == 1
    }
}

impl Stage {
    /// How the daemon has died, if it has.
    fn died(&mut self) -> Result<Option<ExitStatus>> {
        self.bed.client("test")?.daemon().process()?.try_exit()
    }

    /// Starts a new daemon for one that has died.
    fn revive(&mut self) -> Result<()> {
        if self.died()?.is_some() {
            let daemon = self.bed.client("test")?.daemon();
            daemon.ended()?;
            daemon.start()?;
        }
        Ok(())
    }

    /// Does it once, until it has ended or the daemon has died.
    fn act_or_die(&mut self, what: &str) -> Result<Outcome> {
        let command = self.command(what);
        if command == ESTIMATE {
            let listed = self.bed.console(&[ESTIMATE])?;
            return Ok(self.died()?.map_or(Outcome::Listed(listed), |status| Outcome::Died(status, None)));
        }
        let job = self.bed.queue(&command)?;
        wait_for("the end of the job or of the daemon", 2 * PATIENCE, || {
            let (has_died, status) = (self.died()?.is_some(), self.bed.catalog().job(job)?.status);
            Ok(if has_died || "TEfAD".contains(status) { Ok(()) } else { Err(format!("{status}")) })
        })?;
        match self.died()? {
            Some(status) => Ok(Outcome::Died(status, Some(job))),
            None => Ok(Outcome::Ended(self.bed.wait(job)?)),
        }
    }

    /// What is wrong after it; the calls are counted in the tally, and their number is given. Jobs
    /// of which the Director does not know yet that their daemon is dead are added to `dead`.
    fn exhaust(&mut self, turn: &Turn, tally: &mut Tally, dead: &mut Vec<u32>) -> Result<(Vec<String>, usize)> {
        self.revive()?;
        let Kind { name, calls, errno } = turn.kind;
        let action = format!("errno {errno} {}", turn.times);
        let rule = Rule { below: None, nth: turn.nth as u64, calls: (*calls).to_owned(), action };
        let watch = self.scene.watch(&mut self.bed, "test", &[rule])?;
        let outcome = self.act_or_die(turn.what)?;
        let counted = watch.finish()?.remove(0);
        tally.add(name, &counted);
        let mut problems = Vec::new();
        match outcome {
            Outcome::Died(status, job) => {
                if *name != "memory" {
                    let output = self.bed.client("test")?.daemon().output();
                    problems.push(format!("the daemon has died: {status}\n{output}"));
                }
                dead.extend(job);
            }
            Outcome::Ended(job) if turn.is_brief_for_a_session() && job.row.status != 'T' => {
                problems.push(format!("a session that has no thread for a moment is lost: {}", job.log));
            }
            // It could not begin or end, and the operator knows.
            Outcome::Ended(job) if job.row.status == 'f' => problems.extend(unexplained(&job)),
            Outcome::Ended(job) => problems.extend(self.judge(turn.what, Some(&job), "")?),
            Outcome::Listed(listed) => problems.extend(unexplained_estimate(&listed, name)),
        }
        remove(&self.to);
        let acted = counted.acted;
        let cause = |problem| format!("{problem} ({turn:?}: {acted:?})");
        Ok((problems.into_iter().map(cause).collect(), usize::try_from(counted.calls).unwrap()))
    }
}

/// A job that has failed has a message that says why.
fn unexplained(job: &JobResult) -> Option<String> {
    let is_told = job.log.contains("Fatal error") || job.log.contains("Error:");
    (!is_told).then(|| format!("a job failed and nobody says why: {}", job.log))
}

/// An estimate comes to its end, or says why not. It says nothing of what it could not look up, as
/// the stock daemon's.
fn unexplained_estimate(listed: &str, what_there_is_none_of: &str) -> Option<String> {
    let is_whole = listed.contains("2000 OK estimate")
        && (what_there_is_none_of != "thread" || !listed.contains("2000 OK estimate files=0 "));
    let is_told = is_whole || ["rror", "ailed", "no thread", "Unable"].iter().any(|word| listed.contains(word));
    (!is_told).then(|| format!("an estimate failed and nobody says why: {listed}"))
}

#[test]
fn without_threads_descriptors_or_memory_nothing_is_lost_silently() -> Result<()> {
    skip::lacks!(Racer::missing());
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let mut stage = Stage::start("exhaustion", UNITS)?;
    let mut tally = Tally::default();
    let (mut turns, mut dead) = (Turn::brief_for_a_session(), Vec::new());
    // The last kind is deadly.
    let kinds = if std::env::var_os("RACES").is_some() { KINDS.len() } else { KINDS.len() - 1 };
    for kind in KINDS.iter().take(kinds) {
        for what in WHATS {
            let count = Turn { what, kind, nth: 0, times: 1 };
            let (problems, calls) = stage.exhaust(&count, &mut tally, &mut dead)?;
            assert_eq!(problems, Vec::<String>::new());
            let all = calls * TIMES.len();
            let drawn = (0..wanted("RACES", USUALLY).min(all)).map(|number| spread(number, all));
            turns.extend(drawn.map(|choice| Turn {
                what,
                kind,
                nth: 1 + choice / TIMES.len(),
                times: *TIMES.get(choice % TIMES.len()).unwrap(),
            }));
        }
    }
    let mut problems = Vec::new();
    for turn in &turns {
        problems.extend(stage.exhaust(turn, &mut tally, &mut dead)?.0);
    }
    for job in &dead {
        problems.extend(unexplained(&stage.bed.wait(*job)?));
    }
    stage.revive()?;
    let last = stage.bed.backup("test", "level=Full")?.must_be_good()?;
    problems.extend(judge_backup(&stage.bed, &stage.scene, UNITS, &last)?);
    bed::say(&format!("{} turns, {} of them deadly: {tally}", turns.len(), dead.len()));
    problems.iter().take(60).for_each(|problem| bed::say(problem));
    assert!(problems.is_empty(), "{} problems", problems.len());
    assert!(tally.done(&["failed"]) * 2 > turns.len(), "few faults: {tally}");
    Ok(())
}
