//! The backups of a daemon, their threads, and the one thread that looks after them. It runs only
//! while there is a backup that is older than a quarter of a second.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use fd_messages::{Pressure, Stage, StageTimes};
use fd_os::lock::{Condvar, Mutex};
use rustix::process::{Pid, getpriority_process, setpriority_process};

use crate::manners::budget::{Budget, Manners, Times};
use crate::manners::governor::{Decision, GENEROUS_REST, Governor, MOST_REST};
use crate::manners::host::{Interval, Reader, may_raise_priority, ran_and_waited};

/// How often the host is looked at.
const INTERVAL: Duration = Duration::from_millis(250);
/// A shorter backup is nobody's trouble, and a thread costs as much as a small file. An Incremental
/// has a low priority until then, which it can't afford.
const WORTH_A_THREAD: Duration = INTERVAL;
/// Nice value of a thread that gives way. It still gets a tenth of what another thread gets: it may
/// hold a lock of the kernel that the other one waits for.
const LOW: i32 = 10;

/// Looks after the backups of one daemon.
#[derive(Debug)]
pub struct Courtesy {
    manners: Manners,
    state: Mutex<State>,
    /// The last backup has ended.
    ended: Condvar,
    /// The thread runs.
    is_looking: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    jobs: Vec<Weak<JobCourtesy>>,
}

/// One backup.
#[derive(Debug)]
pub(crate) struct JobCourtesy {
    courtesy: Arc<Courtesy>,
    times: Arc<StageTimes>,
    begun: Instant,
    /// The thread could not be started for it.
    is_refused: AtomicBool,
    /// Thousandths of the time that each thread rests.
    rest: AtomicU32,
    /// Nanoseconds that threads have rested, together.
    rested: AtomicU64,
    crew: Mutex<Crew>,
}

/// The threads of a backup.
#[derive(Debug)]
struct Crew {
    members: Vec<Member>,
    /// Working time of threads that have ended.
    ended: Duration,
    /// Processor time of threads that send.
    sending: Duration,
    /// The nice value that threads have without manners; `None`: it is not changed.
    normal: Option<i32>,
    has_low_priority: bool,
    budget: Budget,
    /// Why threads rest now.
    reason: Option<Pressure>,
}

#[derive(Debug)]
struct Member {
    thread: i32,
    since: Instant,
    /// Walks, reads or encodes; others send.
    works: bool,
    ran: Duration,
    waited: Duration,
}

/// A thread of a backup, until this is dropped on the same thread.
#[derive(Debug)]
pub(crate) struct Membership<'c> {
    job: &'c JobCourtesy,
    thread: i32,
    /// Its nice value before.
    before: Option<i32>,
}

impl Courtesy {
    /// For a daemon.
    pub fn new(manners: Manners) -> Arc<Self> {
        Arc::new(Self { manners, state: Mutex::default(), ended: Condvar::new(), is_looking: AtomicBool::new(false) })
    }

    /// A backup that has `begun`; `None` if backups have no manners.
    pub(crate) fn begin(self: &Arc<Self>, times: &Arc<StageTimes>, begun: Instant) -> Option<Arc<JobCourtesy>> {
        if self.manners == Manners::Off {
            return None;
        }
        let normal = if may_raise_priority() { getpriority_process(None).ok() } else { None };
        let job = Arc::new(JobCourtesy {
            courtesy: Arc::clone(self),
            times: Arc::clone(times),
            begun,
            is_refused: AtomicBool::new(false),
            rest: AtomicU32::new(0),
            rested: AtomicU64::new(0),
            crew: Mutex::new(Crew {
                members: Vec::new(),
                ended: Duration::ZERO,
                sending: Duration::ZERO,
                normal,
                has_low_priority: normal.is_some(),
                budget: Budget::new(self.manners),
                reason: None,
            }),
        });
        self.state.lock().jobs.push(Arc::downgrade(&job));
        Some(job)
    }

    /// Starts the thread unless it runs.
    fn look_after(self: &Arc<Self>, job: &JobCourtesy, thread: thread::Builder) {
        if self.is_looking.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = Arc::clone(self);
        if thread.spawn(move || this.look()).is_err() {
            // No attempt for each file, but one for the next backup.
            job.is_refused.store(true, Ordering::Relaxed);
            self.is_looking.store(false, Ordering::SeqCst);
            // No thread would raise the priority again.
            job.crew.lock().set_priority(false);
        }
    }

    /// Looks at the host until the last backup has ended.
    fn look(&self) {
        let most_rest = if self.manners == Manners::Generous { GENEROUS_REST } else { MOST_REST };
        let mut governor = Governor::new(most_rest);
        let mut reader = Reader::new();
        let mut looked = Instant::now();
        let mut before = reader.read(looked);
        loop {
            let state = self.ended.wait_timeout_while(self.state.lock(), INTERVAL, |state| !state.jobs.is_empty());
            if state.jobs.is_empty() {
                // Under the lock of the list: the next backup starts the thread again.
                self.is_looking.store(false, Ordering::SeqCst);
                return;
            }
            let jobs: Vec<_> = state.jobs.iter().filter_map(Weak::upgrade).collect();
            drop(state);
            let now = Instant::now();
            let after = reader.read(now);
            let interval = Interval::between(&before, &after, now.saturating_duration_since(looked));
            let has_low_priority = jobs.iter().all(|job| job.crew.lock().has_low_priority);
            let decision = governor.observe(&interval, has_low_priority);
            for job in &jobs {
                job.take(decision, interval.length, now);
            }
            (before, looked) = (after, now);
        }
    }
}

