//! The workers of a job: each is started when there are batches for it, for a thread costs as much as a small file. When
//! there is nothing left to walk, the walker's own thread works, too: a small job needs no other.
//!
//! Not here: what a worker does, and who gets which batch.

use std::io;
use std::thread::{Scope, ScopedJoinHandle};

use crate::pipeline::exchange::Stopped;
use crate::pipeline::job::Job;
use crate::pipeline::pace::Pace;
use crate::pipeline::threads::start;
use crate::pipeline::worker::Worker;

/// With so many batches that nobody is there for, one more worker is started; the first one for any.
const WORTH_ANOTHER: usize = 2;

/// See the module. The walker owns it.
pub(crate) struct Workforce<'scope, 'env, 'j> {
    scope: &'scope Scope<'scope, 'env>,
    job: &'j Job<'j>,
    /// Those that are not started, the next one last.
    waiting: Vec<Worker<'j>>,
    started: Vec<ScopedJoinHandle<'scope, ()>>,
    /// The thread that makes digests ahead.
    reading_ahead: Option<ScopedJoinHandle<'scope, ()>>,
    failure: Option<io::Error>,
}

/// What is left of a workforce when the walk and all that it has found are done.
pub(crate) struct Dispersed<'scope> {
    /// Those that were started.
    pub(crate) started: Vec<ScopedJoinHandle<'scope, ()>>,
    /// Not even the first one could be started.
    pub(crate) failure: Option<io::Error>,
}

impl<'scope, 'j: 'scope> Workforce<'scope, '_, 'j> {
    pub(crate) fn new<'env>(
        scope: &'scope Scope<'scope, 'env>,
        job: &'j Job<'j>,
        mut workers: Vec<Worker<'j>>,
    ) -> Workforce<'scope, 'env, 'j> {
        workers.reverse();
        Workforce { scope, job, waiting: workers, started: Vec::new(), reading_ahead: None, failure: None }
    }

    /// Starts one more worker if that is worth it. `unserved` is how many batches lie there that nobody is there for.
    pub(crate) fn reinforce(&mut self, unserved: usize) -> Result<(), Stopped> {
        let enough = if self.started.is_empty() { 1 } else { WORTH_ANOTHER };
        if unserved < enough {
            return Ok(());
        }
        let Some(mut worker) = self.waiting.pop() else { return Ok(()) };
        let job = self.job;
        job.exchange.expect_worker();
        let work = move || {
            job.exchange.worker_arrived();
            worker.run();
        };
        match start(self.scope, "worker", job, work) {
            Ok(started) => self.started.push(started),
            Err(error) => {
                job.exchange.worker_arrived();
                if self.started.is_empty() {
                    self.failure = Some(error);
                    return Err(Stopped);
                }
                // The others do it as well; where there is no room for a thread there soon may be none for another.
                self.waiting.clear();
            }
        }
        Ok(())
    }

    /// Starts the thread that makes digests ahead, if there are files for it.
    pub(crate) fn read_ahead(&mut self) {
        let job = self.job;
        let Some(ahead) = job.digests_ahead.as_ref().filter(|ahead| ahead.wants_thread()) else { return };
        let mut pace = Pace::new(&job.plan.host_share);
        let is_stopped = || job.is_stopped();
        match start(self.scope, "digests", job, move || ahead.run(&is_stopped, || pace.step(&is_stopped))) {
            Ok(started) => self.reading_ahead = Some(started),
            Err(_the_workers_do_it) => ahead.no_thread(),
        }
    }

    /// The walk is over: works as one of them, if they are not all at work, until nothing is left to be done.
    pub(crate) fn join_in(mut self) -> Dispersed<'scope> {
        if let Some(mut worker) = self.waiting.pop().filter(|_| self.failure.is_none()) {
            worker.run();
        }
        self.started.extend(self.reading_ahead);
        Dispersed { started: self.started, failure: self.failure }
    }
}
