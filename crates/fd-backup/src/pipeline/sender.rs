//! The sender runs on the job's own thread and owns the connection. It sends the pieces in order,
//! delivers their messages and adds up their counts.

use std::time::Instant;

use fd_bsock::{CommCount, FrameError};
use fd_messages::{CancelToken, JobLog, MessageType, Progress, Stage};
use fd_metadata::{NameCache, WarningLimit};
use fd_os::local_time::now;
use fd_records::{Attributes, LStat, MetadataKind, Stream};
use fd_walk::WalkSummary;

use crate::accurate::{AccurateList, TailRecord};
use crate::exchange::halt::ProtectionError;
use crate::exchange::piece::{Event, Piece, Tally};
use crate::file::emit::RecordWriter;
use crate::file::listing::saved_line_of_tail;
use crate::plugins::check::{CheckError, FileCheck};
use crate::shared::job::Job;
use crate::shared::plan::{BackupError, BackupPlan, FrameSink, SinkError};
use crate::texts;

/// See the module.
pub(crate) struct Sender<'s> {
    progress: &'s Progress,
    log: &'s dyn JobLog,
    cancel: &'s CancelToken,
    sink: &'s mut dyn FrameSink,
    plan: &'s BackupPlan,
    /// FileIndex of the last record sent.
    last_file: u32,
    /// Files whose data was read, and those of which nothing could be read.
    read: u64,
    unread: u64,
    metadata_warnings: [(MetadataKind, WarningLimit); 2],
    /// Files that are saved without data and may have some.
    without_data: usize,
}

impl<'s> Sender<'s> {
    pub(crate) fn new(
        plan: &'s BackupPlan,
        progress: &'s Progress,
        log: &'s dyn JobLog,
        cancel: &'s CancelToken,
        sink: &'s mut dyn FrameSink,
    ) -> Self {
        let metadata_warnings = [MetadataKind::Acl, MetadataKind::Xattr].map(|kind| (kind, WarningLimit::new(kind)));
        let last_file = plan.files_before;
        Self { plan, progress, log, cancel, sink, last_file, read: 0, unread: 0, metadata_warnings, without_data: 0 }
    }

    pub(crate) fn send_all(&mut self, job: &Job) -> Result<(), BackupError> {
        let (mut sent, mut lost) = (None, None);
        loop {
            // The walk may go on for hours without anything to send.
            let when_quiet = || {
                lost = self.sink.flush().err();
                if lost.is_some() {
                    job.exchange.stop();
                }
            };
            let Some(mut piece) = job.exchange.next(sent.take(), self.cancel, when_quiet) else { break };
            self.send(&mut piece)?;
            sent = Some(piece);
        }
        lost.map_or(Ok(()), |error| Err(self.connection_lost(error)))
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
            self.deliver(note.event).inspect_err(|_| self.count(note.tally))?;
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

    /// A canceled job's connection is shut down; that is no network error.
    fn connection_lost(&self, error: SinkError) -> BackupError {
        if self.cancel.is_canceled() {
            return BackupError::Canceled;
        }
        self.log.message(MessageType::Fatal, &texts::network_send_error(&error.reason));
        BackupError::Sink(error)
    }

    fn count(&mut self, tally: Tally) {
        let progress = self.progress;
        self.last_file = self.last_file.saturating_add(tally.files);
        self.read += u64::from(tally.read);
        self.unread += u64::from(tally.unread);
        (0..tally.files).for_each(|_| progress.add_file());
        progress.add_read_bytes(tally.read_bytes);
        progress.add_job_bytes(tally.job_bytes);
        progress.touch(now());
    }

    fn deliver(&mut self, event: Event) -> Result<(), BackupError> {
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
            Event::MetadataWarnings { kind, failures } => {
                if let Some((_, limit)) = self.metadata_warnings.iter_mut().find(|(of, _)| *of == kind) {
                    limit.admit(failures).for_each(|text| self.log.message(MessageType::Warning, &text));
                }
            }
            Event::MayHaveContent { path } => {
                self.without_data += 1;
                if self.without_data <= WarningLimit::MOST {
                    self.log.message(MessageType::Warning, &texts::may_have_content(&path));
                }
            }
            Event::Fatal { text } => return Err(self.fatal(&text)),
            Event::Ended { .. } if self.cancel.is_canceled() => return Err(BackupError::Canceled),
            Event::Ended { text } => return Err(fatal_error(&text)),
        }
        Ok(())
    }

    /// With a limit of errors, a read error counts a second time, and one beyond it ends the job
    /// (reference 04 §8.2).
    fn check_error_limit(&mut self) -> Result<(), BackupError> {
        if self.plan.max_job_errors == 0 {
            return Ok(());
        }
        let errors = self.progress.errors();
        self.progress.add_error();
        if errors > self.plan.max_job_errors {
            return Err(self.fatal(&texts::too_many_errors(self.progress.errors())));
        }
        Ok(())
    }

