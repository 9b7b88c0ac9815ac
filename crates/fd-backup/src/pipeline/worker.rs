//! A worker thread: takes a batch, turns it into records, takes the next one.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_crypto::{DigestKind, DigestValue};
use fd_messages::{MessageType, Stage};
use fd_metadata::{FileMetadata, MetadataReader, NameCache};
use fd_records::{FileType, Stream};
use fd_walk::{Entry, HardLink, Identity, LinkDigest, LinkState};
use rustix::io::Errno;

use crate::digests::ahead::FileAhead;
use crate::digests::long::LongDigest;
use crate::digests::protect::{Encryption, Signing, Unprotected};
use crate::file::emit::Emitter;
use crate::file::kinds::is_read;
use crate::file::plugins::options_plugin;
use crate::file::prepare::{Fate, Prepared};
use crate::file::save::{Content, Inherited, Saved};
use crate::file::source::{Source, open_regular, open_special};
use crate::file::tools::Tools;
use crate::pipeline::batch::{Batch, Item};
use crate::pipeline::exchange::{Slot, Stopped};
use crate::pipeline::halt::Halt;
use crate::pipeline::job::Job;
use crate::pipeline::pace::Pace;
use crate::pipeline::piece::Event;
use crate::texts::{self, PluginPlace};

/// What a worker owns. Everything is used for file after file, so that a file costs no allocation here.
pub(crate) struct Worker<'j> {
    pub(crate) job: &'j Job<'j>,
    pub(crate) emitter: Emitter<'j, Batch>,
    pub(crate) tools: Tools,
    /// Digests of long files.
    pub(crate) long_digest: Option<LongDigest<'j>>,
    /// The present batch's file, if its digests are made ahead.
    pub(crate) ahead: Option<Arc<FileAhead>>,
    pub(crate) metadata: MetadataReader,
    pub(crate) found: FileMetadata,
    pub(crate) names: NameCache,
    /// A block as read.
    pub(crate) block: Vec<u8>,
    /// The same compressed.
    pub(crate) compressed: Vec<u8>,
    /// An attribute record.
    pub(crate) record: Vec<u8>,
    /// Encrypts, where the configuration asks for it.
    pub(crate) encryption: Option<Encryption<'j>>,
    pub(crate) pace: Pace,
    /// What becomes of the present batch's items.
    prepared: Vec<Prepared>,
}

impl<'j> Worker<'j> {
    /// Workers are counted from 0.
    pub(crate) fn new(job: &'j Job<'j>, seat: usize) -> Result<Self, Unprotected> {
        let protection = job.protection.as_ref();
        let signing = protection.map(Signing::new).transpose()?;
        let encryption = protection.map(Encryption::new).transpose()?.flatten();
        let long = job.long_digests.as_ref().map(|all| (all, seat));
        Ok(Self {
            job,
            emitter: Emitter::new(&job.exchange, job.piece_len, job.comm_compression, long, signing, job.processor),
            tools: Tools::default(),
            long_digest: long.map(|(all, seat)| LongDigest::new(all, seat)),
            ahead: None,
            metadata: MetadataReader::new(),
            found: FileMetadata::default(),
            names: NameCache::new(),
            block: Vec::new(),
            compressed: Vec::new(),
            record: Vec::new(),
            encryption,
            pace: Pace::new(&job.host_share),
            prepared: Vec::new(),
        })
    }

    /// Works until there is nothing more to do.
    pub(crate) fn run(&mut self) {
        let begun = Instant::now();
        self.run_to_end();
        self.job.times.add_since(Stage::Work, begun);
    }

    fn run_to_end(&mut self) {
        while let Some((slot, batch)) = self.job.exchange.take_batch() {
            if let Err(Stopped) = self.work(slot, batch) {
                // Somebody cancelled the job, or a fatal event is on its way to the sender, who knows what to do then.
                if self.job.cancel.is_cancelled() {
                    self.job.exchange.stop();
                }
                return;
            }
        }
    }

