//! One round of a restore: the state machine over the records (reference 05 §3).

use std::os::fd::AsFd as _;
use std::time::Duration;

use fd_crypto::Digester;
use fd_messages::{CancelToken, JobLog, MessageType, Progress};
use fd_metadata::{MetadataWriter, Target, UsualOwner, WriterWarning, pin};
use fd_os::local_time::local_time;
use fd_records::{AttributesRecord, FileType, PluginName, Stat, Stream, StreamClass, listing};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use crate::digests::WrongFile;
use crate::digests::{Awaited, Finding, LongPromise};
use crate::digests::{DigestCheck, Promise, Verdict};
use crate::file::OutputFile;
use crate::file::RestoreItem;
use crate::file::{Created, Creator};
use crate::file::{DataLost, DataPath, Destination};
use crate::file::{Encryption, Undecipherable};
use crate::plan::RestorePlan;
use crate::report::{LongVerdict, QueuedMessage, Report};
use crate::stream::RecordSource;
use crate::stream::{End, Next, SequenceError, next_record};
use crate::texts;
use crate::tree::{Directories, OpenError, OutputPath};

/// The most ACL and attribute records that one file may have. A backup writes three.
const MOST_DELAYED: usize = 64;

/// The most bytes of ACLs, and as many of extended attributes, that one file may have. A backup writes no more.
const MOST_DELAYED_BYTES: usize = 1_000_000;

/// How long the next record may take before digests that were put off are made meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);

/// The same for those of long files: the fewer there are, the dearer is each.
const LONG_PATIENCE: Duration = Duration::from_secs(1);

/// What a restore remembers from one round (one Storage Daemon) to the next.
pub struct RestoreState {
    directories: Directories,
    writer: MetadataWriter,
    digest: DigestCheck,
    data: DataPath,
    encryption: Encryption,
    usual: UsualOwner,
    /// Messages of the round before that wait for the next one.
    queued: Vec<QueuedMessage>,
}

impl RestoreState {
    /// The state of a job that begins now. Symbolic links that appear from now on are not followed.
    pub fn new(plan: &RestorePlan) -> Self {
        Self {
            directories: Directories::new(),
            writer: MetadataWriter::new(),
            digest: DigestCheck::new(plan.check_digests, plan.keys.is_some(), plan.processor),
            data: DataPath::new(),
            encryption: Encryption::new(plan.keys.clone()),
            usual: UsualOwner::default(),
            queued: Vec::new(),
        }
    }

    /// Messages of an earlier round that nothing has been said after: the next round delivers them with its own.
    pub fn wait_with(&mut self, queued: Vec<QueuedMessage>) {
        self.queued = queued;
    }
}

/// The result of a round that was not fatal.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Messages that the stock daemon delivers only with its next one: deliver them before any other message of the
    /// job, and before its end, but after its status is settled (reference 05 §14.2).
    pub queued: Vec<QueuedMessage>,
}

/// Restores the records of one read session, from behind `3000 OK data` to the end of the data.
///
/// Everything is written through handles of directories below the place that the plan says; errors of one file are
/// told and the next file is tried.
///
/// # Errors
///
/// Where the sequence of records is damaged, so that what follows has no meaning. The current file is then left as it
/// is, readable by nobody but its owner, and the operator has been told.
pub fn run(
    plan: &RestorePlan,
    state: &mut RestoreState,
    progress: &Progress,
    log: &dyn JobLog,
    cancel: &CancelToken,
    source: &mut dyn RecordSource,
) -> Result<Outcome, SequenceError> {
    state.digest.long_files().belong_to(cancel);
    let mut round = Round {
        plan,
        progress,
        cancel,
        report: Report::going_on(log, std::mem::take(&mut state.queued)),
        state,
        item: None,
        file: None,
        is_complete: false,
        wrong_digest: None,
        delayed: Delayed::default(),
        previous: Stream::NONE,
        failed_parent: None,
        ignored: Ignored::default(),
    };
    let end = round.records(source);
    round.settle();
    round.state.directories.leave_all();
    round.summarise();
    end.map(|end| Outcome { end, queued: round.report.into_queue() })
}

