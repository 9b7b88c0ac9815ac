//! One round of a restore: the state machine over the records (reference 05 §3).

mod attributes;
mod findings;
mod metadata;
mod named;
mod state;

use std::time::Duration;

use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_metadata::{Target, WriterWarnings};
use fd_os::local_time::local_time_of_any;
use fd_plugins::MetadataPacket;
use fd_records::{
    AttributesRecord, DigestKind, DigestValue, FileType, MetadataKind, PluginMetadata, PluginName, Stream, StreamClass,
    listing,
};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

pub use self::state::RestoreState;

use self::findings::Findings;
use self::metadata::{HeldMetadata, MetadataTime};
use self::named::Made;
use crate::digests::Recorded;
use crate::file::{Created, Creator, DataPath, Destination, Encryption, RestoreItem, Sink};
use crate::output_file::OutputFile;
use crate::overlap::{Pace, RunOfFiles, Turn, Writers, leave};
use crate::plan::RestorePlan;
use crate::plugins::{Creation, MetadataAnswer, Section};
use crate::report::{QueuedMessage, Report};
use crate::stream::{End, Lookahead, Next, RecordSource, SequenceError};
use crate::texts;
use crate::tree::{OpenError, OutputPath};

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
        item: None,
        file: None,
        made: Made::Nothing,
        section: Section::Outside,
        told_command: Vec::new(),
        ends_early: false,
        is_complete: false,
        recorded: None,
        wrong_digest: None,
        metadata: HeldMetadata::default(),
        xacls: HeldMetadata::default(),
        previous: Stream::NONE,
        failed_parent: None,
        ignored: Ignored::default(),
        pace: Pace::new(plan.writing_depth),
        writers: Writers::new(),
        made_before: None,
    };
    let end = round.records(&mut Lookahead::new(source, cancel));
    if cancel.is_abandoned() {
        // Another job may have begun to restore the same files.
        round.state.directories.abandon();
        return end.map(|end| Outcome { end, queued: Vec::new() });
    }
    round.leave_plugin();
    round.settle();
    round.state.directories.leave_all();
    round.summarize();
    end.map(|end| Outcome { end, queued: round.report.into_queue() })
}

/// Counts of ignored records.
#[derive(Default, Debug)]
struct Ignored {
    data_streams: u64,
    resource_forks: u64,
    finder_info: u64,
    /// Files that came after their plugin had failed.
    lost: u64,
}

struct Round<'a> {
    plan: &'a RestorePlan,
    progress: &'a Progress,
    cancel: &'a CancelToken,
    report: Report<'a>,
    state: &'a mut RestoreState,
    /// The last attribute record that was restored.
    item: Option<RestoreItem>,
    /// Its file, while its data is restored.
    file: Option<OutputFile>,
    /// What has become of it, if it has no data.
    made: Made,
    /// Whether a plugin has saved the records that come, and which one restores them.
    section: Section<'a>,
    /// The last command of a plugin that messages have told of.
    told_command: Vec<u8>,
    /// A plugin has ended the restore.
    ends_early: bool,
    /// Whether its digest has come, and is right as far as that is known: it is the last record of
    /// a file, so nothing of it is missing.
    is_complete: bool,
    /// Its recorded digest, until that is compared.
    recorded: Option<DigestValue>,
    /// The message about its digest, for when its length is right.
    wrong_digest: Option<Vec<u8>>,
    /// ACLs and extended attributes that are applied after the attributes.
    metadata: HeldMetadata,
    /// Those that a plugin has saved in its own form.
    xacls: HeldMetadata,
    /// The stream of the record before, without flag bits.
    previous: Stream,
    failed_parent: Option<OutputPath>,
    ignored: Ignored,
    /// How many files are made at a time.
    pace: Pace,
    writers: Writers,
    /// The file of the next attribute record, if it is made already.
    made_before: Option<(RestoreItem, Option<OutputFile>)>,
}

