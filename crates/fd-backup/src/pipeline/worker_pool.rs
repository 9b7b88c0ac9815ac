//! The workers of a job. Each is started when there are batches for it, because a thread costs as
//! much as a small file, and while the present ones wait for storage, more are. After the walk, the
//! walker's own thread works, too: a small job needs no other.
//!
//! Not here: what a worker does, the order of batches, and how many workers there should be.

use std::io;
use std::sync::{Arc, Weak};

use crate::exchange::{Exchange, Stopped};
use crate::pipeline::worker::Worker;
use crate::shared::batch::Batch;
use crate::shared::job::{Failure, Job};

/// Lets workers start others.
pub(crate) fn open(job: &Arc<Job>) {
    let weak = Arc::downgrade(job);
    job.set_more_workers(Box::new(move || {
        if let Some(job) = Weak::upgrade(&weak) {
            // The job knows the failure.
            let _stopped = grow(&job);
        }
    }));
}

/// Starts workers for batches that wait, if that pays.
pub(crate) fn grow(job: &Arc<Job>) -> Result<(), Stopped> {
    while let Some(workers) = job.exchange.hire(job.workers.depth.allowed()) {
        let work = |job: &Job| {
            let _taking_part = job.progress.stages().take_part();
            job.exchange.worker_arrived();
            work(job);
        };
        if let Err(error) = start(job, "worker", workers > job.workers.depth.base(), work) {
            let present = job.exchange.no_worker();
            if present == 0 {
                job.fail(Failure::Thread(error));
                return Err(Stopped);
            }
            // The present workers suffice. If one thread can't be started, the next one probably
            // can't, either.
            job.workers.depth.no_more_than(present);
        }
    }
    Ok(())
}

/// Walker: starts the thread that computes digests ahead, if there are files for it. It takes no
/// part in what the watchdog looks at: nobody waits for it for long, and it waits for more files
/// until the walk is over, which may be among those that wait for each other.
pub(crate) fn start_digests_ahead(job: &Arc<Job>) {
    let Some(ahead) = job.digests_ahead.as_ref().filter(|ahead| ahead.wants_thread()) else { return };
    let work = |job: &Job| {
        let Some(ahead) = &job.digests_ahead else { return };
        let mut pace = job.pace();
        let is_stopped = || job.is_stopped();
        ahead.run(&is_stopped, || pace.step(&is_stopped));
    };
    if let Err(_the_workers_do_it) = start(job, "digests", false, work) {
        ahead.no_thread();
    }
}

/// Walker, after the walk: works, too, until nothing is left to do.
pub(crate) fn finish(job: &Job) {
    if job.exchange.join_workers(job.workers.depth.base()) {
        work(job);
    }
}

fn work(job: &Job) {
    match Worker::new(job) {
        Ok(mut worker) => worker.run(),
        Err(error) => job.fail(Failure::Protection(error)),
    }
}

/// Starts a thread of the job, or one that only helps its workers. If it panics, it stops the
/// others.
pub(crate) fn start(
    job: &Arc<Job>,
    name: &str,
    is_helper: bool,
    work: impl FnOnce(&Job) + Send + 'static,
) -> io::Result<()> {
    let job_of_thread = Arc::clone(job);
    job.workers.threads.start(name, is_helper, move || {
        let job = job_of_thread;
        let _priority = job.courtesy.as_ref().map(|courtesy| courtesy.join(true));
        let stop = StopOnDrop(&job.exchange);
        work(&job);
        stop.disarm();
    })
}

/// Stops the pipeline when it is dropped.
struct StopOnDrop<'e>(&'e Exchange<Batch>);

impl StopOnDrop<'_> {
    /// To be called at the regular end of a thread.
    fn disarm(self) {
        let _no_drop = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
