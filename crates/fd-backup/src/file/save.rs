//! Turns one entry of the walk into records (reference 04 §4).

use std::sync::Arc;

use fd_fileset::Flags;
use fd_messages::{MessageType, Stage};
use fd_metadata::{FileMetadata, MetadataReader, NameCache, Place, Wanted};
use fd_records::{Attributes, DigestKind, DigestValue, FileType, LStat, MetadataKind, Stream};
use fd_walk::{Entry, LinkState};
use rustix::io::Errno;

use crate::digests::ahead::FileAhead;
use crate::digests::batched::Places;
use crate::digests::choice::Digests;
use crate::digests::protect::{Encryption, Signing};
use crate::digests::streamed::StreamedDigests;
use crate::exchange::halt::Halt;
use crate::exchange::halt::ProtectionError;
use crate::exchange::pace::Pace;
use crate::exchange::piece::Event;
use crate::file::blocks::{Cut, DataEnd, Scratch, read_blocks};
use crate::file::compressors::Compressors;
use crate::file::data::{InPlace, Transform};
use crate::file::emit::Emitter;
use crate::file::emptiness::Emptiness;
use crate::file::listing::saved_line;
use crate::shared::job::Job;
use crate::shared::meter::Meter;
use crate::source::Source;
use crate::source::kinds::{data_stream, is_digested, is_encrypted};
use crate::texts;

/// What a later name of an inode takes from the first one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Inherited {
    /// FileIndex of the first name.
    pub(crate) link_fi: i32,
    /// Its digest record.
    pub(crate) digest: Option<DigestValue>,
}

/// The data of an entry.
#[derive(Debug)]
pub(crate) enum Content {
    /// There is none, or none is sent.
    Nothing,
    /// An open file, device or fifo.
    Open(Source),
    /// It can't be opened.
    NotOpened(Errno),
}

/// Buffers that are used again for each file.
#[derive(Default)]
pub(crate) struct Buffers {
    /// A block as it was read.
    pub(crate) block: Vec<u8>,
    /// The same block compressed.
    pub(crate) compressed: Vec<u8>,
    /// An attribute record.
    pub(crate) record: Vec<u8>,
    /// ACLs and extended attributes.
    metadata: FileMetadata,
}

/// Saves entries, one after the other. All buffers are used again, so that a file costs no
/// allocation here.
pub(crate) struct Saver<'j> {
    pub(crate) job: &'j Job,
    pub(crate) emitter: Emitter<'j>,
    pub(crate) digests: StreamedDigests<'j>,
    pub(crate) compressors: Compressors,
    /// The file of the present batch, if its digests are computed ahead.
    pub(crate) ahead: Option<Arc<FileAhead>>,
    metadata: MetadataReader,
    names: NameCache,
    emptiness: Emptiness,
    pub(crate) buffers: Buffers,
    /// Set if the job encrypts.
    pub(crate) encryption: Option<Encryption<'j>>,
    pub(crate) pace: Pace,
    pub(crate) meter: Meter,
}

impl<'j> Saver<'j> {
    /// A saver for one worker.
    pub(crate) fn new(job: &'j Job) -> Result<Self, ProtectionError> {
        let protection = job.protection.as_ref();
        let signing = protection.map(Signing::new).transpose()?;
        let encryption = protection.map(Encryption::new).transpose()?.flatten();
        Ok(Self {
            job,
            emitter: Emitter::new(job, signing),
            digests: StreamedDigests::default(),
            compressors: Compressors::default(),
            ahead: None,
            metadata: MetadataReader::new(),
            names: NameCache::new(),
            emptiness: Emptiness::default(),
            buffers: Buffers::default(),
            encryption,
            pace: job.pace(),
            meter: Meter::new(),
        })
    }

