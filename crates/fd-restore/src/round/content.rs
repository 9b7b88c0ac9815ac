//! The data of the current file, and what the volume says about it: keys, digest, signature
//! (reference 05 §3.4, §11).

use fd_messages::MessageType;
use fd_records::{DigestKind, DigestValue, Stream, StreamClass};

use super::findings;
use super::held::{Current, Round};
use super::made::{DigestRecord, Made};
use super::metadata::HeldMetadata;
use super::state::RestoreState;
use crate::created::Taker;
use crate::digests::{Finding, Recorded};
use crate::file::{DataPath, Destination, Encryption, Examined};
use crate::overlap::FileData;
use crate::texts;

impl<'a> Round<'a> {
    /// Whether data of this stream is taken behind the record before.
    pub(super) fn is_in_place(&self, stream: Stream) -> bool {
        match self.place.previous.class() {
            StreamClass::Attributes | StreamClass::SessionData | StreamClass::PluginMetadata => true,
            // The stock daemon drops the first record, which only a plugin can have saved.
            StreamClass::AttributesUpdate => self.current.is_some(),
            _ => self.place.previous == stream.kind() || self.is_mere_update(),
        }
    }

    /// A data record (reference 05 §3.4).
    pub(super) fn data(&mut self, stream: Stream, record: &[u8]) {
        self.report_data_of_update();
        if self.is_mere_update() {
            return;
        }
        let mut examined = None;
        if let Some(Current { item, made: Made::Waiting, .. }) = &self.current {
            let RestoreState { data, encryption, .. } = &mut *self.state;
            let Ok(first) = data.examine(stream, record, encryption, &item.output, &mut self.report) else {
                self.give_up();
                return;
            };
            // The cipher keeps its last block, which may be all that there is.
            if matches!(first, Examined::Decrypted) && !encryption.has_block() {
                self.progress.add_read_bytes(record.len() as u64);
                return;
            }
            examined = Some(first);
        }
        self.replace_now();
        let mut is_lost = false;
        if let Some((data, encryption, mut to)) = self.destination() {
            to.progress.add_read_bytes(record.len() as u64);
            is_lost = data.record(stream, record, examined, encryption, &mut to).is_err();
        }
        if is_lost {
            self.give_up();
        }
    }

    /// The data of a file of a run, which is in the file already if that is finished.
    pub(super) fn data_of_run(&mut self, data: &FileData) {
        let Some(stream) = data.stream() else { return };
        self.place.previous = stream.kind();
        self.replace_now();
        let Some((_, _, mut to)) = self.destination() else { return };
        let mut pieces = data.pieces();
        let is_lost = pieces.any(|(length, piece)| {
            to.progress.add_read_bytes(length as u64);
            to.take(piece).is_err()
        });
        if is_lost {
            self.give_up();
        }
    }

    /// Whether the daemon itself restores an update of attributes: its file keeps the data that it
    /// has.
    fn is_mere_update(&self) -> bool {
        !self.is_open_by_plugin() && self.current.as_ref().is_some_and(|current| current.item.is_update)
    }

    /// Data behind an update of attributes is what a plugin has saved, but not how it is to be
    /// combined with the file's own. A plugin that leaves the file to the daemon has it dropped, as
    /// by the stock daemon.
    fn report_data_of_update(&mut self) {
        let is_first = !matches!(self.place.previous.class(), StreamClass::Data(_)) && self.is_mere_update();
        let Some(Current { item, made, .. }) = self.current.as_ref().filter(|_| is_first) else { return };
        if !item.is_of_plugin {
            return;
        }
        let is_there = made.is_made();
        match self.section.plugin() {
            None => self.report.now(MessageType::Error, &texts::data_needs_plugin(&item.output)),
            Some(plugin) if plugin.leaves_it_to_core() && is_there => {
                self.report.now(MessageType::Warning, &texts::data_of_update_dropped(&item.output));
            }
            Some(_) => {}
        }
    }

    /// The end of the data, which only the next record shows.
    pub(super) fn end_data(&mut self) {
        self.end_waiting();
        let mut is_lost = false;
        if let Some((data, encryption, mut to)) = self.destination() {
            is_lost = data.end(encryption, &mut to).is_err();
        }
        if is_lost {
            self.give_up();
        }
    }

