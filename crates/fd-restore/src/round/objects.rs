//! Attribute records, each of which makes its object (reference 05 §3.3), and the ACLs and extended
//! attributes that follow.

use fd_messages::MessageType;
use fd_metadata::{ACCESS_ACL, DEFAULT_ACL, WriterWarnings};
use fd_records::{AttributesRecord, FileType, MetadataKind, Stream, xattr};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::held::{Current, Round};
use super::made::Made;
use super::metadata::{self, MetadataTime};
use super::state::RestoreState;
use crate::created::Created;
use crate::file::RestoreItem;
use crate::overlap::Answer;
use crate::texts;
use crate::tree::{OpenError, OutputPath};

impl Round<'_> {
    /// An attribute record: makes its object.
    pub(super) fn attributes(&mut self, stream: Stream, record: &[u8]) {
        self.give_up_endless();
        self.close();
        self.leave_current();
        let Some(parsed) = AttributesRecord::parse(record) else {
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
        // The job has failed already where that can't be decided: nothing more is made.
        let Ok(item) = RestoreItem::new(&parsed, stream, self.section.is_of_plugin(), self.plan) else { return };
        self.announce(&item);
        let may_wait = matches!(item.file_type, Some(FileType::Fifo | FileType::Raw));
        if may_wait || self.state.digest.has_long() && self.changes_long_file(&item) {
            self.settle();
        }
        self.meet_late_link(&item);
        let created = self.create_by_plugin(&item, &parsed, stream);
        let created = created.unwrap_or_else(|| self.create(&item, false));
        self.begin(item, created);
    }

    /// A file of a run begins, which may be made already.
    pub(super) fn file_of_run(&mut self, item: RestoreItem, answer: Answer) {
        self.leave_current();
        self.announce(&item);
        self.meet_late_link(&item);
        let created = answer.made().map_or_else(|| self.create(&item, false), Created::Data);
        self.begin(item, created);
    }

    /// Another object begins, or an attribute record that can't be read: what follows does not
    /// belong to the object before, nor does the session of a file that could not be replaced, with
    /// the data that was decrypted of it, belong to the next one.
    fn leave_current(&mut self) {
        self.current = None;
        self.state.encryption.forget();
    }

    /// This object is made now.
    fn announce(&self, item: &RestoreItem) {
        self.progress.add_files_examined(1);
        self.progress.set_current_file(&item.output);
    }

    /// The object is made, or not; its further records come next.
    fn begin(&mut self, item: RestoreItem, created: Created) {
        self.progress.add_file();
        if matches!(created, Created::Late) {
            self.late_links.hold(item);
            return;
        }
        let made = self.made(&item, created);
        self.current = Some(Current::new(item, made));
    }

    /// Lets the current plugin make an object. `None`: the daemon is to make it.
    fn create_by_plugin(
        &mut self,
        item: &RestoreItem,
        record: &AttributesRecord<'_>,
        stream: Stream,
    ) -> Option<Created> {
        if self.section.is_lost() {
            self.said_once.lost += 1;
            return Some(Created::Kept);
        }
        let (plugin, access) = (self.section.plugin()?, self.plan.plugins.as_ref()?);
        plugin.create(item.for_plugin(record, stream, self.plan.replace, access), &mut self.report)
    }

    /// Whether the job is about to change a file whose digest is still to be made: afterwards this
    /// would look like a change by another process.
    fn changes_long_file(&mut self, item: &RestoreItem) -> bool {
        if item.delta_seq > 0 || item.is_update {
            return true;
        }
        let RestoreState { directories, digest, .. } = &mut *self.state;
        let name = match item.file_type {
            Some(FileType::HardLink) => item.first_name(),
            _ => return false,
        };
        let Ok(Some((parent, name))) = name.as_ref().map(OutputPath::split) else { return false };
        let Ok(directory) = directories.open_aside(&parent) else { return false };
        let first = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        first.is_ok_and(|first| digest.waits_for(first.st_dev, first.st_ino))
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
        if let Made::Directory(acls) = made {
            acls.access |= matches!(stream.kind(), Stream::LINUX_ACCESS_ACL | Stream::UNIX_ACCESS_ACL);
            acls.default |= matches!(stream.kind(), Stream::LINUX_DEFAULT_ACL | Stream::UNIX_DEFAULT_ACL);
            if stream.kind() == Stream::LINUX_XATTR {
                let names = || xattr::entries(record).map(|attribute| attribute.name);
                acls.access |= names().any(|name| name == ACCESS_ACL);
                acls.default |= names().any(|name| name == DEFAULT_ACL);
            }
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