/// Counts of what was passed over.
#[derive(Default, Debug)]
struct Ignored {
    data_streams: u64,
    resource_forks: u64,
    finder_info: u64,
}

/// ACLs and extended attributes of the current file, in bounded memory.
#[derive(Default, Debug)]
struct Delayed {
    records: Vec<(Stream, Vec<u8>)>,
    acl_bytes: usize,
    xattr_bytes: usize,
    /// There was more than fits; nothing else of this file is taken.
    is_full: bool,
}

impl Delayed {
    /// Keeps a record if it fits, and nothing behind one that does not. `false`: it is the first one that does not.
    fn hold(&mut self, stream: Stream, record: &[u8]) -> bool {
        if self.is_full {
            return true;
        }
        let bytes = if is_acl(stream) { &mut self.acl_bytes } else { &mut self.xattr_bytes };
        *bytes = bytes.saturating_add(record.len());
        self.is_full = *bytes > MOST_DELAYED_BYTES || self.records.len() >= MOST_DELAYED;
        if !self.is_full {
            self.records.push((stream, record.to_vec()));
        }
        !self.is_full
    }
}

/// What metadata of the last record may be applied to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MetadataTime {
    Now,
    AtClose,
    Never,
}

struct Round<'a> {
    plan: &'a RestorePlan,
    progress: &'a Progress,
    cancel: &'a CancelToken,
    report: Report<'a>,
    state: &'a mut RestoreState,
    /// The last attribute record that something was made for.
    item: Option<RestoreItem>,
    /// Its file, if its data is wanted.
    file: Option<OutputFile>,
    /// Whether its digest has come and is right: it is the last record of a file, so nothing of it is missing.
    is_complete: bool,
    /// What is to be said of its digest, if its length does not say more.
    wrong_digest: Option<Vec<u8>>,
    /// ACLs and extended attributes that wait for the attributes.
    delayed: Delayed,
    /// The stream of the record before, without flag bits.
    previous: Stream,
    failed_parent: Option<OutputPath>,
    ignored: Ignored,
}

