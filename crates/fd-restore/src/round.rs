//! One round of a restore: the state machine over the records (reference 05 §3).

mod attributes;
mod closing;
mod content;
mod creation;
mod findings;
mod held;
mod late_links;
mod made;
mod metadata;
mod named;
mod objects;
mod of_plugin;
mod state;

use core::ops::ControlFlow;
use std::time::Duration;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_records::{RecordHeader, StreamClass};

pub use self::state::RestoreState;

use self::held::{Making, Place, Round, SaidOnce};
use self::late_links::LateLinks;
use crate::created::Taker;
use crate::output_file::FinishedFile;
use crate::overlap::{Answer, FileOfRun, Planned, RunOfFiles, leave};
use crate::plan::RestorePlan;
use crate::plugins::Section;
use crate::report::{QueuedMessage, Report};
use crate::stream::{End, Lookahead, Next, RecordSource, Seen, SequenceError};
use crate::texts;

/// How long the next record may take before deferred digests are made meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);

/// The same for those of long files: the fewer there are, the more each costs.
const LONG_PATIENCE: Duration = Duration::from_secs(1);

/// The result of a round that was not fatal.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Messages that the stock daemon delivers only with its next one: deliver them before any
    /// other message of the job, and before its end, but after its status is settled
    /// (reference 05 §14.2).
    pub queued: Vec<QueuedMessage>,
}

/// Restores the records of one read session, from `3000 OK data` to the end of the data.
///
/// Everything is written through handles of directories below the place that the plan names. An
/// error of one file is reported, and the job goes on with the next file.
///
/// # Errors
///
/// Where the sequence of records is damaged, so that what follows has no meaning, or where a plugin
/// ends the restore. The current file is then left as it is, readable only by its owner, and the
/// error has been reported.
pub fn run(
    plan: &RestorePlan,
    state: &mut RestoreState,
    progress: &Progress,
    log: &dyn JobLog,
    cancel: &CancelToken,
    source: &mut dyn RecordSource,
) -> Result<Outcome, SequenceError> {
    state.digest.belong_to(cancel);
    let mut round = Round {
        plan,
        progress,
        cancel,
        report: Report::going_on(log, std::mem::take(&mut state.queued)),
        state,
        current: None,
        section: Section::Outside,
        place: Place::new(),
        making: Making::new(plan.writing_depth),
        late_links: LateLinks::default(),
        said_once: SaidOnce::default(),
    };
    let end = round.records(&mut Lookahead::new(source, progress, cancel));
    if cancel.is_abandoned() {
        // Another job may have begun to restore the same files.
        round.state.directories.abandon();
        return end.map(|end| Outcome { end, queued: Vec::new() });
    }
    if end.is_err() {
        round.keep_acls();
    }
    round.leave_plugin();
    round.settle();
    if end == Ok(End::EndOfData) {
        round.make_late_links();
    } else {
        round.give_up_late_links();
    }
    round.state.directories.leave_all();
    round.summarize();
    end.map(|end| Outcome { end, queued: round.report.into_queue() })
}

