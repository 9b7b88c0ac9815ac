//! A backup between its `2000 OK backup` and its last word to the Storage Daemon.

use std::sync::Arc;
use std::time::Instant;

use fd_backup::{BackupError, BackupPlan, FrameSink, SinkError};
use fd_bsock::CommCount;
use fd_config::JobInodeScan;
use fd_messages::{JobLog, MessageType};
use fd_session::JobStatus;
use fd_session::storage::StorageError;
use fd_transport::{ChannelError, Fault};
use fd_walk::{InodeScan, WalkSettings};

use crate::connection::storage::StorageConnection;
use crate::job::hang_up::{HangUp, Limit};
use crate::job::outbox::Outbox;
use crate::job::packet_check::PacketCheck;
use crate::job::signatures;
use crate::job::snapshots::session::Over;
use crate::shared::daemon::Daemon;
use crate::shared::debug::Debug;
use crate::shared::job::Job;
use crate::texts;

/// What the configuration and the Director's commands come to.
pub(crate) fn plan(daemon: &Daemon, walk: WalkSettings, file_index: u32) -> BackupPlan {
    let config = &daemon.config().file_daemon;
    let mut plan = BackupPlan::new(Arc::default(), walk);
    plan.network_buffer = daemon.network_buffer();
    plan.files_before = file_index;
    plan.max_job_errors = config.max_job_error_count;
    plan.protection.clone_from(&daemon.jobs.protection);
    plan.signature_file = signatures::for_backup(daemon, !plan.walk.incremental);
    let settings = &daemon.settings.job;
    if let Some(workers) = settings.workers {
        plan.workers = workers.get().into();
    }
    plan.reading_depth = settings.depth.map_or(plan.reading_depth.max(plan.workers), |depth| depth.get().into());
    if let Some(memory) = settings.memory {
        plan.memory_budget = usize::try_from(memory).unwrap_or(usize::MAX);
    } else {
        let share = daemon.jobs.memory.take();
        plan.memory_budget = share.bytes();
        plan.memory_share = Some(Arc::new(share));
    }
    plan.courtesy = Some(Arc::clone(&daemon.jobs.courtesy));
    plan.report_times = settings.stage_times;
    plan.walk.inode_scan = match settings.inode_scan {
        JobInodeScan::Off => InodeScan::Off,
        JobInodeScan::Auto => InodeScan::Auto,
        JobInodeScan::Always => InodeScan::Always,
    };
    plan
}

/// What counts the packets to the Storage Daemon.
#[derive(Debug)]
pub(crate) struct LineWatch<'d> {
    /// `SD Packet Check`.
    pub packet_check: Option<PacketCheck>,
    /// `setdebug … hangup=`.
    pub hang_up: Option<HangUp>,
    /// Where it is in force.
    pub debug: &'d Debug,
}

impl LineWatch<'_> {
    /// Whether the line is really to end: only one job breaks off, once.
    fn is_in_force(&self) -> bool {
        self.hang_up.as_ref().is_some_and(|hang_up| self.debug.take_hang_up(hang_up.number))
    }
}

/// A message or a script has failed the job. The Storage Daemon did nothing wrong, and says nothing
/// if the data ends as it should.
fn end_failed(job: &Job, storage: &mut StorageConnection) {
    if matches!(job.status(), JobStatus::Fatal | JobStatus::Error) && job.aborts() == 0 {
        let _failed_already = storage.end_of_data();
    }
}

/// Runs the backup; errors become messages and the job's status. `prepare` is done when the Storage
/// Daemon is ready, and gives the plan its FileSet; what it returns is kept until all files were
/// read. `end` is done when all files were looked at.
pub(crate) fn run<K>(
    job: &Job,
    mut plan: BackupPlan,
    outbox: &Outbox,
    storage: &mut StorageConnection,
    watch: LineWatch<'_>,
    prepare: impl FnOnce(&mut BackupPlan) -> Result<K, Over>,
    end: impl FnOnce(),
) {
    let ticket = match storage.open_append() {
        Ok(ticket) => ticket,
        Err(error) => return fail(job, outbox, &error),
    };
    let Ok(kept) = prepare(&mut plan) else {
        job.change_status(JobStatus::Error);
        return end_failed(job, storage);
    };
    job.change_status(JobStatus::Running);
    let mut sink = Sink { job, outbox, storage, watch, hung_up: false, is_between_records: true };
    let outcome = fd_backup::run(&plan, &job.progress, outbox, &job.cancel, &mut sink);
    let Sink { hung_up, is_between_records, .. } = sink;
    drop(kept);
    end();
    if let Some(file) = &plan.signature_file {
        signatures::report(file);
    }
    if hung_up {
        storage.hang_up();
    }
    if !(all_sent(job, outcome) && none_died(job, &plan, outbox)) {
        if is_between_records && !hung_up {
            end_failed(job, storage);
        }
        return;
    }
    if let Err(error) = storage.end_append() {
        report_send_error(job, outbox, &error);
        outbox.message(MessageType::Fatal, &texts::send_error(340, &error.cause()));
        return;
    }
    job.change_status(JobStatus::Terminated);
    if !matches!(job.status(), JobStatus::Terminated | JobStatus::Warnings) {
        return;
    }
    if let Err(error) = storage.close_append(ticket) {
        fail(job, outbox, &error);
    }
}