    fn work(&mut self, slot: Slot, mut batch: Batch) -> Result<(), Stopped> {
        let mut prepared = std::mem::take(&mut self.prepared);
        self.prepare(&mut batch.items, &mut prepared)?;
        let mut file_index = self.job.exchange.first_file(slot)?;
        self.prepare_links(&mut batch.items, &mut prepared)?;
        let records = prepared.iter().filter(|prepared| prepared.fate.has_record()).count();
        self.job.exchange.count_files(slot, u32::try_from(records).unwrap_or(u32::MAX));
        self.ahead = batch.ahead;
        self.emitter.open(slot)?;
        for (item, prepared) in batch.items.into_iter().zip(prepared.drain(..)) {
            if self.job.is_stopped() {
                return Err(Stopped);
            }
            match item {
                Item::Entry(entry) => {
                    if self.work_entry(entry, prepared, file_index)? {
                        file_index = file_index.saturating_add(1);
                    }
                }
                Item::Message { kind, text, failed } => self.emitter.note(Event::Message { kind, text, failed }),
                Item::Plugin(command) => {
                    // What stands before it in the FileSet is saved.
                    self.emitter.publish()?;
                    let text = self.job.plugins.lacks_command(PluginPlace::Command, &command);
                    self.emitter.note(Event::Fatal { text });
                }
            }
            self.emitter.make_room()?;
            self.pace.step(&|| self.job.is_stopped());
        }
        self.emitter.close();
        self.prepared = prepared;
        Ok(())
    }

    /// Saves an entry as it was prepared. Says whether it took its FileIndex.
    fn work_entry(&mut self, mut entry: Entry, prepared: Prepared, file_index: u32) -> Result<bool, Stopped> {
        for event in prepared.events {
            self.emitter.note(event);
        }
        self.emitter.piece().tally.read_bytes += prepared.read_bytes;
        let mut update = None;
        let mut opened = None;
        match prepared.fate {
            Fate::Nothing => return Ok(false),
            Fate::Unchanged => {
                if self.job.wants_skipped {
                    let text = texts::unchanged(&entry.path);
                    self.emitter.note(Event::Message { kind: MessageType::Skipped, text, failed: false });
                }
                return Ok(false);
            }
            Fate::Gone(errno) => {
                let text = fd_walk::texts::gone(&entry.path, &fd_os::error_text(errno.raw_os_error()));
                self.emitter.note(Event::Message { kind: MessageType::NotSaved, text, failed: true });
                return Ok(false);
            }
            Fate::Update(digest) => update = Some(digest),
            Fate::InItsTurn => {}
            Fate::Opened(held, spent) => opened = held.take().map(|file| Ok((file, spent))),
            Fate::NotOpened(errno) => opened = Some(Err(errno)),
        }
        self.emitter.set_current(&entry.path);
        let inherited = self.inherit(&mut entry)?;
        let plugin = options_plugin(&entry);
        let content = if update.is_some() { Content::Nothing } else { self.content(&mut entry, opened) };
        let saved = i32::try_from(file_index)
            .map_err(|_| Halt::FileIndex)
            .and_then(|index| Ok((index, self.save(&entry, inherited, update.as_deref(), content, index)?)));
        match saved {
            Ok((file_index, Saved::Complete { digest })) => {
                self.resolve(&entry, LinkState::Saved { file_index, digest: digest.as_ref().map(link_digest) });
                self.end_for_lack_of(plugin).map(|()| true)
            }
            Ok((_, Saved::NotOpened)) => {
                self.resolve(&entry, LinkState::NotSaved);
                self.end_for_lack_of(plugin).map(|()| true)
            }
            Err(halt) => Err(self.give_up(&halt, &entry.path)),
        }
    }