impl Round<'_> {
    /// Takes all records.
    fn records(&mut self, source: &mut dyn RecordSource) -> Result<End, SequenceError> {
        loop {
            self.keep_promises(source);
            match next_record(source, self.cancel) {
                Ok(Next::Record(stream, record, memory)) => {
                    self.state.digest.stands_in(memory);
                    self.record(stream, record);
                    self.state.digest.stands_in(None);
                    self.previous = stream.kind();
                }
                Ok(Next::End(end)) => {
                    self.close();
                    if let End::ConnectionLost(error) = &end {
                        self.report.now(MessageType::Error, &texts::connection_lost(error));
                    }
                    return Ok(end);
                }
                Err(error) => {
                    self.decide();
                    if self.is_complete {
                        self.close();
                    }
                    self.tell_wrong_digest();
                    self.report.now(MessageType::Fatal, &texts::sequence(&error, &texts::RESTORE_LINES));
                    return Err(error);
                }
            }
        }
    }

    /// Takes one record (reference 05 §3.2).
    fn record(&mut self, stream: Stream, record: &[u8]) {
        match stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => self.attributes(stream, record),
            StreamClass::Data(layout) => self.data(stream, layout.is_encrypted, record),
            StreamClass::SessionData => self.session_data(record),
            StreamClass::SignedDigest => self.signature(record),
            StreamClass::ResourceFork => self.ignored.resource_forks += 1,
            StreamClass::FinderInfo => self.ignored.finder_info += 1,
            StreamClass::Acl | StreamClass::Xattr => self.metadata(stream, record),
            StreamClass::Digest(_) => self.digest(stream, record),
            StreamClass::PluginName => self.plugin_name(record),
            StreamClass::PluginMetadata | StreamClass::RestoreObject | StreamClass::Ignored => {}
            StreamClass::PluginData | StreamClass::PluginObject | StreamClass::Unknown => {
                self.close();
                self.report.now(MessageType::Warning, &texts::unexpected_stream(stream));
            }
        }
    }

    /// An attribute record: makes its object (reference 05 §3.3).
    fn attributes(&mut self, stream: Stream, record: &[u8]) {
        self.close();
        // Whatever becomes of this record, nothing that follows is meant for the one before.
        self.item = None;
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
        let item = RestoreItem::new(&parsed, stream, self.plan);
        self.progress.add_files_examined(1);
        self.progress.set_current_file(&item.output);
        if self.state.digest.long_files().has_promises() && self.changes_long_file(&item) {
            self.settle();
        }
        let created = Creator {
            directories: &mut self.state.directories,
            report: &mut self.report,
            replace: self.plan.replace,
            cancel: self.cancel,
            failed_parent: &mut self.failed_parent,
        }
        .create(&item);
        if matches!(created, Created::Open(_) | Created::Made) {
            self.tell_restored(&item);
        }
        self.progress.add_file();
        match created {
            Created::Open(file) => {
                let file = self.file.insert(file);
                let is_readable = || file.can_be_read_later();
                self.state.data.begin();
                self.state.digest.begin(item.stat.size, is_readable);
            }
            Created::Made => self.dress(&item),
            Created::Skipped | Created::Failed => {}
        }
        self.item = Some(item);
    }

    /// Whether the job is about to change a file whose digest is still to be made: afterwards nobody could tell this from
    /// a change by somebody else.
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
        first.is_ok_and(|first| digest.long_files().has(first.st_dev, first.st_ino))
    }

    /// The line about a restored file (reference 05 §3.6).
    fn tell_restored(&mut self, item: &RestoreItem) {
        if !self.report.wants(MessageType::Restored) {
            return;
        }
        let mut line = Vec::with_capacity(item.output.len() + 100);
        let target = (item.file_type == Some(FileType::Symlink)).then_some(item.link.text.as_slice());
        let modified = local_time(item.stat.mtime);
        listing::push_line(&mut line, &item.stat, modified, self.state.writer.names(), &item.output, target);
        self.report.now(MessageType::Restored, &line);
    }

    /// Sets the attributes of what has no data. Failures are silent, as in the reference (05 §8.4).
    fn dress(&mut self, item: &RestoreItem) {
        let is_socket = item.stat.mode_type() == Stat::MODE_SOCKET;
        if item.file_type == Some(FileType::Special) && is_socket {
            return;
        }
        if item.is_directory() {
            let mut stat = item.stat;
            if item.data_stream.layout().is_win32 && stat.rdev == 5 {
                // A Windows directory whose permissions mean nothing here.
                stat.mode = stat.mode & !0o1000 | 0o7;
            }
            if let Some(target) = self.state.directories.current() {
                let _failures = target.set_attributes(&stat);
            }
            self.state.directories.note_record();
            return;
        }
        let guarded = self.state.directories.is_guarded();
        let (Some(directory), Some(name)) = (self.state.directories.handle(), last_name(item)) else { return };
        if guarded {
            let _failures = Target::Named { directory, name }.set_attributes(&item.stat);
        } else if let Ok(pinned) = pin(directory, name) {
            dress_pinned(&Target::Pinned(pinned.as_fd()), item);
        }
    }

    /// A data record (reference 05 §3.4).
    fn data(&mut self, stream: Stream, is_encrypted: bool, record: &[u8]) {
        let follows = self.previous == stream.kind()
            || matches!(
                self.previous.class(),
                StreamClass::Attributes | StreamClass::SessionData | StreamClass::PluginMetadata
            );
        let (Some(file), Some(item), true) = (self.file.as_mut(), self.item.as_ref(), follows) else { return };
        self.progress.add_read_bytes(record.len() as u64);
        let mut destination = destination(file, item);
        let RestoreState { data, digest, encryption, .. } = &mut *self.state;
        let (progress, report) = (self.progress, &mut self.report);
        let written = if is_encrypted {
            encryption
                .record(stream, record, &item.output, report)
                .map_err(|Undecipherable| DataLost)
                .and_then(|()| decrypted(stream, encryption, data, &mut destination, digest, progress, report))
        } else {
            data.record(stream, record, &mut destination, digest, progress, report)
        };
        if written.is_err() {
            self.give_up();
        }
    }

    /// The end of encrypted data, which only the record behind it tells: the cipher's last block and what it holds.
    fn end_decryption(&mut self) {
        let (Some(file), Some(item)) = (self.file.as_mut(), self.item.as_ref()) else { return };
        let RestoreState { data, digest, encryption, .. } = &mut *self.state;
        let report = &mut self.report;
        if !encryption.finish(&item.output, report) {
            return;
        }
        let mut destination = destination(file, item);
        let stream = encryption.stream();
        if decrypted(stream, encryption, data, &mut destination, digest, self.progress, report).is_ok() {
            encryption.check_rest(&item.output, report);
        }
    }

    /// The keys of an encrypted file.
    fn session_data(&mut self, record: &[u8]) {
        self.decide();
        if self.is_complete {
            // It stands at the wrong place: the file that it would belong to is done.
            self.close();
        }
        if self.file.is_some() && self.state.encryption.session(record, &mut self.report).is_err() {
            self.give_up();
        }
    }

    /// A signature: of the data that was just restored. It is checked when the file is complete.
    fn signature(&mut self, record: &[u8]) {
        if let (Some(_file), Some(item)) = (&self.file, &self.item) {
            self.state.encryption.signature(record, &item.output, &mut self.report);
        }
    }

    /// Leaves the current file as it is: private, without attributes.
    fn give_up(&mut self) {
        self.decide();
        self.tell_wrong_digest();
        self.file = None;
        self.is_complete = false;
        self.delayed = Delayed::default();
        self.state.digest.abandon();
        self.state.encryption.forget();
    }

    /// A digest: of the data that was just restored.
    fn digest(&mut self, stream: Stream, record: &[u8]) {
        self.decide();
        self.end_decryption();
        let (Some(file), Some(item)) = (&self.file, &self.item) else { return };
        if self.state.encryption.known_signature().is_some() {
            self.state.digest.spare();
            self.is_complete = true;
            return;
        }
        let read_again = |digester: &mut Digester| file.read_again(|data| digester.update(data));
        if let Verdict::Differs(kind, restored) = self.state.digest.compare(stream, record, read_again) {
            self.wrong_digest = Some(texts::digest_differs(kind, &item.output, record, &restored));
        } else {
            self.is_complete = true;
        }
    }

    /// Finds out whether the digest of the current file is right, if that was put off.
    fn decide(&mut self) {
        let (Some(file), Some(item)) = (&self.file, &self.item) else { return };
        let read_again = |digester: &mut Digester| file.read_again(|data| digester.update(data));
        if let Some((recorded, restored)) = self.state.digest.decide(read_again) {
            self.wrong_digest =
                Some(texts::digest_differs(restored.kind(), &item.output, recorded.as_bytes(), &restored));
            self.is_complete = false;
        }
    }

    /// Makes digests that were put off, once there are enough of them, or while the source is slow.
    fn keep_promises(&mut self, source: &mut dyn RecordSource) {
        let digest = &self.state.digest;
        if digest.has_promises()
            && (digest.promises_are_many() || self.report.holds_much() || !source.is_near(PATIENCE))
        {
            self.tell_held();
        }
        let long = self.state.digest.long_files();
        if !long.has_promises() {
            return;
        }
        if self.report.holds_much() || !source.is_near(LONG_PATIENCE) {
            self.settle();
        } else if long.go_on() {
            self.tell_held();
        }
    }

    /// Finds out about all digests that were put off, and tells what had to wait for that.
    fn settle(&mut self) {
        self.state.digest.long_files().finish();
        self.tell_held();
    }

    /// Finds out about the digests of small files, and tells what waits for nothing else.
    fn tell_held(&mut self) {
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        let (small, long) = digest.settle();
        let small = |number| {
            let WrongFile { name, recorded, restored } = small.wrong(number)?;
            Some(texts::digest_differs(restored.kind(), name, recorded, &restored))
        };
        let long_verdict = |promise| LongVerdict::Say(said_of_long_file(promise, encryption));
        self.report.settle(small, || long.next_known().map_or(LongVerdict::Unknown, long_verdict));
        digest.clear();
    }

    fn tell_wrong_digest(&mut self) {
        if let Some(text) = self.wrong_digest.take() {
            self.report.now(MessageType::Error, &text);
        }
    }

    /// The start or end of a plugin's files.
    fn plugin_name(&mut self, record: &[u8]) {
        self.close();
        if let Some(PluginName::Start { command, .. }) = PluginName::parse(record) {
            self.report.now(MessageType::Warning, &texts::plugin_not_found(command));
        }
    }

    /// An ACL or extended attributes (reference 05 §9.1, §10).
    fn metadata(&mut self, stream: Stream, record: &[u8]) {
        match self.metadata_time(stream, record) {
            MetadataTime::Never => {}
            MetadataTime::Now => self.apply_to_directory(stream, record),
            MetadataTime::AtClose => {
                if !self.delayed.hold(stream, record)
                    && let Some(item) = &self.item
                {
                    self.report.now(MessageType::Warning, &texts::too_much_metadata(&item.output));
                }
            }
        }
    }

    fn metadata_time(&self, stream: Stream, record: &[u8]) -> MetadataTime {
        let Some(item) = &self.item else { return MetadataTime::Never };
        match item.file_type {
            Some(FileType::Directory) => MetadataTime::Now,
            _ if record.is_empty() => MetadataTime::Never,
            // An ACL of a link would land on what it leads to. No backup writes one.
            Some(FileType::Symlink) if is_acl(stream) => MetadataTime::Never,
            Some(FileType::Symlink) => MetadataTime::AtClose,
            _ if self.file.is_some() => MetadataTime::AtClose,
            _ if item.is_update && is_acl(stream) => MetadataTime::AtClose,
            _ => MetadataTime::Never,
        }
    }

    /// Directories get theirs at once, even if they were skipped.
    fn apply_to_directory(&mut self, stream: Stream, record: &[u8]) {
        let Some(RestoreItem { path: Ok(path), output, .. }) = &self.item else { return };
        let warning = match self.state.directories.open(path) {
            Ok(_directory) => {
                let Some(target) = self.state.directories.current() else { return };
                apply(&mut self.state.writer, &target, output, stream, record)
            }
            // The file itself has been said to be refused.
            Err(OpenError::Refused { .. }) => None,
            Err(error) => self.state.writer.no_target(output, is_acl(stream), error.errno()),
        };
        warn(&mut self.report, warning);
    }

    /// Ends the current file: attributes, then ACLs and extended attributes (reference 05 §3.5).
    fn close(&mut self) {
        self.end_decryption();
        let delayed = std::mem::take(&mut self.delayed).records;
        self.is_complete = false;
        let wrong_digest = self.wrong_digest.take();
        let Some(item) = &self.item else { return };
        if let Some(mut file) = self.file.take() {
            let RestoreState { digest, encryption, writer, usual, .. } = &mut *self.state;
            let report = &mut self.report;
            let is_promised = finish_file(report, &mut file, item, wrong_digest.as_deref(), digest, usual);
            let target = Target::Open(file.descriptor());
            apply_delayed(writer, report, item, &target, &delayed);
            if is_promised {
                digest.leave();
            }
            let known = encryption.known_signature();
            if known.is_some_and(|(kind, signature)| digest.promise_signed(kind, signature, &item.output, &file)) {
                report.hold_for_long_verdict();
                digest.leave();
            } else {
                let read_again = |digester: &mut Digester| file.read_again(|data| digester.update(data));
                let signed_digest = |kind| digest.signed_digest(kind, read_again);
                let wants_signature = wants_signature(item, &file);
                encryption.verify(wants_signature, &item.output, report, signed_digest);
            }
            digest.abandon();
            encryption.forget();
        } else if !delayed.is_empty() {
            self.apply_by_name(&delayed);
        }
    }

    /// Applies what waited for a link, or for a file whose attributes alone were updated.
    fn apply_by_name(&mut self, delayed: &[(Stream, Vec<u8>)]) {
        let Some(item) = &self.item else { return };
        let (Ok(path), Some(name)) = (&item.path, last_name(item)) else { return };
        let Some((parent, _name)) = path.split() else { return };
        // A second handle, so that the file is not in the way of the next one's directories.
        let Ok(directory) = self.state.directories.open_aside(&parent) else { return };
        let Ok(pinned) = pin(directory.as_fd(), name) else { return };
        let target = Target::Pinned(pinned.as_fd());
        let is_link = |mode: u32| mode & Stat::MODE_TYPE == Stat::MODE_SYMLINK;
        let wants_link = item.file_type == Some(FileType::Symlink);
        if target.stat().is_ok_and(|stat| is_link(stat.st_mode) == wants_link) {
            apply_delayed(&mut self.state.writer, &mut self.report, item, &target, delayed);
        }
    }

    /// The last words of a round (reference 05 §14.3).
    fn summarise(&mut self) {
        let metadata: Vec<Vec<u8>> = self.state.writer.summaries().collect();
        for text in metadata {
            self.report.now(MessageType::Warning, &text);
        }
        let Ignored { data_streams, resource_forks, finder_info } = self.ignored;
        if data_streams > 1 {
            self.report.now(MessageType::Warning, &texts::ignored_data_streams(data_streams));
        }
        if resource_forks > 0 {
            self.report.now(MessageType::Info, &texts::ignored_resource_forks(resource_forks));
        }
        if finder_info > 0 {
            self.report.now(MessageType::Info, &texts::ignored_finder_info(finder_info));
        }
    }
}

