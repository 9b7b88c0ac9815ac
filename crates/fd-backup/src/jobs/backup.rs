//! A backup: the threads of its pipeline from start to end.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use fd_messages::{CancelToken, JobLog, MessageType, Progress, Stage};
use fd_walk::{Candidate, Comparison, Flow, WalkEnd, WalkEvent, WalkHost, WalkSummary};

use crate::jobs::plan::{BackupError, BackupPlan, FrameSink};
use crate::pipeline::batch::{Batch, Batcher};
use crate::pipeline::exchange::Stopped;
use crate::pipeline::job::Job;
use crate::pipeline::pace::Pace;
use crate::pipeline::sender::Sender;
use crate::pipeline::threads::{StopOnDrop, start};
use crate::pipeline::worker::Worker;
use crate::pipeline::worker_pool::{Finished, WorkerPool};
use crate::texts;

/// Backs up what the plan names. Sends everything between the Storage Daemon's `3000 OK data` and
/// the final end-of-data signal (reference 04 §1.1 steps 6 and 7), but not that signal.
///
/// Returns when everything is sent and all threads have ended. `sink` is used on the calling thread
/// only.
///
/// # Errors
/// See [`BackupError`]. The stream is incomplete then, and its connection of no more use.
pub fn run(
    plan: &BackupPlan,
    progress: &Progress,
    log: &dyn JobLog,
    cancel: &CancelToken,
    sink: &mut dyn FrameSink,
) -> Result<(), BackupError> {
    let begun = Instant::now();
    progress.set_files(plan.files_before);
    let mut sender = Sender::new(plan, progress, log, cancel, sink);
    let job = Job::new(plan, progress, cancel, log).map_err(|error| sender.protection_failed(&error))?;
    let workers = (0..plan.workers.max(1)).map(|_| Worker::new(&job)).collect::<Result<Vec<_>, _>>();
    let workers = workers.map_err(|error| sender.protection_failed(&error))?;
    let lowered = sender.lower();
    let walked = run_threads(&job, progress, log, workers, &mut sender)?;
    drop(lowered);
    if cancel.is_cancelled() || walked.end != WalkEnd::Complete {
        return Err(BackupError::Cancelled);
    }
    sender.finish(&walked);
    if let Some(list) = &plan.accurate {
        sender.send_tail(list, &job)?;
    }
    if plan.report_times {
        let text = texts::stage_times(progress.stages(), plan.workers.max(1), begun.elapsed());
        log.message(MessageType::Info, &text);
    }
    Ok(())
}

/// Runs the pipeline to its end. All other threads have ended when it returns.
fn run_threads<'j>(
    job: &'j Job<'j>,
    progress: &Progress,
    log: &dyn JobLog,
    workers: Vec<Worker<'j>>,
    sender: &mut Sender<'_>,
) -> Result<WalkSummary, BackupError> {
    let pace = Mutex::new(job.pace());
    let host = Host { job, progress, log, pace, include: AtomicUsize::new(0) };
    let result = thread::scope(|scope| {
        // A panic, also one of the sink, stops this job's threads and no others.
        let _stop = StopOnDrop(&job.exchange);
        let _taking_part = job.times.take_part();
        let _priority = job.courtesy.as_ref().map(|courtesy| courtesy.join(false));
        let worker_pool = WorkerPool::new(scope, job, workers);
        let walker = start(scope, "walker", job, || walk(&host, worker_pool)).map_err(no_thread)?;
        let sent = sender.send_all(job);
        job.exchange.stop();
        if sent.is_err() && job.in_plugin.load(Ordering::SeqCst) {
            // A plugin may be waiting for something; nothing waits for it any more.
            job.cancel_plugins();
        }
        let ended = walker.join();
        let (summary, (started, failure)) = ended.map_err(|_| BackupError::Panicked)?;
        let panicked = started.into_iter().filter_map(|worker| worker.join().err()).count();
        if let Some(error) = failure {
            return Err(no_thread(error));
        }
        sent?;
        if panicked == 0 { Ok(summary) } else { Err(BackupError::Panicked) }
    });
    if let Err(error @ (BackupError::Panicked | BackupError::Thread { .. })) = &result {
        log.message(MessageType::Fatal, &texts::internal(&error.to_string()));
    }
    result
}

fn no_thread(source: io::Error) -> BackupError {
    BackupError::Thread { source }
}

/// The walker's thread: collects batches, then works on those that are left.
fn walk<'scope, 'j: 'scope>(
    host: &Host<'_>,
    mut worker_pool: WorkerPool<'scope, '_, 'j>,
) -> (WalkSummary, Finished<'scope>) {
    let mut batcher = Batcher::default();
    let (plan, exchange) = (host.job.plan, &host.job.exchange);
    let submit = |mut batch: Batch| {
        host.job.announce(&mut batch);
        exchange.submit(batch)
    };
    let begun = Instant::now();
    let summary = fd_walk::walk(&plan.fileset, &plan.walk, host, &mut |event| {
        let is_command = matches!(event, WalkEvent::Plugin(_));
        let pushed = batcher.push(event, host.include.load(Ordering::Relaxed), |batch| {
            worker_pool.grow(submit(batch)?)?;
            worker_pool.start_digests_ahead();
            Ok(())
        });
        // What follows sees what the plugin does.
        let pushed: Result<(), Stopped> =
            if is_command { pushed.and_then(|()| exchange.wait_until_sent()) } else { pushed };
        if pushed.is_ok() { Flow::Continue } else { Flow::Stop }
    });
    let _stopped = batcher.finish(|batch| submit(batch).map(drop));
    host.job.times.add(Stage::Walk, begun.elapsed());
    exchange.no_more_batches();
    if let Some(ahead) = &host.job.digests_ahead {
        ahead.no_more();
    }
    (summary, worker_pool.finish())
}

/// Answers the walk's questions.
struct Host<'h> {
    job: &'h Job<'h>,
    progress: &'h Progress,
    log: &'h dyn JobLog,
    /// Used by the walker's thread only.
    pace: Mutex<Pace>,
    /// Number of the Include that is walked.
    include: AtomicUsize,
}

impl WalkHost for Host<'_> {
    fn is_cancelled(&self) -> bool {
        self.job.is_stopped()
    }

    fn examined(&self, _path: &[u8]) {
        self.progress.add_files_examined(1);
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).step(&|| self.job.is_stopped());
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let list = self.job.plan.accurate.as_ref();
        list.map_or(Comparison::ByTime, |list| list.compare(candidate, &self.job.plan.walk))
    }

    fn excludes(&self, path: &[u8]) -> bool {
        self.job.changes.excludes(path)
    }

    fn begins_include(&self, include: usize) {
        self.include.store(include, Ordering::Relaxed);
        self.job.changes.begin_include(include);
    }

    fn added_command(&self) -> Option<Vec<u8>> {
        self.job.changes.take_command()
    }
}
