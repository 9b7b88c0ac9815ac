//! The workers of a job. Each is started when there are batches for it, because a thread costs as
//! much as a small file. After the walk, the walker's own thread works, too: a small job needs no
//! other.
//!
//! Not here: what a worker does, and the order of batches.

use std::io;
use std::thread::{Scope, ScopedJoinHandle};

use crate::pipeline::exchange::Stopped;
use crate::pipeline::job::Job;
use crate::pipeline::threads::start;
use crate::pipeline::worker::Worker;

/// So many batches without a worker start one more; the first worker is started for any batch.
const WORTH_ANOTHER: usize = 2;

/// See the module. The walker owns it.
pub(crate) struct WorkerPool<'scope, 'env, 'j> {
    scope: &'scope Scope<'scope, 'env>,
    job: &'j Job<'j>,
    /// Workers that are not started, the next one last.
    waiting: Vec<Worker<'j>>,
    started: Vec<ScopedJoinHandle<'scope, ()>>,
    /// The thread that computes digests ahead.
    digests_ahead: Option<ScopedJoinHandle<'scope, ()>>,
    failure: Option<io::Error>,
}

/// The threads that were started, and why not even the first worker could be.
pub(crate) type Finished<'scope> = (Vec<ScopedJoinHandle<'scope, ()>>, Option<io::Error>);

impl<'scope, 'j: 'scope> WorkerPool<'scope, '_, 'j> {
    pub(crate) fn new<'env>(
        scope: &'scope Scope<'scope, 'env>,
        job: &'j Job<'j>,
        mut workers: Vec<Worker<'j>>,
    ) -> WorkerPool<'scope, 'env, 'j> {
        workers.reverse();
        WorkerPool { scope, job, waiting: workers, started: Vec::new(), digests_ahead: None, failure: None }
    }

    /// Starts one more worker if that pays. `unserved` is the number of batches without a worker.
    pub(crate) fn grow(&mut self, unserved: usize) -> Result<(), Stopped> {
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
                // The present workers suffice. If one thread can't be started, the next one
                // probably can't, either.
                self.waiting.clear();
            }
        }
        Ok(())
    }

    /// Starts the thread that computes digests ahead, if there are files for it.
    pub(crate) fn start_digests_ahead(&mut self) {
        let job = self.job;
        let Some(ahead) = job.digests_ahead.as_ref().filter(|ahead| ahead.wants_thread()) else { return };
        let mut pace = job.pace();
        let is_stopped = || job.is_stopped();
        match start(self.scope, "digests", job, move || ahead.run(&is_stopped, || pace.step(&is_stopped))) {
            Ok(started) => self.digests_ahead = Some(started),
            Err(_the_workers_do_it) => ahead.no_thread(),
        }
    }

    /// After the walk: runs one of the workers that are not started, until nothing is left to do.
    pub(crate) fn finish(mut self) -> Finished<'scope> {
        if let Some(mut worker) = self.waiting.pop().filter(|_| self.failure.is_none()) {
            worker.run();
        }
        self.started.extend(self.digests_ahead);
        (self.started, self.failure)
    }
}