impl Round<'_> {
    /// Takes all records.
    fn records(&mut self, records: &mut Lookahead<'_>) -> Result<End, SequenceError> {
        loop {
            if self.making.pace.is_overlapping() && self.run_of_files(records) {
                continue;
            }
            self.make_digests(records);
            match records.next() {
                Ok(Next::Record(header, record)) => {
                    let begun = self.making.pace.begin();
                    let goes_on = self.record(header, record);
                    self.making.pace.end(begun, header.stream.class() == StreamClass::Attributes);
                    if goes_on.is_break() || self.report.is_fatal() {
                        self.give_up_early();
                        return Err(SequenceError::Plugin);
                    }
                }
                Ok(Next::End(end)) if self.cancel.is_abandoned() => return Ok(end),
                Ok(Next::End(end)) => {
                    if end != End::EndOfData {
                        self.keep_acls();
                        // Its data may come on the volume: the message about the end is enough.
                        self.stay();
                    }
                    self.give_up_torn(&end);
                    self.close();
                    if let End::ConnectionLost(error) = &end {
                        self.report.now(MessageType::Error, &texts::connection_lost(error));
                    }
                    return Ok(end);
                }
                Err(error) => {
                    self.compare_now();
                    if self.is_complete() {
                        self.close();
                    }
                    self.report_wrong_digest();
                    self.report.now(MessageType::Fatal, &texts::sequence(&error, &texts::RESTORE_LINES));
                    return Err(error);
                }
            }
        }
    }

    /// Gives the current file up if there may be more of it than has come before this end. Behind a
    /// volume's end the job goes on, and so do its plugins.
    fn give_up_torn(&mut self, end: &End) {
        if *end == End::EndOfData {
            // The cipher holds the last of it back until then.
            self.end_data();
        }
        if !self.is_torn(end) {
            return;
        }
        if *end == End::EndOfData {
            self.report_torn();
            self.give_up();
        } else {
            if !self.is_open_by_plugin() {
                self.report_torn();
            }
            self.give_up_early();
        }
    }

    /// Restores a run of small files, which are made at the same time. `false`: none begins here.
    fn run_of_files(&mut self, records: &mut Lookahead<'_>) -> bool {
        let begins =
            records.look(0, PATIENCE).is_some_and(|(header, _)| header.stream.class() == StreamClass::Attributes);
        if !begins || !matches!(self.section, Section::Outside) {
            return false;
        }
        // As the attribute record would do: nothing of the file before is open any more.
        self.close();
        let Making { pace, writers } = &mut self.making;
        let (most, depth) = pace.run();
        let by = (writers, most, depth);
        let directories = &mut self.state.directories;
        let run = RunOfFiles::make(records, self.plan, directories, by, self.cancel);
        let Some(mut run) = run else { return false };
        let (files, made, taken) = run.count();
        let mut left = Vec::new();
        while let Some(object) = run.next() {
            // What was made before a cancel counts, and nothing more is made.
            match object {
                Planned::File { answer, .. } if !self.goes_on_with(&answer) => left.extend(answer.made()),
                Planned::File { file, answer, .. } => self.turn_of_file(*file, answer, records),
                Planned::Directory(_) if self.cancel.is_canceled() => {}
                Planned::Directory(of_directory) => self.seen(of_directory, records),
            }
        }
        leave(left);
        self.making.pace.had_run(files, made, taken);
        true
    }

    /// Whether a file of a run is restored: of a canceled job, if it is finished, and closing it
    /// can't hang.
    fn goes_on_with(&self, answer: &Answer) -> bool {
        let can_close = |file: &FinishedFile| file.descriptor().is_none() || !self.making.writers.is_given_up();
        let is_finished = matches!(answer, Answer::Made(Taker::Finished(file)) if can_close(file));
        !self.cancel.is_abandoned() && (is_finished || !self.cancel.is_canceled())
    }

    /// Restores a file of a run, as its records would.
    fn turn_of_file(&mut self, file: FileOfRun, answer: Answer, records: &mut Lookahead<'_>) {
        let FileOfRun { header, item, data, rest } = file;
        self.make_digests(records);
        self.close();
        self.place.had(header);
        let digest = rest.iter().find_map(|(header, _)| match header.stream.class() {
            StreamClass::Digest(kind) => Some(kind),
            _ => None,
        });
        if self.plan.check_digests
            && let Some(kind) = digest
        {
            self.state.digest.expected().record(kind);
        }
        self.file_of_run(item, answer);
        self.data_of_run(&data);
        self.seen(rest, records);
    }

    /// Takes records of a run, none of which ends a restore.
    fn seen(&mut self, seen: Vec<Seen>, records: &mut Lookahead<'_>) {
        for (header, record) in seen {
            self.make_digests(records);
            if self.record(header, &record).is_break() {
                return;
            }
        }
    }

    /// Takes one record (reference 05 §3.2). A plugin may end the restore.
    fn record(&mut self, header: RecordHeader, record: &[u8]) -> ControlFlow<()> {
        let stream = header.stream;
        let is_stray = self.place.is_stray(&header);
        self.leave_endless_section(&header);
        let mut goes_on = ControlFlow::Continue(());
        match stream.class() {
            class if self.section.is_refused() && class != StreamClass::PluginName => {}
            _ if is_stray => self.out_of_place(texts::record_of_another_file),
            StreamClass::Attributes | StreamClass::AttributesUpdate => self.attributes(stream, record),
            StreamClass::Data(_) if !self.is_in_place(stream) => self.data_out_of_place(),
            StreamClass::Data(_) => self.data(stream, record),
            StreamClass::SessionData => self.session_data(record),
            StreamClass::SignedDigest => self.signature(record),
            StreamClass::ResourceFork => self.said_once.resource_forks += 1,
            StreamClass::FinderInfo => self.said_once.finder_info += 1,
            StreamClass::Metadata(kind) => self.metadata(kind, stream, record),
            StreamClass::Digest(kind) => self.digest(kind, record),
            StreamClass::PluginName => self.plugin_name(record),
            StreamClass::PluginMetadata => goes_on = self.plugin_metadata(record),
            StreamClass::PluginXacl(kind) => self.plugin_xacl(kind, stream, record),
            StreamClass::RestoreObject | StreamClass::Ignored => {}
            StreamClass::PluginData | StreamClass::PluginObject | StreamClass::Unknown => {
                self.close();
                self.report.now(MessageType::Warning, &texts::unexpected_stream(stream));
            }
        }
        self.place.had(header);
        goes_on
    }

    /// Makes deferred digests, once there are enough of them, or while the source is slow.
    fn make_digests(&mut self, source: &mut Lookahead<'_>) {
        let digest = &self.state.digest;
        if digest.has_small() && (digest.small_are_many() || self.report.holds_much() || !source.is_near(PATIENCE)) {
            self.deliver_held();
        }
        if !self.state.digest.has_long() {
            return;
        }
        if self.report.holds_much() || !source.is_near(LONG_PATIENCE) {
            self.settle();
        } else if self.state.digest.go_on() {
            self.deliver_held();
        }
    }

    /// The summary of a round (reference 05 §14.3).
    fn summarize(&mut self) {
        let metadata: Vec<Vec<u8>> = self.state.writer.summaries().collect();
        for text in metadata {
            self.report.now(MessageType::Warning, &text);
        }
        if let Some(count) = self.state.encryption.unknown_signers() {
            self.report.now(MessageType::Warning, &texts::unknown_signers(count));
        }
        let SaidOnce { data_streams, resource_forks, finder_info, lost, .. } = self.said_once;
        if lost > 0 {
            self.report.now(MessageType::Error, &texts::lost_with_plugin(lost));
        }
        if data_streams > 1 {
            self.report.now(MessageType::Warning, &texts::ignored_data_streams(data_streams));
        }
        for (count, what) in [(resource_forks, "resource fork"), (finder_info, "Finder Info")] {
            if count > 0 {
                self.report.now(MessageType::Info, &texts::ignored_streams(count, what));
            }
        }
    }
}

#[cfg(test)]
mod tests;
