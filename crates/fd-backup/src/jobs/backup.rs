//! A backup: the threads of its pipeline from start to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fd_fileset::FileSet;
use fd_messages::{CancelToken, JobLog, MessageType, Progress, Stage};
use fd_records::Stat;
use fd_walk::{
    Candidate, Compared, Comparison, Entry, Flow, HardLink, LinkTable, WalkEnd, WalkEvent, WalkHost, WalkSummary,
};

use crate::exchange::Stopped;
use crate::exchange::pace::Pace;
use crate::pipeline::sender::Sender;
use crate::pipeline::worker_pool;
use crate::shared::batch::{Batch, Batcher};
use crate::shared::job::{Failure, Job};
use crate::shared::plan::{BackupError, BackupPlan, FrameSink};
use crate::shared::threads::Joined;
use crate::texts;
use fd_os::sync::Mutex;

/// Backs up what the plan names. Sends everything between the Storage Daemon's `3000 OK data` and
/// the final end-of-data signal (reference 04 §1.1 steps 6 and 7), but not that signal.
///
/// Returns when everything is sent and all threads have ended. If the job ends early, threads that
/// wait for storage which does not answer are left behind. `sink` is used on the calling thread
/// only.
///
/// # Errors
/// See [`BackupError`]. The stream is incomplete then, and its connection of no more use.
pub fn run(
    plan: &BackupPlan,
    progress: &Arc<Progress>,
    log: &dyn JobLog,
    cancel: &CancelToken,
    sink: &mut dyn FrameSink,
) -> Result<(), BackupError> {
    let begun = Instant::now();
    progress.set_files(plan.files_before);
    let mut sender = Sender::new(plan, progress, log, cancel, sink);
    let job = Job::new(plan.clone(), Arc::clone(progress), cancel.clone(), log);
    let job = Arc::new(job.map_err(|error| sender.protection_failed(&error))?);
    let walked = run_threads(&job, log, &mut sender)?;
    if cancel.is_canceled() || walked.end != WalkEnd::Complete {
        return Err(BackupError::Canceled);
    }
    sender.finish(&walked);
    sender.must_have_read()?;
    if let Some(list) = &plan.accurate {
        sender.send_tail(list, &job)?;
    }
    if plan.report_times {
        let workers = job.exchange.most_workers().max(job.workers.depth.base());
        log.message(
            MessageType::Info,
            &texts::stage_times(progress.stages(), workers, walked.not_looked_up, begun.elapsed()),
        );
    }
    Ok(())
}

/// Runs the pipeline to its end. All other threads have ended when it returns, or are left behind.
fn run_threads(job: &Arc<Job>, log: &dyn JobLog, sender: &mut Sender<'_>) -> Result<WalkSummary, BackupError> {
    let walked = Arc::new(Mutex::new(None));
    let result = match run_to_end(job, sender, &walked) {
        Ok(()) => walked.lock().take().ok_or(BackupError::Panicked),
        Err(error) => Err(error),
    };
    if let Err(error @ (BackupError::Panicked | BackupError::Thread { .. })) = &result {
        log.message(MessageType::Fatal, &texts::internal(&error.to_string()));
    }
    result
}

fn run_to_end(
    job: &Arc<Job>,
    sender: &mut Sender<'_>,
    walked: &Arc<Mutex<Option<WalkSummary>>>,
) -> Result<(), BackupError> {
    // A panic, also one of the sink, stops this job's threads and no others.
    let threads = EndThreads(job);
    let _taking_part = job.progress.stages().take_part();
    let _priority = job.courtesy.as_ref().map(|courtesy| courtesy.join(false));
    worker_pool::open(job);
    let (job_of_walker, walked) = (Arc::clone(job), Arc::clone(walked));
    let work = move |job: &Job| {
        let _taking_part = job.progress.stages().take_part();
        let summary = walk(&job_of_walker);
        *walked.lock() = Some(summary);
    };
    worker_pool::start(job, "walker", false, work).map_err(no_thread)?;
    let sent = sender.send_all(job);
    job.exchange.stop();
    if sent.is_err() && job.is_in_plugin() {
        // A plugin may be waiting for something; nothing waits for it any more.
        job.cancel_plugins();
    }
    let Joined { panicked, left } = threads.end(sent.is_ok());
    if panicked > 0 {
        return Err(BackupError::Panicked);
    }
    match job.take_failure() {
        Some(Failure::Thread(error)) => return Err(no_thread(error)),
        Some(Failure::Protection(error)) => return Err(sender.protection_failed(&error)),
        None => {}
    }
    if left > 0 {
        sender.left_behind(left);
    }
    sent?;
    // All that is to be sent is sent, or the job is canceled.
    if job.cancel.is_canceled() { Err(BackupError::Canceled) } else { Ok(()) }
}

/// Ends the threads of a job when it is dropped, if not before.
struct EndThreads<'j>(&'j Job);

impl EndThreads<'_> {
    fn end(self, is_good: bool) -> Joined {
        let job = std::mem::ManuallyDrop::new(self).0;
        job.end_threads(is_good)
    }
}

impl Drop for EndThreads<'_> {
    fn drop(&mut self) {
        let _joined = self.0.end_threads(false);
    }
}

fn no_thread(source: io::Error) -> BackupError {
    BackupError::Thread { source }
}

