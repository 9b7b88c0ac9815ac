//! The threads of a backup, and the sender, which is the calling thread.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fd_bsock::CommCount;
use fd_messages::{CancelToken, JobLog, MessageType, Progress, Stage};
use fd_metadata::{NameCache, WarningKind, WarningLimit};
use fd_walk::{Candidate, Comparison, Flow, WalkEnd, WalkHost, WalkSummary};

use crate::accurate::AccurateList;
use crate::digests::protect::Unprotected;
use crate::file::listing::saved_line_of_tail;
use crate::jobs::plan::{BackupError, BackupPlan, FrameSink, SinkError};
use crate::pipeline::batch::{Batch, Batcher};
use crate::pipeline::exchange::Stopped;
use crate::pipeline::job::Job;
use crate::pipeline::pace::{HostShare, Lowered, Pace};
use crate::pipeline::piece::{Event, Piece, Tally};
use crate::pipeline::tail::TailEncoder;
use crate::pipeline::threads::{StopOnLeaving, start};
use crate::pipeline::worker::Worker;
use crate::pipeline::workforce::{Dispersed, Workforce};
use crate::texts;

/// Backs up what the plan says: sends everything that stands between the Storage Daemon's `3000 OK data` and the final
/// end-of-data signal (reference 04 §1.1 steps 6 and 7), but not that signal.
///
/// Runs until everything is sent; all threads have ended when it returns. `sink` is used on the calling thread only.
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
    progress.set_files(plan.files_before);
    let mut sender = Sender {
        progress,
        log,
        cancel,
        sink,
        max_job_errors: plan.max_job_errors,
        last_file: plan.files_before,
        metadata_warnings: [WarningKind::Acl, WarningKind::Xattr].map(|kind| (kind, WarningLimit::new(kind))),
    };
    let job = Job::new(plan, progress, cancel, log).map_err(|unprotected| sender.unprotected(&unprotected))?;
    let workers = (0..plan.workers.max(1)).map(|seat| Worker::new(&job, seat)).collect::<Result<Vec<_>, _>>();
    let workers = workers.map_err(|unprotected| sender.unprotected(&unprotected))?;
    let lowered = sender.lower(&plan.host_share);
    let walked = run_threads(plan, &job, workers, &mut sender)?;
    drop(lowered);
    if cancel.is_cancelled() || walked.end != WalkEnd::Complete {
        return Err(BackupError::Cancelled);
    }
    sender.finish(&walked);
    if let Some(list) = &plan.accurate {
        sender.send_tail(list, plan.comm_compression, job.piece_len)?;
    }
    if plan.tell_times {
        log.message(MessageType::Info, &texts::stage_times(progress.stages(), plan.workers.max(1)));
    }
    Ok(())
}

/// Runs the pipeline to its end, whatever that is; all threads but this one have ended then.
fn run_threads<'j>(
    plan: &BackupPlan,
    job: &'j Job<'j>,
    workers: Vec<Worker<'j>>,
    sender: &mut Sender<'_>,
) -> Result<WalkSummary, BackupError> {
    let pace = Mutex::new(Pace::new(&plan.host_share));
    let host = Host { plan, job, progress: sender.progress, log: sender.log, pace };
    let result = thread::scope(|scope| {
        // Whoever panics, the sink included, takes the others down with him, and only them.
        let _stop = StopOnLeaving(&job.exchange);
        let _taking_part = job.times.take_part();
        let workforce = Workforce::new(scope, job, workers);
        let walker = start(scope, "walker", job, || walk(plan, &host, workforce)).map_err(no_thread)?;
        let sent = sender.send_all(job);
        job.exchange.stop();
        let ended = walker.join();
        let (summary, Dispersed { started, failure }) = ended.map_err(|_| BackupError::Panicked)?;
        let panicked = started.into_iter().filter_map(|worker| worker.join().err()).count();
        if let Some(error) = failure {
            return Err(no_thread(error));
        }
        sent?;
        if panicked == 0 { Ok(summary) } else { Err(BackupError::Panicked) }
    });
    if let Err(error @ (BackupError::Panicked | BackupError::Thread { .. })) = &result {
        sender.log.message(MessageType::Fatal, &texts::internal(&error.to_string()));
    }
    result
}