impl<'a> Round<'a> {
    /// Takes all records.
    fn records(&mut self, records: &mut Lookahead<'_>) -> Result<End, SequenceError> {
        loop {
            if self.pace.is_overlapping() && self.run_of_files(records) {
                continue;
            }
            self.make_digests(records);
            match records.next() {
                Ok(Next::Record(stream, record)) => {
                    let begun = self.pace.begin();
                    self.record(stream, record);
                    self.pace.end(begun, stream.class() == StreamClass::Attributes);
                    self.previous = stream.kind();
                    if self.ends_early || self.report.is_fatal() {
                        self.give_up_early();
                        return Err(SequenceError::Plugin);
                    }
                }
                Ok(Next::End(end)) if self.cancel.is_abandoned() => return Ok(end),
                Ok(Next::End(end)) => {
                    if end != End::EndOfData && self.is_torn() {
                        if let (Some(item), Some(file)) = (&self.item, &mut self.file) {
                            let text = wrong_length(item, file).map_or_else(
                                || texts::unfinished(&item.output),
                                |restored| texts::wrong_size(&item.output, item.stat.size, restored),
                            );
                            self.report.now(MessageType::Error, &text);
                        }
                        self.give_up_early();
                    }
                    self.close();
                    if let End::ConnectionLost(error) = &end {
                        self.report.now(MessageType::Error, &texts::connection_lost(error));
                    }
                    return Ok(end);
                }
                Err(error) => {
                    self.compare_now();
                    if self.is_complete {
                        self.close();
                    }
                    self.report_wrong_digest();
                    self.report.now(MessageType::Fatal, &texts::sequence(&error, &texts::RESTORE_LINES));
                    return Err(error);
                }
            }
        }
    }

    /// Whether there may be more data of the current file than has come.
    fn is_torn(&mut self) -> bool {
        match (&mut self.file, &self.item) {
            _ if self.is_complete => false,
            (Some(file), Some(item)) => file.is_new() && file.length() != Some(item.stat.size),
            _ => self.section.is_open(),
        }
    }

    /// Restores a run of small files, which are made at the same time. `false`: none begins here.
    fn run_of_files(&mut self, records: &mut Lookahead<'_>) -> bool {
        let begins = records.look(0, PATIENCE).is_some_and(|(stream, _)| stream.class() == StreamClass::Attributes);
        if !begins || !matches!(self.section, Section::Outside) {
            return false;
        }
        // As the attribute record would do: nothing of the file before is open any more.
        self.close();
        let (most, depth) = self.pace.run();
        let RestoreState { directories, .. } = &mut *self.state;
        let by = (&mut self.writers, most, depth);
        let run = RunOfFiles::make(records, self.plan, directories, self.failed_parent.as_ref(), by, self.cancel);
        let Some(mut run) = run else { return false };
        let (files, made) = run.count();
        let mut left = Vec::new();
        while let Some(Turn { records: count, item, file }) = run.next() {
            // What was made before a cancel counts, and nothing more is made.
            let is_finished = file.as_ref().is_some_and(|file| {
                file.attributes().is_some() && (file.descriptor().is_none() || !self.writers.is_given_up())
            });
            let is_skipped = self.cancel.is_cancelled() && !is_finished || self.cancel.is_abandoned();
            if is_skipped {
                left.extend(file);
            } else {
                self.made_before = item.map(|item| (item, file));
            }
            for _ in 0..count {
                let Some((stream, record)) = records.take() else { break };
                if !is_skipped {
                    self.make_digests(records);
                    self.record(stream, &record);
                    self.previous = stream.kind();
                }
            }
        }
        leave(left);
        self.pace.had_run(files, made);
        true
    }

    /// Takes one record (reference 05 §3.2).
    fn record(&mut self, stream: Stream, record: &[u8]) {
        match stream.class() {
            class if self.section.is_refused() && class != StreamClass::PluginName => {}
            StreamClass::Attributes | StreamClass::AttributesUpdate => self.attributes(stream, record),
            StreamClass::Data(_) => self.data(stream, record),
            StreamClass::SessionData => self.session_data(record),
            StreamClass::SignedDigest => self.signature(record),
            StreamClass::ResourceFork => self.ignored.resource_forks += 1,
            StreamClass::FinderInfo => self.ignored.finder_info += 1,
            StreamClass::Metadata(kind) => self.metadata(kind, stream, record),
            StreamClass::Digest(kind) => self.digest(kind, record),
            StreamClass::PluginName => self.plugin_name(record),
            StreamClass::PluginMetadata => self.plugin_metadata(record),
            StreamClass::PluginXacl(kind) => self.plugin_xacl(kind, stream, record),
            StreamClass::RestoreObject | StreamClass::Ignored => {}
            StreamClass::PluginData | StreamClass::PluginObject | StreamClass::Unknown => {
                self.close();
                self.report.now(MessageType::Warning, &texts::unexpected_stream(stream));
            }
        }
    }