/// Sets the attributes of what was just made where others can change names: what stands there now may be theirs.
fn dress_pinned(target: &Target<'_>, item: &RestoreItem) {
    let Ok(found) = target.stat() else { return };
    let stat = &item.stat;
    let same_type = (found.st_mode ^ stat.mode) & Stat::MODE_TYPE == 0;
    let is_device = matches!(stat.mode_type(), Stat::MODE_CHARACTER | Stat::MODE_BLOCK);
    if !same_type || (is_device && found.st_rdev != stat.rdev) {
        return;
    }
    if item.file_type != Some(FileType::HardLink) {
        let _failures = target.set_attributes(stat);
    } else if (found.st_uid, found.st_gid, found.st_mode) == (stat.uid, stat.gid, stat.mode) {
        // The first name has its owner and mode from its own record. Were they different, this would be another file.
        let _times = target.set_times(stat.atime, stat.mtime);
    }
}

/// Checks the length and sets the attributes of a file whose data has come. Data of another length has another digest,
/// so of a file of the wrong length nothing is said of that. Whether it is a long file whose digest will be made later.
fn finish_file(
    report: &mut Report<'_>,
    file: &mut OutputFile,
    item: &RestoreItem,
    wrong_digest: Option<&[u8]>,
    digest: &mut DigestCheck,
    usual: &mut UsualOwner,
) -> bool {
    let restored = match item.file_type {
        Some(FileType::Regular) => file.length().unwrap_or(0),
        _ => 0,
    };
    let mut is_long = false;
    if restored > 0 && item.stat.size > 0 && restored != item.stat.size {
        report.now(MessageType::Error, &texts::wrong_size(&item.output, item.stat.size, restored));
    } else if let Some(text) = wrong_digest {
        report.now(MessageType::Error, text);
    } else {
        match digest.promise(&item.output, file) {
            Promise::None => {}
            Promise::Small => report.hold_for_verdict(),
            Promise::Long => {
                report.hold_for_long_verdict();
                is_long = true;
            }
            Promise::Differs(recorded, restored) => {
                let text = texts::digest_differs(restored.kind(), &item.output, recorded.as_bytes(), &restored);
                report.now(MessageType::Error, &text);
            }
        }
    }
    let target = Target::Open(file.descriptor());
    let failures =
        if file.is_new() { target.set_attributes_of_new(&item.stat, usual) } else { target.set_attributes(&item.stat) };
    if let Some(errno) = failures.times {
        report.now(MessageType::Error, &texts::times_not_set(&item.output, errno));
    }
    is_long
}