fn no_thread(source: io::Error) -> BackupError {
    BackupError::Thread { source }
}

/// The walker's thread: the walk into batches, and then work on what is left of them.
fn walk<'scope, 'j: 'scope>(
    plan: &BackupPlan,
    host: &Host<'_>,
    mut workforce: Workforce<'scope, '_, 'j>,
) -> (WalkSummary, Dispersed<'scope>) {
    let mut batcher = Batcher::default();
    let exchange = &host.job.exchange;
    let submit = |mut batch: Batch| {
        host.job.announce(&mut batch);
        exchange.submit(batch)
    };
    let begun = Instant::now();
    let summary = fd_walk::walk(&plan.fileset, &plan.walk, host, &mut |event| {
        let pushed: Result<(), Stopped> = batcher.push(event, |batch| {
            workforce.reinforce(submit(batch)?)?;
            workforce.read_ahead();
            Ok(())
        });
        if pushed.is_ok() { Flow::Continue } else { Flow::Stop }
    });
    let _stopped = batcher.finish(|batch| submit(batch).map(drop));
    host.job.times.add(Stage::Walk, begun.elapsed());
    exchange.no_more_batches();
    if let Some(ahead) = &host.job.digests_ahead {
        ahead.no_more();
    }
    (summary, workforce.join_in())
}

/// What the walk asks.
struct Host<'h> {
    plan: &'h BackupPlan,
    job: &'h Job<'h>,
    progress: &'h Progress,
    log: &'h dyn JobLog,
    /// Of the walker, who alone uses it.
    pace: Mutex<Pace>,
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
        let walk = &self.plan.walk;
        match &self.plan.accurate {
            Some(list) => list.compare(candidate, walk.incremental, walk.since),
            None => Comparison::ByTime,
        }
    }
}

/// Sends the pieces in order, and tells and counts what happened.
struct Sender<'s> {
    progress: &'s Progress,
    log: &'s dyn JobLog,
    cancel: &'s CancelToken,
    sink: &'s mut dyn FrameSink,
    max_job_errors: u32,
    /// FileIndex of the last record sent.
    last_file: u32,
    metadata_warnings: [(WarningKind, WarningLimit); 2],
}