    /// An attribute record: makes its object (reference 05 §3.3).
    fn attributes(&mut self, stream: Stream, record: &[u8]) {
        self.close();
        // Records that follow do not belong to the file before, even if this record fails.
        self.item = None;
        self.made = Made::Nothing;
        let made_before = self.made_before.take();
        let Ok(parsed) = AttributesRecord::parse(record) else {
            self.report.now(MessageType::Error, &texts::attributes(record));
            return;
        };
        if !parsed.lstat.data_stream.is_restorable_data() {
            self.ignored.data_streams += 1;
            if self.ignored.data_streams == 1 {
                let text = texts::unsupported_data(parsed.lstat.data_stream);
                self.report.now(MessageType::Warning, &text);
            }
            return;
        }
        let (item, made_before) = made_before
            .unwrap_or_else(|| (RestoreItem::new(&parsed, stream, self.section.is_of_plugin(), self.plan), None));
        self.progress.add_files_examined(1);
        self.progress.set_current_file(&item.output);
        if self.state.digest.has_long() && self.changes_long_file(&item) {
            self.settle();
        }
        let creation = self.create_by_plugin(&item, &parsed, stream);
        let created = match creation {
            Creation::Core => self.create(&item, made_before),
            Creation::Open | Creation::Made => Created::Made,
            Creation::Nothing => Created::Skipped,
        };
        if matches!(created, Created::Open(_) | Created::Made) {
            self.report_restored(&item);
        }
        self.progress.add_file();
        self.made = if matches!(created, Created::Made) { Made::Object } else { Made::Nothing };
        match created {
            Created::Open(file) => {
                if let (Some(identity), Ok(path)) = (file.identity(), &item.path) {
                    self.state.directories.note_object(path, identity);
                }
                let file = self.file.insert(file);
                self.state.data.begin();
                self.state.digest.begin(item.stat.size, Some(file));
            }
            Created::Made if creation == Creation::Open => {
                self.state.data.begin();
                self.state.digest.begin(item.stat.size, None);
            }
            Created::Made => {
                let by_core = self.section.plugin().is_none_or(|plugin| plugin.set_attributes(&mut self.report));
                match creation {
                    Creation::Core if by_core => {
                        let directories = &mut self.state.directories;
                        self.made = attributes::set_without_data(&mut self.report, directories, &item);
                    }
                    Creation::Made if by_core => {
                        attributes::set_by_name(&mut self.report, &mut self.state.directories, &item);
                    }
                    _ => {}
                }
            }
            Created::Skipped | Created::Failed => {}
        }
        self.item = Some(item);
    }

    /// Makes an object as the daemon does, unless it is made already.
    fn create(&mut self, item: &RestoreItem, made_before: Option<OutputFile>) -> Created {
        Creator {
            directories: &mut self.state.directories,
            report: &mut self.report,
            replace: self.plan.replace,
            cancel: self.cancel,
            failed_parent: &mut self.failed_parent,
            made_before,
        }
        .create(item)
    }

    /// Lets the current plugin make an object, if there is one.
    fn create_by_plugin(&mut self, item: &RestoreItem, record: &AttributesRecord<'_>, stream: Stream) -> Creation {
        if self.section.is_lost() {
            self.ignored.lost += 1;
            return Creation::Nothing;
        }
        match (self.section.plugin(), &self.plan.plugins) {
            (Some(plugin), Some(access)) => {
                let file = item.for_plugin(record, stream, self.plan.replace, access);
                plugin.create(file, &mut self.report)
            }
            _ => Creation::Core,
        }
    }

