//! Attribute records, each of which makes its object (reference 05 §3.3), and the ACLs and extended
//! attributes that follow.

use fd_messages::MessageType;
use fd_metadata::WriterWarnings;
use fd_os::local_time::local_time_of_any;
use fd_records::{AttributesRecord, FileType, MetadataKind, Stream, listing};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::attributes;
use super::held::{Current, Round};
use super::made::{Made, Taker};
use super::metadata::{self, MetadataTime};
use super::state::RestoreState;
use crate::file::{Created, Creator, RestoreItem};
use crate::output_file::OutputFile;
use crate::plugins::Creation;
use crate::texts;
use crate::tree::{OpenError, OutputPath};

impl Round<'_> {
    /// An attribute record: makes its object.
    pub(super) fn attributes(&mut self, stream: Stream, record: &[u8]) {
        self.close();
        // Records that follow do not belong to the file before, even if this record fails.
        self.current = None;
        let Ok(parsed) = AttributesRecord::parse(record) else {
            self.report.now(MessageType::Error, &texts::attributes(record));
            return;
        };
        if !parsed.lstat.data_stream.is_restorable_data() {
            self.said_once.data_streams += 1;
            if self.said_once.data_streams == 1 {
                let text = texts::unsupported_data(parsed.lstat.data_stream);
                self.report.now(MessageType::Warning, &text);
            }
            return;
        }
        let item = RestoreItem::new(&parsed, stream, self.section.is_of_plugin(), self.plan);
        self.announce(&item);
        if self.state.digest.has_long() && self.changes_long_file(&item) {
            self.settle();
        }
        let creation = self.create_by_plugin(&item, &parsed, stream);
        let created = match creation {
            Creation::Core => self.create(&item),
            Creation::Open | Creation::Made => Created::Made,
            Creation::Nothing => Created::Skipped,
        };
        self.begin(item, creation, created);
    }

    /// A file of a run begins, which is made already if there is one.
    pub(super) fn file_of_run(&mut self, item: RestoreItem, made: Option<OutputFile>) {
        self.announce(&item);
        let created = match made {
            Some(file) => Created::Open(file),
            None => self.create(&item),
        };
        self.begin(item, Creation::Core, created);
    }

    /// This object is made now.
    fn announce(&self, item: &RestoreItem) {
        self.progress.add_files_examined(1);
        self.progress.set_current_file(&item.output);
    }

    /// The object is made, or not; its further records come next.
    fn begin(&mut self, item: RestoreItem, creation: Creation, created: Created) {
        if matches!(created, Created::Open(_) | Created::Made) {
            self.report_restored(&item);
        }
        self.progress.add_file();
        let made = match created {
            Created::Open(file) => self.begin_data(&item, file),
            Created::Made => self.made(&item, creation),
            Created::Skipped => Made::Kept,
            Created::Failed => Made::Nothing,
        };
        self.current = Some(Current::new(item, made));
    }

    /// The data of this file comes next.
    fn begin_data(&mut self, item: &RestoreItem, file: OutputFile) -> Made {
        if let (Some(identity), Ok(path)) = (file.identity(), &item.path) {
            self.state.directories.note_object(path, identity);
        }
        self.state.data.begin();
        self.state.digest.begin(item.stat.size, Some(&file));
        Made::open(Taker::File(file))
    }

    /// The object is there: sets its attributes, unless a plugin takes its data first.
    fn made(&mut self, item: &RestoreItem, creation: Creation) -> Made {
        if creation == Creation::Open {
            self.state.data.begin();
            self.state.digest.begin(item.stat.size, None);
            return Made::open(Taker::Plugin { address: 0 });
        }
        let by_core = self.section.plugin().is_none_or(|plugin| plugin.set_attributes(&mut self.report));
        let directories = &mut self.state.directories;
        match creation {
            Creation::Core if by_core => return attributes::set_without_data(&mut self.report, directories, item),
            Creation::Made if by_core => attributes::set_by_name(&mut self.report, directories, item),
            _ => {}
        }
        Made::Object
    }

    /// Makes an object as the daemon does.
    fn create(&mut self, item: &RestoreItem) -> Created {
        Creator {
            directories: &mut self.state.directories,
            report: &mut self.report,
            replace: self.plan.replace,
            cancel: self.cancel,
        }
        .create(item)
    }

    /// Lets the current plugin make an object, if there is one.
    fn create_by_plugin(&mut self, item: &RestoreItem, record: &AttributesRecord<'_>, stream: Stream) -> Creation {
        if self.section.is_lost() {
            self.said_once.lost += 1;
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
        self.report.now(MessageType::Restored, &fd_messages::one_line(&[&line]));
    }

    /// An ACL or extended attributes (reference 05 §9.1, §10).
    pub(super) fn metadata(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let Some(current) = &mut self.current else { return };
        self.state.has_acls |= kind == MetadataKind::Acl;
        match MetadataTime::of(&current.item, kind, record, &current.made) {
            MetadataTime::Never => {}
            MetadataTime::Now => self.apply_to_directory(kind, stream, record),
            MetadataTime::AtClose => {
                if !current.metadata.hold(kind, stream, record) {
                    self.report.now(MessageType::Warning, &texts::too_much_metadata(&current.item.output));
                }
            }
        }
    }

    /// Metadata of directories is applied at once, or reported if they could not be made.
    fn apply_to_directory(&mut self, kind: MetadataKind, stream: Stream, record: &[u8]) {
        let Some(Current { item, made, .. }) = &mut self.current else { return };
        let RestoreItem { path: Ok(path), output, .. } = item else { return };
        if let Made::Existing(acls) = made {
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
}