    /// Sends the records of one entry. `update` is the catalog's digest of an entry whose data is
    /// known to be unchanged; then only its attributes are sent (reference 04 §6.8). Returns what
    /// later names of its inode refer to.
    pub(crate) fn save(
        &mut self,
        entry: &Entry,
        inherited: Inherited,
        update: Option<&[u8]>,
        content: Content,
        file_index: i32,
    ) -> Result<LinkState, Halt> {
        self.emitter.piece().tally.files += 1;
        self.say_saved(entry);
        self.send_attributes(entry, inherited.link_fi, update.is_some(), file_index)?;
        let signed_kind = self.signs(entry.file_type)?;
        if let Some(digest) = update {
            self.send_metadata(entry, file_index, None)?;
            // The stock daemon signs the data of this record, and there is none.
            let digests = Digests { signed: signed_kind, ..Digests::default() };
            self.begin_digests(digests)?;
            self.send_signature(digests, None, file_index)?;
            let digest = entry.options.digest.and_then(|kind| DigestValue::from_bytes(kind, digest));
            self.send_digest(digest, file_index)?;
            return Ok(LinkState::Saved { file_index, digest });
        }

        if self.emptiness.is_doubtful(entry) {
            self.emitter.note(Event::MayHaveContent { path: entry.path.clone() });
        }
        let digests = Digests::new(self.choose_digest(entry), signed_kind, entry, self.job.plan.processor);
        if self.encrypts(entry.file_type) {
            self.send_session(entry, file_index)?;
        }
        self.begin_digests(digests)?;
        let source = match content {
            Content::Nothing => None,
            Content::Open(mut source) => {
                self.send_data(entry, &mut source, file_index, digests)?;
                Some(source)
            }
            Content::NotOpened(errno) => {
                self.say_not_opened(entry, errno);
                self.emitter.piece().tally.unread += 1;
                // The next name may carry the data.
                return Ok(LinkState::NotSaved);
            }
        };
        self.send_metadata(entry, file_index, source.as_ref())?;
        drop(source);
        self.send_digests(digests, inherited.digest, file_index)
    }

    /// The line of a saved entry, if the log takes it.
    pub(crate) fn say_saved(&mut self, entry: &Entry) {
        if self.job.wants(MessageType::Saved) {
            let text = saved_line(entry, &mut self.names);
            self.emitter.note(Event::Message { kind: MessageType::Saved, text, failed: false });
        }
    }

    /// The error of an entry that can't be opened.
    pub(crate) fn say_not_opened(&mut self, entry: &Entry, errno: Errno) {
        let text = texts::cannot_open(&entry.read_path(), errno);
        self.emitter.note(Event::not_saved(text));
    }

    /// The error of an entry that can't be read, or not to its end.
    pub(crate) fn say_not_read(&mut self, entry: &Entry, errno: Errno) {
        self.emitter.note(Event::ReadError { text: texts::read_error(&entry.read_path(), errno) });
    }

    pub(crate) fn begin_digests(&mut self, digests: Digests) -> Result<(), Halt> {
        let streamed = digests.streamed();
        let ahead = self.ahead.take();
        let follower = ahead.and_then(|file| self.job.digests_ahead.as_ref()?.follow(file, streamed));
        self.emitter.begin_batched(digests.batched);
        Ok(self.digests.begin(streamed, follower)?)
    }

    /// Sends the signature and the digest record, or reserves their places.
    pub(crate) fn send_digests(
        &mut self,
        digests: Digests,
        inherited: Option<DigestValue>,
        file_index: i32,
    ) -> Result<LinkState, Halt> {
        let batched = digests.record.filter(|kind| digests.batched.contains(*kind));
        let digest = match digests.record {
            Some(_) if batched.is_some() => None,
            Some(kind) => self.finish_digest(kind),
            None => inherited,
        };
        let signature = self.send_signature(digests, digest, file_index)?;
        let record = if let Some(kind) = batched {
            Some((kind, self.emitter.reserve_digest(file_index, kind)?))
        } else {
            self.send_digest(digest, file_index)?;
            None
        };
        self.digests.end();
        if !digests.batched.is_empty() {
            self.emitter.end_batched(digests.batched, Places { record, signature })?;
        }
        Ok(LinkState::Saved { file_index, digest })
    }

    fn encrypts(&self, file_type: FileType) -> bool {
        self.encryption.is_some() && is_encrypted(file_type)
    }

    /// The kind of digest to be signed. Its digester is ready then.
    pub(crate) fn signs(&mut self, file_type: FileType) -> Result<Option<DigestKind>, Halt> {
        let kind = self.job.protection.as_ref().and_then(|protection| protection.signs(file_type));
        if let Some(kind) = kind {
            self.digests.digesters.ready(kind).map_err(ProtectionError::from)?;
        }
        Ok(kind)
    }