impl JobCourtesy {
    /// Thousandths of its time that a thread rests now.
    pub(crate) fn rest(&self) -> u32 {
        self.rest.load(Ordering::Relaxed)
    }

    /// A thread has rested.
    pub(crate) fn add_rest(&self, time: Duration) {
        self.rested.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// To be called now and then by a thread that works: the host is looked at if the backup is old
    /// enough.
    pub(crate) fn works_on(&self) {
        let is_looked_after =
            self.courtesy.is_looking.load(Ordering::Relaxed) || self.is_refused.load(Ordering::Relaxed);
        if !is_looked_after && self.begun.elapsed() >= WORTH_A_THREAD {
            self.courtesy.look_after(self, thread::Builder::new().name("manners".to_owned()));
        }
    }

    /// The calling thread takes part, with the priority that the backup has now. `works`: it walks,
    /// reads or encodes.
    pub(crate) fn join(&self, works: bool) -> Membership<'_> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let mut crew = self.crew.lock();
        let before = crew.normal.and_then(|_| getpriority_process(None).ok());
        // The one that sends has done other things before.
        let (ran, waited) = if works { Default::default() } else { ran_and_waited(thread).unwrap_or_default() };
        crew.members.push(Member { thread, since: Instant::now(), works, ran, waited });
        crew.apply(thread);
        Membership { job: self, thread, before }
    }

    /// Takes a decision, as far as the budget goes.
    pub(crate) fn take(&self, decision: Decision, length: Duration, now: Instant) {
        let mut crew = self.crew.lock();
        let rested = self.rest();
        if let Some(reason) = crew.reason {
            self.times.give_way(reason, length * rested / 1000);
        }
        let waited = crew.add_times();
        if decision.cpu_is_wanted && crew.has_low_priority {
            // What is no rest anyway.
            self.times.give_way(Pressure::Cpu, waited.min(length) * (1000 - rested.min(1000)) / 1000);
        }
        let may_give = crew.budget_allows(self, now);
        crew.reason = decision.reason.filter(|_| may_give);
        self.rest.store(if may_give { decision.rest } else { 0 }, Ordering::Relaxed);
        // While there are processors for all, a low priority costs nothing.
        crew.set_priority(may_give || !decision.cpu_is_wanted);
    }

    /// The backup is over, even if threads of it hang and use this longer.
    fn end(&self) {
        self.rest.store(0, Ordering::Relaxed);
        let mut state = self.courtesy.state.lock();
        state.jobs.retain(|job| !std::ptr::eq(job.as_ptr(), self));
        if state.jobs.is_empty() {
            self.courtesy.ended.notify_all();
        }
    }

    fn times(&self, crew: &Crew, now: Instant) -> Times {
        let waits = [Stage::WalkWaits, Stage::WorkWaitsForEntries, Stage::WorkWaitsForSender];
        let waits: Duration = waits.iter().map(|stage| self.times.get(*stage)).sum();
        let rested = Duration::from_nanos(self.rested.load(Ordering::Relaxed));
        Times {
            wall: now.saturating_duration_since(self.begun),
            given: Pressure::ALL.iter().map(|pressure| self.times.gave_way(*pressure)).sum(),
            work: crew.working_time(now).saturating_sub(waits + rested) + crew.sending,
            sending: self.times.get(Stage::Send),
        }
    }
}

impl Drop for JobCourtesy {
    fn drop(&mut self) {
        self.end();
    }
}

impl Crew {
    fn working_time(&self, now: Instant) -> Duration {
        let present = self.members.iter().filter(|member| member.works);
        present.map(|member| now.saturating_duration_since(member.since)).sum::<Duration>() + self.ended
    }

    /// Adds up what threads did since the last time; gives the mean of what working threads have
    /// waited for a processor.
    fn add_times(&mut self) -> Duration {
        let mut sum = Duration::ZERO;
        let mut count = 0;
        for member in &mut self.members {
            let Some((ran, waited)) = ran_and_waited(member.thread) else { continue };
            if member.works {
                sum += waited.saturating_sub(member.waited);
                count += 1;
            } else {
                self.sending += ran.saturating_sub(member.ran);
            }
            (member.ran, member.waited) = (ran, waited);
        }
        sum.checked_div(count).unwrap_or_default()
    }

    fn budget_allows(&mut self, job: &JobCourtesy, now: Instant) -> bool {
        let times = job.times(self, now);
        self.budget.allows(times)
    }

    fn set_priority(&mut self, low: bool) {
        if self.normal.is_none() || low == self.has_low_priority {
            return;
        }
        self.has_low_priority = low;
        for member in &self.members {
            self.apply(member.thread);
        }
    }

    /// A thread that is a member gets the present priority.
    fn apply(&self, thread: i32) {
        if let Some(normal) = self.normal {
            let nice = if self.has_low_priority { normal.max(LOW) } else { normal };
            // A priority that stays as it is does no harm.
            let _may_fail = setpriority_process(Pid::from_raw(thread), nice);
        }
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        let mut crew = self.job.crew.lock();
        let mut is_sender = false;
        if let Some(at) = crew.members.iter().position(|member| member.thread == self.thread) {
            let member = crew.members.swap_remove(at);
            is_sender = !member.works;
            if member.works {
                crew.ended += member.since.elapsed();
            }
        }
        if let Some(before) = self.before {
            let _may_fail = setpriority_process(Pid::from_raw(self.thread), before);
        }
        drop(crew);
        // The one that sends is the job's own, and the last one.
        if is_sender {
            self.job.end();
        }
    }
}

#[cfg(test)]
mod tests;