    fn fatal(&self, text: &[u8]) -> BackupError {
        self.log.message(MessageType::Fatal, text);
        fatal_error(text)
    }

    /// Reports why files can't be encrypted or signed.
    pub(crate) fn protection_failed(&self, error: &ProtectionError) -> BackupError {
        for text in &error.errors {
            self.log.message(MessageType::Error, text);
        }
        self.fatal(&error.fatal)
    }

    /// Reports threads that wait for storage and were left behind.
    pub(crate) fn left_behind(&self, threads: usize) {
        self.log.message(MessageType::Warning, &texts::left_behind(threads));
    }

    /// Warnings after the last file (reference 04 §1.1).
    pub(crate) fn finish(&self, walked: &WalkSummary) {
        for text in self.metadata_warnings.iter().filter_map(|(_, limit)| limit.summary()) {
            self.log.message(MessageType::Warning, &text);
        }
        if self.without_data > WarningLimit::MOST {
            self.log.message(MessageType::Warning, &texts::may_have_content_in_all(self.without_data));
        }
        if walked.skipped_directories > 0 {
            let text = fd_walk::texts::skipped_directories(walked.skipped_directories);
            self.log.message(MessageType::Warning, &text);
        }
    }

    /// Ends a job that was to read files and could read none, not even in part: attributes alone
    /// are no backup. What an incomplete job has sent before counts. So does what the list of an
    /// accurate job has, and the next such job tries the rest again.
    pub(crate) fn must_have_read(&self) -> Result<(), BackupError> {
        let builds_on_other = self.plan.files_before > 0 || self.plan.accurate.is_some();
        let has_read = self.read > 0 || self.unread == 0 || builds_on_other;
        if has_read { Ok(()) } else { Err(self.fatal(&texts::nothing_read(self.unread))) }
    }

    /// Sends the records after the last file of an accurate job.
    pub(crate) fn send_tail(&mut self, list: &AccurateList, job: &Job) -> Result<(), BackupError> {
        if let Some((first, others)) = list.unknown_directories() {
            self.log.message(MessageType::Warning, &texts::nothing_counts_as_deleted(&first, others));
        }
        let mut tail = TailEncoder::new(self.plan.comm_compression);
        let mut names = NameCache::new();
        let (log, cancel) = (self.log, self.cancel);
        let mut check = FileCheck::new(&job.plan.plugins, job.surroundings(), log);
        check.files = self.last_file;
        list.tail(
            |path| check.exists(path).map_err(|error| check_failed(log, cancel, error)),
            |record| {
                let file_index = self.last_file.checked_add(1).and_then(|index| i32::try_from(index).ok());
                let Some(file_index) = file_index else { return Err(self.fatal(&texts::too_many_files())) };
                if self.cancel.is_canceled() {
                    return Err(BackupError::Canceled);
                }
                if self.log.wants(MessageType::Saved) {
                    self.log.message(MessageType::Saved, &saved_line_of_tail(&record, &mut names));
                }
                tail.push(&record, file_index)
                    .map_err(|error| self.fatal(&texts::record_refused(record.path, &error)))?;
                self.count(Tally { files: 1, ..Tally::default() });
                if tail.frames.len() >= job.piece_len { self.send_piece_of_tail(&mut tail) } else { Ok(()) }
            },
        )?;
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

/// Why the job ends when a plugin can't say whether a file exists.
fn check_failed(log: &dyn JobLog, cancel: &CancelToken, error: CheckError) -> BackupError {
    match error {
        CheckError::Gone(gone) if gone.canceled || cancel.is_canceled() => BackupError::Canceled,
        CheckError::Gone(gone) => {
            log.message(MessageType::Fatal, &gone.text);
            fatal_error(&gone.text)
        }
        CheckError::Fatal(text) => fatal_error(&text),
    }
}

fn fatal_error(text: &[u8]) -> BackupError {
    BackupError::Fatal(String::from_utf8_lossy(text).trim_end().to_owned())
}

/// Encodes the end of an accurate job's stream: records of deleted files, or of files that a base
/// job has (reference 04 §13.6, §13.7).
struct TailEncoder {
    writer: RecordWriter,
    frames: Vec<u8>,
    record: Vec<u8>,
}

impl TailEncoder {
    fn new(comm_compression: bool) -> Self {
        Self { writer: RecordWriter::new(comm_compression), frames: Vec::new(), record: Vec::new() }
    }

    /// Appends one record.
    fn push(&mut self, record: &TailRecord<'_>, file_index: i32) -> Result<(), FrameError> {
        self.record.clear();
        Attributes {
            file_index,
            file_type: record.file_type,
            name: record.path,
            lstat: LStat { stat: record.stat, link_fi: 0, flags: 0, data_stream: Stream::FILE_DATA },
            link: &[],
            attr_ex: &[],
            delta_seq: 0,
        }
        .encode(&mut self.record);
        self.writer.record(&mut self.frames, file_index, Stream::ATTRIBUTES, &self.record)
    }
}