    /// Whether the job is about to change a file whose digest is still to be made: afterwards this
    /// would look like a change by another process.
    fn changes_long_file(&mut self, item: &RestoreItem) -> bool {
        if item.delta_seq > 0 || item.is_update {
            return true;
        }
        let RestoreState { directories, digest, .. } = &mut *self.state;
        let name = match item.file_type {
            Some(FileType::HardLink) => OutputPath::new(&item.link.text, item.link.given),
            _ => return false,
        };
        let Ok(Some((parent, name))) = name.as_ref().map(OutputPath::split) else { return false };
        let Ok(directory) = directories.open_aside(&parent) else { return false };
        let first = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        first.is_ok_and(|first| digest.waits_for(first.st_dev, first.st_ino))
    }

    /// The line about a restored file (reference 05 §3.6).
    fn report_restored(&mut self, item: &RestoreItem) {
        if !self.report.wants(MessageType::Restored) {
            self.report.unheard(MessageType::Restored);
            return;
        }
        let mut line = Vec::with_capacity(item.output.len() + 100);
        let target = (item.file_type == Some(FileType::Symlink)).then_some(item.link.text.as_slice());
        let modified = local_time_of_any(item.stat.mtime);
        listing::push_line(&mut line, &item.stat, modified, self.state.writer.names(), &item.output, target);
        self.report.now(MessageType::Restored, &line);
    }

    /// A data record (reference 05 §3.4).
    fn data(&mut self, stream: Stream, record: &[u8]) {
        self.report_data_of_update();
        let follows = match self.previous.class() {
            StreamClass::Attributes | StreamClass::SessionData | StreamClass::PluginMetadata => true,
            // The stock daemon drops the first record, which only a plugin can have saved.
            StreamClass::AttributesUpdate => self.section.is_open(),
            _ => self.previous == stream.kind(),
        };
        if !follows || self.is_mere_update() {
            return;
        }
        let mut is_lost = false;
        if let Some((data, encryption, mut to)) = self.destination() {
            to.progress.add_read_bytes(record.len() as u64);
            is_lost = data.record(stream, record, encryption, &mut to).is_err();
        }
        if is_lost {
            self.give_up();
        }
    }

    /// Whether the daemon itself restores an update of attributes: its file keeps the data that it
    /// has.
    fn is_mere_update(&self) -> bool {
        !self.section.is_open() && self.item.as_ref().is_some_and(|item| item.is_update)
    }

    /// Data behind an update of attributes is what a plugin has saved, but not how it is to be
    /// combined with the file's own. A plugin that leaves the file to the daemon has it dropped, as
    /// by the stock daemon.
    fn report_data_of_update(&mut self) {
        let is_first = !matches!(self.previous.class(), StreamClass::Data(_)) && self.is_mere_update();
        let Some(item) = self.item.as_ref().filter(|item| item.is_of_plugin && is_first) else { return };
        let is_there = self.file.is_some() || self.made != Made::Nothing;
        match self.section.plugin() {
            None => self.report.now(MessageType::Error, &texts::data_needs_plugin(&item.output)),
            Some(plugin) if plugin.leaves_it_to_core() && is_there => {
                self.report.now(MessageType::Warning, &texts::data_of_update_dropped(&item.output));
            }
            Some(_) => {}
        }
    }

    /// The end of the data, which only the next record shows.
    fn end_data(&mut self) {
        if let Some((data, encryption, mut to)) = self.destination() {
            data.end(encryption, &mut to);
        }
    }

    /// Where the data of the current file goes, if it is restored.
    fn destination(&mut self) -> Option<(&mut DataPath, &mut Encryption, Destination<'_, 'a, 'a>)> {
        let sink = match (&mut self.file, &mut self.section) {
            (Some(file), _) => Sink::File(file),
            (None, Section::Plugin(plugin)) if plugin.is_open() => Sink::Plugin(plugin),
            _ => return None,
        };
        let item = self.item.as_ref()?;
        let RestoreState { data, digest, encryption, .. } = &mut *self.state;
        Some((data, encryption, Destination { sink, item, digest, progress: self.progress, report: &mut self.report }))
    }

    /// Whether data of the current file is restored.
    fn is_open(&self) -> bool {
        self.file.is_some() || self.section.is_open()
    }