/// Whether the Storage Daemon is to be asked for its verdict.
fn all_sent<T>(job: &Job, outcome: Result<T, BackupError>) -> bool {
    match outcome {
        Ok(_) => true,
        // The operator has a message, or has canceled it.
        Err(error) => {
            tracing::debug!(%error, "the backup ended early");
            job.change_status(JobStatus::Error);
            false
        }
    }
}

/// Whether all plugins are there that the job names. What a dead one would still have done is
/// unknown: it may have added names to the FileSet.
fn none_died(job: &Job, plan: &BackupPlan, outbox: &Outbox) -> bool {
    let Some(dead) = plan.plugins.dead() else { return true };
    outbox.message(MessageType::Fatal, &texts::plugin_died_in_job(&dead.file));
    job.change_status(JobStatus::Error);
    false
}

fn fail(job: &Job, outbox: &Outbox, error: &StorageError) {
    if !job.has_ended() {
        outbox.message(MessageType::Fatal, &error.message());
    }
    job.change_status(JobStatus::Error);
}

/// The socket's own words before the job's, as in the stock daemon (reference 01 §20).
fn report_send_error(job: &Job, outbox: &Outbox, error: &ChannelError) {
    let silent = matches!(error.fault, Fault::Canceled | Fault::HasErrors | Fault::Terminated);
    if !silent && !job.has_ended() {
        outbox.message(MessageType::Error, &texts::SOCKET_ERROR.of(error.to_string()));
    }
}

struct Sink<'s> {
    job: &'s Job,
    outbox: &'s Outbox,
    storage: &'s mut StorageConnection,
    watch: LineWatch<'s>,
    hung_up: bool,
    /// The last frame that was sent is the end of a record, or nothing was sent.
    is_between_records: bool,
}

/// The signal that ends a record, as it is sent.
const END_OF_RECORD: [u8; 4] = (-1_i32).to_be_bytes();

impl Sink<'_> {
    fn send(&mut self, mut frames: &[u8], mut count: CommCount) -> Result<(), ChannelError> {
        if let Some(check) = &mut self.watch.packet_check {
            while let Some((before, rest)) = check.due(frames).and_then(|at| frames.split_at_checked(at)) {
                self.storage.channel().send_encoded(before, std::mem::take(&mut count))?;
                self.storage.ask_whether_it_follows()?;
                check.asked(Instant::now());
                frames = rest;
            }
        }
        self.storage.channel().send_encoded(frames, count)
    }

    /// Tells why nothing can be sent any more.
    fn lost(&self, error: &ChannelError) -> SinkError {
        report_send_error(self.job, self.outbox, error);
        SinkError { reason: error.cause() }
    }

    /// The job is at the place where it is to break off; what was sent counts.
    fn hang_up(&mut self) {
        let Some(at) = &self.watch.hang_up else { return };
        let progress = &self.job.progress;
        progress.set_files(at.files);
        progress.add_read_bytes(at.read.saturating_sub(progress.read_bytes()));
        progress.add_job_bytes(at.written.saturating_sub(progress.job_bytes()));
        self.hung_up = true;
        self.job.change_status(JobStatus::Incomplete);
        let text = match at.limit() {
            Limit::Files(files) => texts::hung_up_after_files(files),
            Limit::Kilobytes(kilobytes) => texts::hung_up_after_kilobytes(kilobytes),
        };
        self.outbox.message(MessageType::Fatal, &text);
        self.job.cancel.cancel();
    }
}

impl FrameSink for Sink<'_> {
    fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), SinkError> {
        // What is ready is of no use any more, and the reason is not used.
        if self.job.cancel.is_canceled() {
            return Err(SinkError { reason: String::new() });
        }
        let mut end = self.watch.hang_up.as_mut().and_then(|hang_up| hang_up.due(frames));
        if end.is_some() && !self.watch.is_in_force() {
            (end, self.watch.hang_up) = (None, None);
        }
        let frames = end.and_then(|end| frames.get(..end)).unwrap_or(frames);
        if !frames.is_empty() {
            self.is_between_records = frames.ends_with(&END_OF_RECORD);
        }
        self.send(frames, count).map_err(|error| self.lost(&error))?;
        if end.is_some() {
            self.hang_up();
            return Err(SinkError { reason: String::new() });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.storage.channel().flush().map_err(|error| self.lost(&error))
    }
}