/// Whether what was restored must be signed where signatures are checked. What comes out of a fifo is signed by no backup;
/// where signatures are wanted it is said to have none. An update of attributes has no data to sign.
fn wants_signature(item: &RestoreItem, file: &OutputFile) -> bool {
    match item.file_type {
        Some(FileType::EmptyFile | FileType::Regular | FileType::Raw) => !item.is_update,
        Some(FileType::Fifo) => file.reach_with(0) > 0,
        _ => false,
    }
}

/// Where the data of an item goes.
fn destination<'d>(file: &'d mut OutputFile, item: &'d RestoreItem) -> Destination<'d> {
    let (recorded, most) = (item.stat.size, item.most_data());
    Destination { file, path: &item.output, is_delta: item.delta_seq > 0, recorded, most }
}

/// What is to be told of a long file whose digest was put off.
fn said_of_long_file(promise: LongPromise, encryption: &Encryption) -> Vec<QueuedMessage> {
    let LongPromise { name, awaited, finding } = promise;
    let (digest, is_changed) = match finding {
        Finding::None => return Vec::new(),
        Finding::Has(digest) => (digest, false),
        Finding::Changed(digest) => (digest, true),
        Finding::Unreadable(errno) => return vec![(MessageType::Error, texts::not_read_back(&name, errno))],
    };
    let problem = match awaited {
        Awaited::Digest(recorded) if recorded == digest => Vec::new(),
        Awaited::Digest(recorded) => {
            let text = texts::digest_differs(digest.kind(), &name, recorded.as_bytes(), &digest);
            vec![(MessageType::Error, text)]
        }
        Awaited::Signature(signature) => encryption.verify_later(&signature, digest, &name),
    };
    // Who changes a file that has just been restored is no error of the restore.
    if is_changed && !problem.is_empty() {
        vec![(MessageType::Warning, texts::changed_meanwhile(&name))]
    } else {
        problem
    }
}