    /// What stays until data comes is replaced if the cipher's last block is that data.
    fn end_waiting(&mut self) {
        let Some(Current { item, made: Made::Waiting, .. }) = &self.current else { return };
        let encryption = &mut self.state.encryption;
        let Some(finished) = encryption.finish(&item.output, &mut self.report) else { return };
        if encryption.has_block() {
            self.replace_now();
        } else if finished.and_then(|()| encryption.check_rest(&item.output, &mut self.report)).is_err() {
            self.give_up();
        }
    }

    /// Where the data of the current file goes, if it is restored.
    fn destination(&mut self) -> Option<(&mut DataPath, &mut Encryption, Destination<'_, 'a, 'a>)> {
        let (item, open) = self.current.as_mut().and_then(Current::open)?;
        let RestoreState { data, digest, encryption, .. } = &mut *self.state;
        let (taker, plugin) = (&mut open.to, self.section.plugin());
        let (progress, report) = (self.progress, &mut self.report);
        Some((data, encryption, Destination { taker, plugin, item, digest, progress, report }))
    }

    /// A signature: of the data that was just restored. It is checked when the file is complete.
    pub(super) fn signature(&mut self, record: &[u8]) {
        self.end_data();
        if let (true, Some(current)) = (self.is_open(), &self.current) {
            self.state.encryption.signature(record, &current.item.output, &mut self.report);
        }
    }

    /// A digest: of the data that was just restored. It is compared when the file is complete.
    pub(super) fn digest(&mut self, kind: DigestKind, record: &[u8]) {
        self.compare_now();
        self.end_data();
        let Some((item, open)) = self.current.as_mut().and_then(Current::open) else { return };
        let digest = &mut self.state.digest;
        if matches!(open.digest, DigestRecord::Wrong(_)) {
            return;
        }
        open.digest = DigestRecord::Done;
        if self.state.encryption.has_known_signature() {
            digest.expected().signature();
            return;
        }
        if !self.plan.check_digests {
            return;
        }
        digest.expected().record(kind);
        if let Some(recorded) = DigestValue::from_bytes(kind, record) {
            open.digest = DigestRecord::Waits(recorded);
            return;
        }
        // A value of another length is the digest of no data.
        let name = &item.output;
        let text = match digest.make_now(kind, open.to.file()) {
            Finding::None | Finding::Canceled => return,
            Finding::Has(restored) | Finding::Changed(restored) => texts::digest_differs(kind, name, record, &restored),
            Finding::Unreadable(errno) => texts::not_read_back(name, errno),
        };
        open.digest = DigestRecord::Wrong((MessageType::Error, text));
    }

    /// Compares the digest of the current file now.
    pub(super) fn compare_now(&mut self) {
        let Some((item, open)) = self.current.as_mut().and_then(Current::open) else { return };
        let DigestRecord::Waits(recorded) = open.digest else { return };
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        let found = digest.make_now(recorded.kind(), open.to.file());
        let recorded = Recorded::Digest(recorded);
        let message = findings::messages_about(&item.output, &recorded, found, encryption).pop();
        open.digest = message.map_or(DigestRecord::Done, DigestRecord::Wrong);
    }

    /// Leaves the current file as it is: private, without attributes.
    pub(super) fn give_up(&mut self) {
        self.compare_now();
        self.report_wrong_digest();
        self.keep_waiting();
        let mut is_of_plugin = false;
        if let Some(current) = &mut self.current {
            (current.metadata, current.xacls) = <(HeldMetadata, HeldMetadata)>::default();
            match current.made.end_data().map(|open| open.to) {
                Some(Taker::File(file)) if current.item.is_patch() => file.mark_unfinished(),
                to => is_of_plugin = matches!(to, Some(Taker::Plugin { .. })),
            }
        }
        if let Some(plugin) = self.section.plugin() {
            if self.report.is_fatal() {
                plugin.cancel(&mut self.report);
            }
            plugin.abandon(is_of_plugin, &mut self.report);
        }
        self.state.digest.abandon();
        self.state.encryption.forget();
    }

    /// Reports that the digest of the current file is not that of its data.
    pub(super) fn report_wrong_digest(&mut self) {
        let open = self.current.as_mut().and_then(Current::open);
        if let Some(DigestRecord::Wrong((kind, text))) = open.map(|(_, open)| std::mem::take(&mut open.digest)) {
            self.report.now(kind, &text);
        }
    }
}