    /// Sends the record with the keys of the file's data. It comes first, also where there is no
    /// data.
    pub(crate) fn send_session(&mut self, entry: &Entry, file_index: i32) -> Result<(), Halt> {
        let Some(encryption) = &mut self.encryption else { return Ok(()) };
        let record = encryption.begin_file()?;
        self.emitter.header(file_index, Stream::ENCRYPTED_SESSION_DATA, entry.stat.size)?;
        self.emitter.payload(&[record])?;
        self.emitter.close_stream();
        self.emitter.piece().tally.job_bytes += record.len() as u64;
        Ok(())
    }

    /// Sends the signature of the data that was read, or reserves its place and returns that.
    /// `digest` is the value of the digest record.
    fn send_signature(
        &mut self,
        digests: Digests,
        digest: Option<DigestValue>,
        file_index: i32,
    ) -> Result<Option<(DigestKind, usize)>, Halt> {
        let Some(kind) = digests.signed else { return Ok(None) };
        if digests.batched.contains(kind) {
            return Ok(Some((kind, self.emitter.reserve_signature(file_index)?)));
        }
        let value = if digests.record == Some(kind) {
            digest
        } else {
            Some(self.digests.finish(kind).map_err(ProtectionError::from)?)
        };
        self.emitter.signature(file_index, &value.ok_or(Halt::Digest(kind))?)?;
        Ok(None)
    }

    fn send_digest(&mut self, digest: Option<DigestValue>, file_index: i32) -> Result<(), Halt> {
        if let Some(digest) = &digest {
            self.emitter.record(file_index, digest.kind().stream(), digest.as_bytes())?;
        }
        Ok(())
    }

    fn send_attributes(&mut self, entry: &Entry, link_fi: i32, is_update: bool, file_index: i32) -> Result<(), Halt> {
        let names = entry.record_names();
        self.buffers.record.clear();
        Attributes {
            file_index,
            file_type: entry.file_type,
            name: &names.name,
            lstat: LStat {
                stat: entry.stat,
                link_fi,
                flags: 0,
                data_stream: data_stream(&entry.options, self.encrypts(entry.file_type)),
            },
            link: &names.link,
            attr_ex: if is_update { Attributes::UPDATE_MARK } else { &[] },
            // An update adds to the catalog's last record of the file. A whole record begins anew:
            // with the number that an update has left in the catalog, its data would be restored
            // over the file of the job before.
            delta_seq: i32::from(is_update),
        }
        .encode(&mut self.buffers.record);
        let stream = if is_update { Stream::ATTRIBUTES_UPDATE } else { Stream::ATTRIBUTES };
        self.emitter.record(file_index, stream, &self.buffers.record)?;
        Ok(())
    }

    /// The kind of digest record. If OpenSSL refuses it, there is a warning and no record.
    pub(crate) fn choose_digest(&mut self, entry: &Entry) -> Option<DigestKind> {
        if !is_digested(entry.file_type) {
            return None;
        }
        let kind = entry.options.digest?;
        if self.digests.digesters.ready(kind).is_err() {
            self.warn(texts::digest_failed(kind));
            return None;
        }
        Some(kind)
    }

    fn finish_digest(&mut self, kind: DigestKind) -> Option<DigestValue> {
        let result = self.digests.finish(kind);
        if result.is_err() {
            self.warn(texts::digest_failed(kind));
        }
        result.ok()
    }