    /// The keys of an encrypted file.
    fn session_data(&mut self, record: &[u8]) {
        self.compare_now();
        if self.is_complete {
            // It is out of place: its file is complete.
            self.close();
        }
        if self.is_open() && self.state.encryption.session(record, &mut self.report).is_err() {
            self.give_up();
        }
    }

    /// A signature: of the data that was just restored. It is checked when the file is complete.
    fn signature(&mut self, record: &[u8]) {
        if let (true, Some(item)) = (self.is_open(), &self.item) {
            self.state.encryption.signature(record, &item.output, &mut self.report);
        }
    }

    /// Leaves the current file as it is: private, without attributes.
    fn give_up(&mut self) {
        self.compare_now();
        self.report_wrong_digest();
        self.file = None;
        if let Some(plugin) = self.section.plugin() {
            if self.report.is_fatal() {
                plugin.cancel(&mut self.report);
            }
            plugin.abandon(&mut self.report);
        }
        self.is_complete = false;
        self.metadata = HeldMetadata::default();
        self.xacls = HeldMetadata::default();
        self.state.digest.abandon();
        self.state.encryption.forget();
    }

    /// A digest: of the data that was just restored. It is compared when the file is complete.
    fn digest(&mut self, kind: DigestKind, record: &[u8]) {
        self.compare_now();
        self.end_data();
        let (true, Some(item)) = (self.is_open(), &self.item) else { return };
        let file = self.file.as_ref();
        self.is_complete = true;
        let digest = &mut self.state.digest;
        if self.state.encryption.has_known_signature() {
            digest.expect_signature();
            return;
        }
        if !self.plan.check_digests {
            return;
        }
        digest.expect_record(kind);
        self.recorded = DigestValue::from_bytes(kind, record);
        // A value of another length is the digest of no data.
        if self.recorded.is_none()
            && let Some(restored) = digest.make_now(kind, file)
        {
            self.wrong_digest = Some(texts::digest_differs(kind, &item.output, record, &restored));
            self.is_complete = false;
        }
    }