    /// The data of an entry, which gets the attributes of what is open: those of the walk may be those of another file.
    fn content(&mut self, entry: &mut Entry, opened: Option<Result<(OwnedFd, Duration), Errno>>) -> Content {
        let opened = match opened {
            None if !is_read(entry.file_type, &entry.stat) => return Content::Nothing,
            None => self.open_in_its_turn(entry),
            Some(opened) => opened,
        };
        let (file, spent) = match opened {
            Ok(opened) => opened,
            Err(errno) => return Content::NotOpened(errno),
        };
        match entry.refresh(file.as_fd()) {
            Ok(Identity::Unchanged) => {}
            // Its digests were made of something else.
            Ok(Identity::Changed) => self.ahead = None,
            Ok(Identity::Replaced) => {
                self.ahead = None;
                self.stand_alone(entry);
            }
            Err(errno) => return Content::NotOpened(errno),
        }
        if entry.file_type == FileType::Directory {
            let text = texts::became_directory(&entry.path);
            self.emitter.note(Event::Message { kind: MessageType::NotSaved, text, failed: true });
        }
        if !is_read(entry.file_type, &entry.stat) {
            return Content::Nothing;
        }
        Content::Open(Source::new(file, entry.file_type, &entry.stat, spent))
    }

    fn open_in_its_turn(&self, entry: &Entry) -> Result<(OwnedFd, Duration), Errno> {
        let begun = Instant::now();
        let job = self.job;
        let is_stopped = || job.is_stopped();
        let patience = job.patience(&is_stopped);
        let file = match entry.file_type {
            FileType::Regular => open_regular(entry, patience),
            _ => open_special(entry, patience),
        }?;
        Ok((file, begun.elapsed()))
    }

    /// Ends the job behind an entry that a plugin was to save: there is none. The entry is saved all the same, as the
    /// stock daemon does.
    fn end_for_lack_of(&mut self, plugin: Option<Arc<[u8]>>) -> Result<(), Stopped> {
        let Some(command) = plugin else { return Ok(()) };
        self.emitter.publish()?;
        let (first, last) = self.job.plugins.lacks_options(&command);
        if let Some(text) = first {
            self.emitter.note(Event::Message { kind: MessageType::Fatal, text, failed: false });
        }
        self.emitter.note(Event::Fatal { text: last });
        self.emitter.close();
        Err(Stopped)
    }

    /// What the entry has from the first name of its inode. If that was not saved, the entry stands for itself.
    fn inherit(&self, entry: &mut Entry) -> Result<Inherited, Stopped> {
        let Some(HardLink::Later { slot, own_type }) = &entry.hard_link else { return Ok(Inherited::default()) };
        let state = self.job.exchange.wait_for(|| match slot.get() {
            LinkState::Pending => None,
            state => Some(state),
        })?;
        if let LinkState::Saved { file_index, digest } = state {
            return Ok(Inherited { link_fi: file_index, digest: digest.and_then(|digest| digest_value(&digest)) });
        }
        entry.file_type = *own_type;
        entry.link.clear();
        Ok(Inherited::default())
    }

    /// Tells the later names of an inode what became of the first one.
    pub(crate) fn resolve(&self, entry: &Entry, state: LinkState) {
        if let Some(HardLink::First(slot)) = &entry.hard_link {
            slot.set(state);
            self.job.exchange.announce();
        }
    }

    /// Leaves the reason in the stream, if there is one to be told.
    fn give_up(&mut self, halt: &Halt, path: &[u8]) -> Stopped {
        if halt.note(path, self.emitter.piece()) {
            self.emitter.close();
        }
        Stopped
    }
}

fn link_digest(digest: &DigestValue) -> LinkDigest {
    LinkDigest { stream: Stream(digest.kind().stream()), bytes: digest.as_bytes().into() }
}

fn digest_value(digest: &LinkDigest) -> Option<DigestValue> {
    DigestValue::from_bytes(DigestKind::from_stream(digest.stream.0)?, &digest.bytes)
}
