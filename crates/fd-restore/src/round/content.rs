//! The data of the current file, and what the volume says about it: keys, digest, signature
//! (reference 05 §3.4, §11).

use fd_messages::MessageType;
use fd_records::{DigestKind, DigestValue, Stream, StreamClass};

use super::findings;
use super::held::{Current, DigestRecord, Round};
use super::made::Made;
use super::metadata::HeldMetadata;
use super::state::RestoreState;
use crate::digests::{Finding, Recorded};
use crate::file::{DataPath, Destination, Encryption, Sink};
use crate::output_file::OutputFile;
use crate::overlap::FileData;
use crate::plugins::Section;
use crate::texts;

impl<'a> Round<'a> {
    /// Whether data of this stream is taken behind the record before.
    pub(super) fn is_in_place(&self, stream: Stream) -> bool {
        match self.place.previous.class() {
            StreamClass::Attributes | StreamClass::SessionData | StreamClass::PluginMetadata => true,
            // The stock daemon drops the first record, which only a plugin can have saved.
            StreamClass::AttributesUpdate => self.section.is_open() || self.is_mere_update(),
            _ => self.place.previous == stream.kind() || self.is_mere_update(),
        }
    }

    /// A data record (reference 05 §3.4).
    pub(super) fn data(&mut self, stream: Stream, record: &[u8]) {
        self.report_data_of_update();
        if self.is_mere_update() {
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

    /// The data of a file of a run, which is in the file already if that is finished.
    pub(super) fn data_of_run(&mut self, data: &FileData) {
        let Some(stream) = data.stream() else { return };
        self.place.previous = stream.kind();
        let Some((_, _, mut to)) = self.destination() else { return };
        let mut pieces = data.pieces();
        let is_written = to.sink.file().is_some_and(OutputFile::is_finished);
        let is_lost = pieces.any(|(length, piece)| {
            to.progress.add_read_bytes(length as u64);
            to.take(piece, is_written).is_err()
        });
        if is_lost {
            self.give_up();
        }
    }

    /// Whether the daemon itself restores an update of attributes: its file keeps the data that it
    /// has.
    fn is_mere_update(&self) -> bool {
        !self.section.is_open() && self.current.as_ref().is_some_and(|current| current.item.is_update)
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
        let mut is_lost = false;
        if let Some((data, encryption, mut to)) = self.destination() {
            is_lost = data.end(encryption, &mut to).is_err();
        }
        if is_lost {
            self.give_up();
        }
    }

    /// Where the data of the current file goes, if it is restored.
    fn destination(&mut self) -> Option<(&mut DataPath, &mut Encryption, Destination<'_, 'a, 'a>)> {
        let Current { item, made, .. } = self.current.as_mut()?;
        let sink = match (made, &mut self.section) {
            (Made::Open(file), _) => Sink::File(file),
            (_, Section::Plugin(plugin)) if plugin.is_open() => Sink::Plugin(plugin),
            _ => return None,
        };
        let RestoreState { data, digest, encryption, .. } = &mut *self.state;
        Some((data, encryption, Destination { sink, item, digest, progress: self.progress, report: &mut self.report }))
    }

    /// A signature: of the data that was just restored. It is checked when the file is complete.
    pub(super) fn signature(&mut self, record: &[u8]) {
        if let (true, Some(current)) = (self.is_open(), &self.current) {
            self.state.encryption.signature(record, &current.item.output, &mut self.report);
        }
    }

    /// A digest: of the data that was just restored. It is compared when the file is complete.
    pub(super) fn digest(&mut self, kind: DigestKind, record: &[u8]) {
        self.compare_now();
        self.end_data();
        let is_open = self.is_open();
        let Some(current) = self.current.as_mut().filter(|_| is_open) else { return };
        let digest = &mut self.state.digest;
        if matches!(current.digest, DigestRecord::Wrong(_)) {
            return;
        }
        current.digest = DigestRecord::Done;
        if self.state.encryption.has_known_signature() {
            digest.expected().signature();
            return;
        }
        if !self.plan.check_digests {
            return;
        }
        digest.expected().record(kind);
        if let Some(recorded) = DigestValue::from_bytes(kind, record) {
            current.digest = DigestRecord::Waits(recorded);
            return;
        }
        // A value of another length is the digest of no data.
        let name = &current.item.output;
        let text = match digest.make_now(kind, current.made.file()) {
            Finding::None | Finding::Cancelled => return,
            Finding::Has(restored) | Finding::Changed(restored) => texts::digest_differs(kind, name, record, &restored),
            Finding::Unreadable(errno) => texts::not_read_back(name, errno),
        };
        current.digest = DigestRecord::Wrong((MessageType::Error, text));
    }

    /// Compares the digest of the current file now.
    pub(super) fn compare_now(&mut self) {
        let is_open = self.is_open();
        let Some(current) = self.current.as_mut().filter(|_| is_open) else { return };
        let DigestRecord::Waits(recorded) = current.digest else { return };
        let RestoreState { digest, encryption, .. } = &mut *self.state;
        let found = digest.make_now(recorded.kind(), current.made.file());
        let recorded = Recorded::Digest(recorded);
        let message = findings::messages_about(&current.item.output, &recorded, found, encryption).pop();
        current.digest = message.map_or(DigestRecord::Done, DigestRecord::Wrong);
    }

    /// Leaves the current file as it is: private, without attributes.
    pub(super) fn give_up(&mut self) {
        self.compare_now();
        self.report_wrong_digest();
        if let Some(current) = &mut self.current
            && let Some(file) = current.made.take_file()
            && current.item.is_patch()
        {
            file.mark_unfinished();
        }
        if let Some(plugin) = self.section.plugin() {
            if self.report.is_fatal() {
                plugin.cancel(&mut self.report);
            }
            plugin.abandon(&mut self.report);
        }
        if let Some(current) = &mut self.current {
            current.digest = DigestRecord::NotCome;
            current.metadata = HeldMetadata::default();
            current.xacls = HeldMetadata::default();
        }
        self.state.digest.abandon();
        self.state.encryption.forget();
    }

    /// Reports that the digest of the current file is not that of its data.
    pub(super) fn report_wrong_digest(&mut self) {
        let digest = self.current.as_mut().map(|current| std::mem::take(&mut current.digest));
        if let Some(DigestRecord::Wrong((kind, text))) = digest {
            self.report.now(kind, &text);
        }
    }
}