    /// Compares the digest of the current file now.
    fn compare_now(&mut self) {
        let (true, Some(item), Some(recorded)) = (self.is_open(), &self.item, self.recorded.take()) else { return };
        let kind = recorded.kind();
        let restored = self.state.digest.make_now(kind, self.file.as_ref());
        if let Some(restored) = restored.filter(|restored| *restored != recorded) {
            self.wrong_digest = Some(texts::digest_differs(kind, &item.output, recorded.as_bytes(), &restored));
            self.is_complete = false;
        }
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

    /// Makes all deferred digests, and delivers the messages that were held for them.
    fn settle(&mut self) {
        self.state.digest.finish();
        self.deliver_held();
    }

    /// Makes the digests of small files, and delivers the messages that are held for nothing else.
    fn deliver_held(&mut self) {
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        let mut findings = Findings::default();
        digest.settle(|checked| findings.add(checked, encryption));
        self.report.settle(|ticket| if digest.is_unknown(ticket) { None } else { Some(findings.take(ticket)) });
    }

    fn report_wrong_digest(&mut self) {
        if let Some(text) = self.wrong_digest.take() {
            self.report.now(MessageType::Error, &text);
        }
    }

    /// The start or end of a plugin's files (reference 07 §7.4).
    fn plugin_name(&mut self, record: &[u8]) {
        self.close();
        match PluginName::parse(record) {
            Some(PluginName::Start { command, .. }) => {
                if let Some(plugin) = self.section.plugin() {
                    let text = plugin.second_start(command);
                    self.report.now(MessageType::Fatal, &text);
                    return;
                }
                // Each file of a plugin has its own start.
                let is_told = self.told_command == command;
                if !is_told {
                    self.told_command = command.to_vec();
                }
                self.section = Section::begin(self.plan.plugins.as_ref(), command, is_told, &mut self.report);
            }
            Some(PluginName::End { .. }) => self.leave_plugin(),
            None => {}
        }
    }

    /// Ends the files of the current plugin.
    fn leave_plugin(&mut self) {
        if self.section.is_open() {
            self.give_up_early();
        }
        if let Section::Plugin(plugin) = std::mem::replace(&mut self.section, Section::Outside) {
            plugin.end(&mut self.report);
        }
    }

    /// Gives the current file up because the restore ends. A program that a plugin feeds must not
    /// take this for the end of its data.
    fn give_up_early(&mut self) {
        if let Some(plugin) = self.section.plugin() {
            plugin.cancel(&mut self.report);
        }
        self.give_up();
    }

    /// Metadata that a plugin has saved with a file.
    fn plugin_metadata(&mut self, record: &[u8]) {
        let (Some(plugin), Some(item)) = (self.section.plugin(), &self.item) else { return };
        let PluginMetadata { total_size, total_count, kind, index, data } = match PluginMetadata::parse(record) {
            Ok(packet) => packet,
            Err(error) => {
                self.report.now(MessageType::Error, &texts::damaged_metadata(&item.output, &error));
                return self.give_up();
            }
        };
        let packet = MetadataPacket { total_size, total_count, kind, index, data: data.to_vec() };
        match plugin.restore_metadata(&packet, &mut self.report) {
            MetadataAnswer::Taken => {}
            MetadataAnswer::Skip => self.give_up(),
            MetadataAnswer::End => self.ends_early = true,
        }
    }

    /// An ACL or extended attributes in a plugin's own form.
    fn plugin_xacl(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let (Some(plugin), Some(item)) = (self.section.plugin(), &self.item) else { return };
        if !plugin.has_made_it() {
            return;
        }
        if item.file_type == Some(FileType::Directory) {
            plugin.write_xacl(kind, record, &mut self.report);
        } else if !self.xacls.hold(kind, stream, record) {
            self.report.now(MessageType::Warning, &texts::too_much_metadata(&item.output));
        }
    }

    /// An ACL or extended attributes (reference 05 §9.1, §10).
    fn metadata(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let Some(item) = &self.item else { return };
        self.state.has_acls |= kind == MetadataKind::Acl;
        match MetadataTime::of(item, kind, record, self.is_open(), self.made != Made::Nothing) {
            MetadataTime::Never => {}
            MetadataTime::Now => self.apply_to_directory(kind, stream, record),
            MetadataTime::AtClose => {
                if !self.metadata.hold(kind, stream, record) {
                    self.report.now(MessageType::Warning, &texts::too_much_metadata(&item.output));
                }
            }
        }
    }

    /// Metadata of directories is applied at once, even if they were skipped.
    fn apply_to_directory(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let Some(RestoreItem { path: Ok(path), output, .. }) = &self.item else { return };
        if let Made::Existing(acls) = &mut self.made {
            acls.access |= matches!(stream.kind(), Stream::LINUX_ACCESS_ACL | Stream::UNIX_ACCESS_ACL);
            acls.default |= matches!(stream.kind(), Stream::LINUX_DEFAULT_ACL | Stream::UNIX_DEFAULT_ACL);
        }
        let RestoreState { directories, writer, .. } = &mut *self.state;
        let warning = match directories.open(path) {
            Ok(directory) => writer.apply(&directory.target(), output, stream, record),
            // The error of the directory itself has said so.
            Err(OpenError::Refused { .. }) => WriterWarnings::default(),
            Err(error) => writer.no_target(output, kind, error.errno()),
        };
        metadata::warn(&mut self.report, warning);
    }

    /// Takes the ACLs away that a directory has and its record does not. A job that has brought no
    /// ACL may be of a backup that saves none.
    fn drop_other_acls(&mut self) {
        let Made::Existing(come) = self.made else { return };
        let Some(RestoreItem { path: Ok(path), output, .. }) = &self.item else { return };
        self.made = Made::Object;
        let RestoreState { directories, writer, has_acls, .. } = &mut *self.state;
        // Its ACLs have said so if it can't be opened any more.
        if *has_acls && let Ok(directory) = directories.open(path) {
            let warning = writer.drop_acls(&directory.target(), output, !come.access, !come.default);
            metadata::warn(&mut self.report, warning);
        }
    }

    /// Ends the current file: attributes, then ACLs and extended attributes (reference 05 §3.5).
    fn close(&mut self) {
        self.end_data();
        self.drop_other_acls();
        let metadata = std::mem::take(&mut self.metadata);
        let xacls = std::mem::take(&mut self.xacls);
        let (recorded, wrong_digest) = (self.recorded.take(), self.wrong_digest.take());
        let was_open = self.is_open();
        self.is_complete = false;
        let Some(item) = &self.item else { return };
        let report = &mut self.report;
        let RestoreState { digest, encryption, writer, usual, directories, .. } = &mut *self.state;
        let mut file = self.file.take();
        let mut signature = None;
        if was_open {
            signature = encryption.take_known_signature();
            let by_core = self.section.plugin().is_none_or(|plugin| plugin.set_attributes(report));
            // Of attributes that a plugin keeps for itself, the size need not be true.
            let restored = file.as_mut().filter(|_| by_core).and_then(|file| wrong_length(item, file));
            // Data of another length has another digest, so the length alone is reported.
            if let Some(restored) = restored {
                report.now(MessageType::Error, &texts::wrong_size(&item.output, item.stat.size, restored));
            } else if let Some(text) = wrong_digest {
                report.now(MessageType::Error, &text);
            } else if let (Some(recorded), None) = (recorded, &signature) {
                let kind = recorded.kind();
                let recorded = Recorded::Digest(recorded);
                findings::check(kind, recorded, item, file.as_ref(), digest, encryption, report);
            }
            if let Some(plugin) = self.section.plugin() {
                plugin.close(report);
            }
            match &file {
                Some(file) if by_core => attributes::set_of_file(report, file, item, usual),
                None if by_core => attributes::set_by_name(report, directories, item),
                Some(file) => {
                    if let Err(errno) = file.finish() {
                        report.now(MessageType::Error, &texts::modes_not_set(texts::OPEN_LINES, &item.output, errno));
                    }
                }
                _ => {}
            }
        }
        match &file {
            _ if metadata.is_empty() => {}
            Some(file) => {
                if let Some(descriptor) = file.descriptor() {
                    metadata.apply(writer, report, item, &Target::Open(descriptor));
                }
            }
            None => metadata.apply_by_name(directories, writer, report, item, self.made),
        }
        if let Some(plugin) = self.section.plugin() {
            for (kind, _, content) in xacls.records() {
                plugin.write_xacl(*kind, content, report);
            }
        }
        if !was_open {
            return;
        }
        match signature {
            Some((kind, signature)) => {
                let recorded = Recorded::Signature(signature);
                findings::check(kind, recorded, item, file.as_ref(), digest, encryption, report);
            }
            None => encryption.report_unsigned(wants_signature(item, file.as_ref()), &item.output, report),
        }
        digest.leave();
        digest.abandon();
        encryption.forget();
        if let Some(Err(errno)) = file.map(OutputFile::close) {
            report.now(MessageType::Error, &texts::close_failed(&item.output, errno));
        }
    }

    /// The summary of a round (reference 05 §14.3).
    fn summarize(&mut self) {
        let metadata: Vec<Vec<u8>> = self.state.writer.summaries().collect();
        for text in metadata {
            self.report.now(MessageType::Warning, &text);
        }
        let Ignored { data_streams, resource_forks, finder_info, lost } = self.ignored;
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

/// The length of the restored data, if it differs from that in the attributes.
fn wrong_length(item: &RestoreItem, file: &mut OutputFile) -> Option<i64> {
    let restored = if item.file_type == Some(FileType::Regular) { file.length()? } else { 0 };
    (restored > 0 && item.stat.size > 0 && restored != item.stat.size).then_some(restored)
}

/// Whether what was restored must be signed where signatures are checked. What comes out of a fifo
/// is signed by no backup; where signatures are needed it is reported as unsigned. An update of
/// attributes has no data to sign.
fn wants_signature(item: &RestoreItem, file: Option<&OutputFile>) -> bool {
    match item.file_type {
        Some(FileType::EmptyFile | FileType::Regular | FileType::Raw) => !item.is_update,
        Some(FileType::Fifo) => file.is_some_and(|file| file.reach_with(0) > 0),
        _ => false,
    }
}