/// The walker's thread: collects batches, then works on those that are left.
fn walk(job: &Arc<Job>) -> WalkSummary {
    let host =
        Host { job, pace: Mutex::new(job.pace()), first_include: AtomicUsize::new(0), include: AtomicUsize::new(0) };
    let mut batcher = Batcher::default();
    batcher.small_if_late = job.workers.depth.may_grow();
    let (plan, exchange) = (&job.plan, &job.exchange);
    let submit = |mut batch: Batch| {
        job.announce(&mut batch);
        exchange.submit(batch)
    };
    let begun = Instant::now();
    let (mut fileset, links) = (Arc::clone(&plan.fileset), LinkTable::default());
    let (mut summary, mut has_option_plugins) = (WalkSummary::default(), false);
    loop {
        let walked = fd_walk::walk_again(&fileset, &plan.walk, &host, &links, &mut |mut event| {
            if let WalkEvent::Entry(entry) = &mut event {
                send_again(&job.plan, entry);
            }
            has_option_plugins |= matches!(&event, WalkEvent::Entry(entry) if entry.options.plugin.is_some());
            let is_command = matches!(event, WalkEvent::Plugin(_));
            batcher.small = job.workers.depth.is_deep();
            let pushed = batcher.push(event, host.include.load(Ordering::Relaxed), |batch| {
                submit(batch)?;
                worker_pool::grow(job)?;
                worker_pool::start_digests_ahead(job);
                Ok(())
            });
            // What follows sees what the plugin does.
            let pushed: Result<(), Stopped> =
                if is_command { pushed.and_then(|()| exchange.wait_until_sent()) } else { pushed };
            if pushed.is_ok() { Flow::Continue } else { Flow::Stop }
        });
        summary = summary.and(walked);
        let _stopped = batcher.finish(&submit);
        let Some(more) = late_includes(job, &summary, has_option_plugins) else { break };
        host.first_include.fetch_add(fileset.includes().len(), Ordering::Relaxed);
        fileset = Arc::new(more);
    }
    job.progress.stages().add(Stage::Walk, begun.elapsed());
    exchange.no_more_batches();
    if let Some(ahead) = &job.digests_ahead {
        ahead.no_more();
    }
    worker_pool::finish(job);
    summary
}

/// Of a name that one job has saved twice, the Director takes the later record if it is a file, and
/// the earlier one if it is a hard link (reference 02 §9.6). So what a resumed job may have sent
/// before, is no link when it is sent again: what its list has, from this job or an earlier one,
/// and everything in a Base job, which has no list.
fn send_again(plan: &BackupPlan, entry: &mut Entry) {
    let is_link = matches!(entry.hard_link, Some(HardLink::Later { .. }));
    if is_link && plan.files_before > 0 && (plan.accurate.is_none() || entry.token.is_some()) {
        entry.become_own_file();
    }
}

/// What plugins have added to the FileSet, once all is done that they take part in.
fn late_includes(job: &Arc<Job>, walked: &WalkSummary, has_option_plugins: bool) -> Option<FileSet> {
    if walked.end != WalkEnd::Complete || job.plan.late.is_none() {
        return None;
    }
    if has_option_plugins {
        // The last batch may be the first one, and then it has no worker yet.
        worker_pool::grow(job).ok()?;
        job.exchange.wait_until_sent().ok()?;
    }
    job.changes.take_includes()
}

/// Answers the walk's questions.
struct Host<'h> {
    job: &'h Job,
    /// Used by the walker's thread only.
    pace: Mutex<Pace>,
    /// Number of the first Include of the FileSet that is walked: of the job's, or of what plugins
    /// have added.
    first_include: AtomicUsize,
    /// Number of the Include that is walked.
    include: AtomicUsize,
}

impl WalkHost for Host<'_> {
    fn is_canceled(&self) -> bool {
        self.job.is_stopped()
    }

    fn examined(&self, _path: &[u8]) {
        self.job.progress.add_files_examined(1);
        self.pace.lock().step(&|| self.job.is_stopped());
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.job.wants(kind)
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let list = self.job.plan.accurate.as_ref();
        list.map_or(Comparison::ByTime, |list| list.compare(candidate, &self.job.plan.walk))
    }

    fn not_examined(&self, path: &[u8], strip_path: u32) {
        if let Some(list) = &self.job.plan.accurate {
            list.not_examined(path, strip_path);
        }
    }

    fn compares_by_time(&self) -> bool {
        self.job.plan.accurate.is_none()
    }

    fn compares_by_list(&self, fileset: &FileSet) -> Option<Compared> {
        self.job.plan.accurate.as_ref()?.compared(fileset)
    }

    fn listed(&self, candidate: &Candidate<'_>) -> Option<Stat> {
        self.job.plan.accurate.as_ref()?.listed(candidate)
    }

    fn scanned(&self, device: u64, found: Result<(u64, Duration), String>) {
        match found {
            Ok((inodes, took)) => tracing::debug!(device, inodes, ?took, "inode scan"),
            Err(reason) => tracing::debug!(device, reason, "no inode scan"),
        }
    }

    fn excludes(&self, path: &[u8]) -> bool {
        self.job.changes.excludes(path)
    }

    fn begins_include(&self, include: usize) {
        let include = self.first_include.load(Ordering::Relaxed).saturating_add(include);
        self.include.store(include, Ordering::Relaxed);
        self.job.changes.begin_include(include);
    }

    fn added_command(&self) -> Option<Vec<u8>> {
        self.job.changes.take_command()
    }
}