impl Sender<'_> {
    fn send_all(&mut self, job: &Job<'_>) -> Result<(), BackupError> {
        let mut sent = None;
        while let Some(mut piece) = job.exchange.next(sent.take()) {
            self.send(&mut piece)?;
            sent = Some(piece);
        }
        Ok(())
    }

    fn send(&mut self, piece: &mut Piece) -> Result<(), BackupError> {
        if !piece.current.is_empty() {
            self.progress.set_current_file(&piece.current);
        }
        let mut count = std::mem::take(&mut piece.count);
        let mut from = 0;
        for note in piece.notes.drain(..) {
            self.send_frames(piece.frames.get(from..note.at).unwrap_or_default(), &mut count)?;
            from = note.at;
            self.tell(note.event)?;
        }
        self.send_frames(piece.frames.get(from..).unwrap_or_default(), &mut count)?;
        self.count(piece.tally);
        Ok(())
    }

    fn send_frames(&mut self, frames: &[u8], count: &mut CommCount) -> Result<(), BackupError> {
        if frames.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let sent = self.sink.send_encoded(frames, std::mem::take(count));
        self.progress.stages().add(Stage::Send, begun.elapsed());
        sent.map_err(|error| self.connection_lost(error))
    }

    /// Whoever cancels a job cuts its connection; that is no error of the network.
    fn connection_lost(&self, error: SinkError) -> BackupError {
        if self.cancel.is_cancelled() {
            return BackupError::Cancelled;
        }
        self.log.message(MessageType::Fatal, &texts::network_send_error(&error.reason));
        BackupError::Sink(error)
    }

    fn count(&mut self, tally: Tally) {
        let progress = self.progress;
        self.last_file = self.last_file.saturating_add(tally.files);
        (0..tally.files).for_each(|_| progress.add_file());
        progress.add_read_bytes(tally.read_bytes);
        progress.add_job_bytes(tally.job_bytes);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        progress.touch(i64::try_from(now).unwrap_or(i64::MAX));
    }

    fn tell(&mut self, event: Event) -> Result<(), BackupError> {
        match event {
            Event::Message { kind, text, failed } => {
                self.log.message(kind, &text);
                if failed {
                    self.progress.add_error();
                }
            }
            Event::ReadError { text } => {
                self.log.message(MessageType::Error, &text);
                return self.check_error_limit();
            }
            Event::MetadataWarning { kind, text } => {
                let mut limits = self.metadata_warnings.iter_mut();
                if limits.any(|(of, limit)| *of == kind && limit.admit()) {
                    self.log.message(MessageType::Warning, &text);
                }
            }
            Event::Fatal { text } => return Err(self.fatal(&text)),
        }
        Ok(())
    }

    /// A read error counts a second time, and ends the job if it is one too many (reference 04 §8.2).
    fn check_error_limit(&mut self) -> Result<(), BackupError> {
        if self.max_job_errors == 0 {
            return Ok(());
        }
        let errors = self.progress.errors();
        self.progress.add_error();
        if errors > self.max_job_errors {
            return Err(self.fatal(&texts::too_many_errors(self.progress.errors())));
        }
        Ok(())
    }

    fn fatal(&self, text: &[u8]) -> BackupError {
        self.log.message(MessageType::Fatal, text);
        BackupError::Fatal(String::from_utf8_lossy(text).trim_end().to_owned())
    }

    /// Lowers this thread, and with it those that it starts; a refusal is told.
    fn lower(&self, share: &HostShare) -> Lowered {
        let (lowered, refused) = Lowered::new(share);
        if let Some(error) = refused {
            self.log.message(MessageType::Warning, &texts::not_lowered(&error));
        }
        lowered
    }

    /// The configuration wants protection that can't be had.
    fn unprotected(&self, unprotected: &Unprotected) -> BackupError {
        for text in &unprotected.errors {
            self.log.message(MessageType::Error, text);
        }
        self.fatal(&unprotected.fatal)
    }

    /// What is said after the last file (reference 04 §1.1).
    fn finish(&self, walked: &WalkSummary) {
        for text in self.metadata_warnings.iter().filter_map(|(_, limit)| limit.summary()) {
            self.log.message(MessageType::Warning, &text);
        }
        if walked.skipped_directories > 0 {
            let text = fd_walk::texts::skipped_directories(walked.skipped_directories);
            self.log.message(MessageType::Warning, &text);
        }
    }
}

impl Sender<'_> {
    /// The end of an accurate job.
    fn send_tail(&mut self, list: &AccurateList, compress: bool, piece_len: usize) -> Result<(), BackupError> {
        let mut tail = TailEncoder::new(compress);
        let mut names = NameCache::new();
        list.tail(|record| {
            let file_index = self.last_file.checked_add(1).and_then(|index| i32::try_from(index).ok());
            let Some(file_index) = file_index else { return Err(self.fatal(&texts::too_many_files())) };
            if self.cancel.is_cancelled() {
                return Err(BackupError::Cancelled);
            }
            if self.log.wants(MessageType::Saved) {
                self.log.message(MessageType::Saved, &saved_line_of_tail(&record, &mut names));
            }
            tail.push(&record, file_index).map_err(|error| self.fatal(&texts::record_refused(record.path, &error)))?;
            self.count(Tally { files: 1, ..Tally::default() });
            if tail.frames.len() >= piece_len { self.send_piece_of_tail(&mut tail) } else { Ok(()) }
        })?;
        self.send_piece_of_tail(&mut tail)?;
        if let Some(bytes) = list.space_saved() {
            self.log.message(MessageType::Info, &texts::space_saved(bytes));
        }
        Ok(())
    }

    fn send_piece_of_tail(&mut self, tail: &mut TailEncoder) -> Result<(), BackupError> {
        let mut count = tail.writer.take_count();
        self.send_frames(&tail.frames, &mut count)?;
        tail.frames.clear();
        Ok(())
    }
}
