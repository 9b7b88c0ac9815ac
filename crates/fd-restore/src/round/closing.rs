//! The end of an object: digest or signature, attributes, then ACLs and extended attributes
//! (reference 05 §3.5).

use fd_crypto::pki::Signature;
use fd_messages::MessageType;
use fd_metadata::Target;
use fd_records::{DigestKind, FileType, Stream};

use super::held::{Current, Round};
use super::made::{AclsCome, DigestRecord, Made, Open};
use super::state::RestoreState;
use super::{attributes, findings, metadata};
use crate::created::Taker;
use crate::digests::Recorded;
use crate::file::RestoreItem;
use crate::output_file::OutputFile;
use crate::stream::End;
use crate::texts;

impl Round<'_> {
    /// Ends the current object, whose further records are out of place.
    pub(super) fn close(&mut self) {
        self.end_data();
        self.keep_waiting();
        self.flush();
        let Some(mut current) = self.current.take() else { return };
        if let Some(open) = current.made.end_data() {
            self.close_open(&mut current, open);
        } else {
            if let Made::Directory(come) = current.made {
                current.made = Made::Object;
                self.drop_other_acls(&current.item, come);
            }
            self.apply_held(&mut current, None);
        }
        self.current = Some(current);
    }

    /// The records end too early, so the ACLs of a directory may be missing. One that was there
    /// keeps those that it has. A new one stays as one that the job has not left: else the mask of
    /// its ACL would be the right of the group.
    pub(super) fn keep_acls(&mut self) {
        let Some(Current { item, made, .. }) = &mut self.current else { return };
        let Made::Directory(come) = *made else { return };
        *made = Made::Object;
        let RestoreState { directories, has_acls, .. } = &mut *self.state;
        let RestoreItem { path: Ok(path), output, .. } = item else { return };
        if !*has_acls || come.access {
            return;
        }
        if come.is_old {
            self.report.now(MessageType::Warning, &texts::acl_may_be_missing(output));
        } else if let Ok(directory) = directories.open(path) {
            directory.take_back();
            self.report.now(MessageType::Warning, &texts::directory_unfinished(output));
        }
    }

    /// Has the data of the current file written to the storage, while it counts as unfinished.
    fn flush(&mut self) {
        let Some((item, Open { to: Taker::File(file), .. })) = self.current.as_mut().and_then(Current::open) else {
            return;
        };
        // The current directory is that of the file, unless a thread could not fill that.
        if !file.is_second_try() && self.state.directories.is_local() {
            return;
        }
        if let Err(errno) = file.flush() {
            self.report.now(MessageType::Error, &texts::close_failed(&item.output, errno));
            self.give_up();
        }
    }

    /// Ends an object whose data has come.
    fn close_open(&mut self, current: &mut Current, Open { mut to, digest }: Open) {
        let signature = self.state.encryption.take_known_signature();
        self.complete(&current.item, &mut to, digest, signature.is_some());
        self.apply_held(current, Some(&to));
        self.check_signature(&current.item, to.file(), signature);
        self.state.digest.leave();
        self.state.digest.abandon();
        self.state.encryption.forget();
        if let Err(errno) = to.close() {
            self.report.now(MessageType::Error, &texts::close_failed(&current.item.output, errno));
        }
    }

    /// The keys of an encrypted file.
    pub(super) fn session_data(&mut self, record: &[u8]) {
        self.compare_now();
        if self.is_complete() {
            // It is out of place: its file is complete.
            self.close();
        }
        let is_waiting = matches!(self.current, Some(Current { made: Made::Waiting, .. }));
        if (is_waiting || self.is_open()) && self.state.encryption.session(record, &mut self.report).is_err() {
            self.give_up();
        }
    }

    /// Whether there may be more of the current file than has come before this end: data, or its
    /// ACL, where the job has brought any. A volume can end in mid-file, too, as the Storage Daemon
    /// goes on behind what it can't read.
    pub(super) fn is_torn(&mut self, end: &End) -> bool {
        let Some((item, Open { to, digest })) = self.current.as_mut().and_then(Current::open) else { return false };
        if digest.has_come() {
            return false;
        }
        match to {
            // The record that ends a plugin's file would have closed it. Its size may be any.
            _ if *end == End::EndOfData && item.is_of_plugin => to.length() != Some(item.stat.size),
            _ if *end == End::EndOfData => is_short(item, to),
            // How long a patch is, nothing tells.
            Taker::File(file) if !file.is_new() => item.is_patch(),
            Taker::File(_) if self.state.has_acls => true,
            Taker::File(_) | Taker::Finished(_) => item.is_patch() || to.length() != Some(item.stat.size),
            Taker::Plugin { .. } => true,
        }
    }

    /// Gives up a plugin's file whose end has not come, and another one's records have: what it is
    /// written to must not take a part of it for the whole.
    pub(super) fn give_up_endless(&mut self) {
        if self.is_open_by_plugin() && !self.is_complete() {
            self.report_torn();
            self.give_up();
        }
    }

    /// Reports that there should be more of the current file.
    pub(super) fn report_torn(&mut self) {
        let Some((item, open)) = self.current.as_mut().and_then(Current::open) else { return };
        let text = match wrong_length(item, &mut open.to) {
            _ if matches!(open.to, Taker::Plugin { .. }) => texts::end_missing(&item.output),
            None => texts::unfinished(&item.output),
            Some(restored) => texts::wrong_size(&item.output, item.stat.size, restored),
        };
        self.report.now(MessageType::Error, &text);
    }

    /// Data came that follows no data of its kind.
    pub(super) fn data_out_of_place(&mut self) {
        self.compare_now();
        if self.is_complete() {
            // It is of another file: behind its digest nothing of this one is missing.
            self.close();
        } else if self.is_open() || self.is_behind_plugin() {
            self.out_of_place(texts::data_out_of_place);
        }
    }

    /// Whether the records of a plugin have just ended, the last of which was a file's.
    fn is_behind_plugin(&self) -> bool {
        self.place.previous == Stream::PLUGIN_NAME
            && self.current.as_ref().is_some_and(|current| current.item.is_of_plugin)
    }

    /// A record came that shows, as `text` says, that others of the current file are missing. Of
    /// one whose digest has come nothing is. What else comes of it is not restored.
    pub(super) fn out_of_place(&mut self, text: fn(&[u8]) -> Vec<u8>) {
        self.compare_now();
        let has_error = self.open().is_some_and(|open| matches!(open.digest, DigestRecord::Wrong(_)));
        let is_waiting = matches!(self.current, Some(Current { made: Made::Waiting, .. }));
        if is_waiting || self.is_open() && !self.is_complete() {
            self.give_up();
        } else {
            self.close();
        }
        if let Some(current) = self.current.take().filter(|_| !has_error) {
            self.report.now(MessageType::Error, &text(&current.item.output));
        }
    }

    /// Takes the ACLs away that a directory has and its record does not. A job that has brought no
    /// ACL may be of a backup that saves none.
    fn drop_other_acls(&mut self, item: &RestoreItem, come: AclsCome) {
        let RestoreItem { path: Ok(path), output, .. } = item else { return };
        let RestoreState { directories, writer, has_acls, .. } = &mut *self.state;
        // Its ACLs have said so if it can't be opened any more.
        if come.is_old
            && *has_acls
            && let Ok(directory) = directories.open(path)
        {
            let warning = writer.drop_acls(&directory.target(), output, !come.access, !come.default);
            metadata::warn(&mut self.report, warning);
        }
    }

    /// All data has come: compares it with what is recorded, and sets the attributes.
    fn complete(&mut self, item: &RestoreItem, to: &mut Taker, digest: DigestRecord, is_signed: bool) {
        let report = &mut self.report;
        let by_core = self.section.plugin().is_none_or(|plugin| plugin.set_attributes(report));
        // Of attributes that a plugin keeps for itself, the size need not be true.
        let restored = if by_core { wrong_length(item, to) } else { None };
        let RestoreState { digest: check, encryption, usual, directories, .. } = &mut *self.state;
        // Data of another length has another digest, so the length alone is reported.
        match (restored, digest) {
            (Some(restored), _) => {
                report.now(MessageType::Error, &texts::wrong_size(&item.output, item.stat.size, restored));
            }
            (None, DigestRecord::Wrong((kind, text))) => report.now(kind, &text),
            (None, DigestRecord::Waits(recorded)) if !is_signed => {
                findings::check(
                    recorded.kind(),
                    Recorded::Digest(recorded),
                    item,
                    to.file(),
                    check,
                    encryption,
                    report,
                );
            }
            (None, DigestRecord::Waits(_) | DigestRecord::Done | DigestRecord::NotCome) => {}
        }
        if let Some(written) = end_before_zeros(item, to) {
            report.now(MessageType::Warning, &texts::zeros_missing(&item.output, written));
        }
        if let Some(plugin) = self.section.plugin() {
            plugin.close(report);
        }
        match to {
            Taker::Finished(file) => {
                attributes::tell_of_file(report, item, file.set_attributes(&item.stat, usual));
            }
            Taker::File(file) if by_core => {
                attributes::tell_of_file(report, item, file.set_attributes(&item.stat, usual));
            }
            Taker::Plugin { .. } if by_core => {
                attributes::set_by_name(report, directories, item);
            }
            Taker::File(file) => {
                if let Err(errno) = file.finish() {
                    report.now(MessageType::Error, &texts::modes_not_set(texts::OPEN_LINES, &item.output, errno));
                }
            }
            Taker::Plugin { .. } => {}
        }
    }

    /// Applies ACLs and extended attributes that have waited for the attributes; `to` is what has
    /// taken the data.
    fn apply_held(&mut self, current: &mut Current, to: Option<&Taker>) {
        let Current { item, made, metadata, xacls } = current;
        let (metadata, xacls) = (std::mem::take(metadata), std::mem::take(xacls));
        let RestoreState { writer, directories, .. } = &mut *self.state;
        match to {
            _ if metadata.is_empty() => {}
            Some(Taker::Plugin { .. }) | None => {
                metadata.apply_by_name(directories, writer, &mut self.report, item, made);
            }
            Some(to) => {
                if let Some(descriptor) = to.descriptor() {
                    metadata.apply(writer, &mut self.report, item, &Target::Open(descriptor));
                }
            }
        }
        if let Some(plugin) = self.section.plugin() {
            for (kind, _, content) in xacls.records() {
                plugin.write_xacl(*kind, content, &mut self.report);
            }
        }
    }

    /// Compares the data with its signature, or says that it has none that can be checked.
    fn check_signature(
        &mut self,
        item: &RestoreItem,
        file: Option<&OutputFile>,
        signature: Option<(DigestKind, Signature)>,
    ) {
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        match signature {
            Some((kind, signature)) => {
                let recorded = Recorded::Signature(signature);
                findings::check(kind, recorded, item, file, digest, encryption, &mut self.report);
            }
            None => encryption.report_unsigned(wants_signature(item, file), &item.output, &mut self.report),
        }
    }
}

/// The length of the restored data, if it differs from that in the attributes. What a plugin has
/// saved without any data may have a size all the same.
fn wrong_length(item: &RestoreItem, to: &mut Taker) -> Option<i64> {
    if item.file_type != Some(FileType::Regular) || item.stat.size <= 0 {
        return None;
    }
    to.length().filter(|restored| *restored != item.stat.size && (*restored > 0 || !item.is_of_plugin))
}

/// Where the data of a device or FIFO ends that may have had zeros behind it when it was saved: of
/// a device with room for them, or a FIFO, whose end is where its data ends.
fn end_before_zeros(item: &RestoreItem, to: &mut Taker) -> Option<u64> {
    let Taker::File(file) = to else { return None };
    let written = file.address();
    let has_room = |length: i64| u64::try_from(length).is_ok_and(|length| length > written);
    (item.may_lack_zeros() && file.length().is_none_or(has_room)).then_some(written)
}

/// Whether a file that was made anew has less data than its attributes say.
fn is_short(item: &RestoreItem, to: &mut Taker) -> bool {
    !item.is_patch() && wrong_length(item, to).is_some_and(|restored| restored < item.stat.size)
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