/// The name of the object in its directory.
fn last_name(item: &RestoreItem) -> Option<&[u8]> {
    let path = item.path.as_ref().ok()?.as_bytes();
    path.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty())
}

/// Writes the blocks that have been decrypted.
fn decrypted(
    stream: Stream,
    encryption: &mut Encryption,
    data: &mut DataPath,
    destination: &mut Destination<'_>,
    digest: &mut DigestCheck,
    progress: &Progress,
    report: &mut Report<'_>,
) -> Result<(), DataLost> {
    let path = destination.path;
    while let Some(block) = encryption.next_block(path, report).map_err(|Undecipherable| DataLost)? {
        data.record(stream, block, destination, digest, progress, report)?;
    }
    Ok(())
}

fn is_acl(stream: Stream) -> bool {
    stream.class() == StreamClass::Acl
}

fn apply_delayed(
    writer: &mut MetadataWriter,
    report: &mut Report<'_>,
    item: &RestoreItem,
    target: &Target<'_>,
    delayed: &[(Stream, Vec<u8>)],
) {
    for (stream, record) in delayed {
        let warning = apply(writer, target, &item.output, *stream, record);
        warn(report, warning);
    }
}

fn apply(
    writer: &mut MetadataWriter,
    target: &Target<'_>,
    path: &[u8],
    stream: Stream,
    record: &[u8],
) -> Option<WriterWarning> {
    if is_acl(stream) {
        writer.set_acl(target, path, stream, record)
    } else {
        writer.set_xattrs(target, path, stream, record)
    }
}

fn warn(report: &mut Report<'_>, warning: Option<WriterWarning>) {
    match warning {
        None => {}
        Some(WriterWarning { text, queued: true }) => report.later(MessageType::Warning, text),
        Some(WriterWarning { text, queued: false }) => report.now(MessageType::Warning, &text),
    }
}