    /// Reads and sends the data.
    fn send_data(&mut self, entry: &Entry, source: &mut Source, file_index: i32, digests: Digests) -> Result<(), Halt> {
        let (options, file_type) = (&entry.options, entry.file_type);
        let is_stopped = || self.job.is_stopped();
        let encrypted = self.encrypts(file_type);
        let compressor = options.compression.map(|kind| self.compressors.ready(kind)).transpose()?;
        let sparse = options.is_sparse(encrypted);
        let cut = Cut::new(file_type, &entry.stat, sparse, self.job.record_len);
        self.emitter.header(file_index, data_stream(options, encrypted), entry.stat.size)?;
        if file_type == FileType::Fifo {
            // Who writes into it may take long. A job that is canceled then is in a record.
            self.emitter.publish()?;
        }
        let batched = !digests.batched.is_empty();
        let digests = &mut self.digests;
        let emitter = &mut self.emitter;
        let (job, pace, meter) = (self.job, &mut self.pace, &mut self.meter);
        let mut before_each = || {
            pace.step(&is_stopped);
            meter.step(job);
        };
        let end = if compressor.is_none() && !encrypted && !sparse {
            let mut intake = InPlace { emitter, digests, batched, before_each, start: 0 };
            read_blocks(source, &cut, &is_stopped, &mut intake)?
        } else {
            let mut transform = Transform {
                digests,
                compressor,
                compressed: &mut self.buffers.compressed,
                addresses: sparse,
                batched,
                encryptor: self.encryption.as_mut().filter(|_| encrypted).map(Encryption::encryptor),
            };
            let each = |position, block: &[u8]| transform.send(emitter, position, block);
            let mut intake = Scratch { block: &mut self.buffers.block, before_each: &mut before_each, each };
            let end = read_blocks(source, &cut, &is_stopped, &mut intake)?;
            if matches!(end, DataEnd::Complete) {
                transform.finish(emitter)?;
            }
            end
        };
        self.job.progress.stages().add(Stage::Read, source.spent());
        match end {
            DataEnd::Complete => self.emitter.piece().tally.read += 1,
            DataEnd::ReadError(errno) => {
                let tally = &mut self.emitter.piece().tally;
                *(if source.has_given() { &mut tally.read } else { &mut tally.unread }) += 1;
                self.say_not_read(entry, errno);
            }
        }
        self.emitter.close_stream();
        // Without a change time, it could not be read.
        if entry.is_checked_for_changes() && entry.stat.ctime != 0 {
            self.check_changes(entry);
        }
        Ok(())
    }

    /// Warns if a file has changed since its attributes were read; only the first difference is
    /// reported (reference 04 §14.1).
    pub(crate) fn check_changes(&mut self, entry: &Entry) {
        let (path, before) = (&entry.path, &entry.stat);
        let (kind, text) = match rustix::fs::lstat(&*entry.read_path()) {
            Err(errno) => (MessageType::Warning, texts::cannot_stat(path, errno)),
            Ok(now) if now.st_mtime != before.mtime => (MessageType::Error, texts::mtime_changed(path)),
            Ok(now) if now.st_ctime != before.ctime => (MessageType::Error, texts::ctime_changed(path)),
            Ok(now) if now.st_size != before.size => {
                (MessageType::Error, texts::size_changed(path, before.size, now.st_size))
            }
            Ok(_) => return,
        };
        self.emitter.note(Event::Message { kind, text, failed: false });
    }

    /// Sends ACLs and extended attributes (reference 04 §10, §11).
    pub(crate) fn send_metadata(
        &mut self,
        entry: &Entry,
        file_index: i32,
        source: Option<&Source>,
    ) -> Result<(), Halt> {
        let wanted = Wanted { acl: entry.options.has(Flags::ACL), xattr: entry.options.has(Flags::XATTR) };
        if wanted == Wanted::default() {
            return Ok(());
        }
        let handle = || entry.handle().map_err(Into::into);
        let path = entry.read_path();
        let place = match source {
            Some(source) => Place::File(source.descriptor()),
            None if entry.barred => Place::Barred(&path, &handle),
            None => Place::Handle(&path, &handle),
        };
        let found = &mut self.buffers.metadata;
        let warnings = self.metadata.read(place, &entry.path, entry.file_type, entry.stat.dev, wanted, found);
        for (kind, failures) in [(MetadataKind::Acl, warnings.acl), (MetadataKind::Xattr, warnings.xattr)] {
            if failures.count > 0 {
                self.emitter.note(Event::MetadataWarnings { kind, failures });
            }
        }
        for (stream, payload) in self.buffers.metadata.records() {
            self.emitter.record(file_index, stream, payload)?;
            self.emitter.piece().tally.job_bytes += payload.len() as u64;
        }
        Ok(())
    }

    fn warn(&mut self, text: Vec<u8>) {
        self.emitter.note(Event::Message { kind: MessageType::Warning, text, failed: false });
    }
}
