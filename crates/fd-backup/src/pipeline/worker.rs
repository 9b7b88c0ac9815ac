//! A worker thread: takes a batch, turns it into records, takes the next one.

use std::os::fd::AsFd;
use std::time::Instant;

use fd_messages::{MessageType, Stage};
use fd_records::FileType;
use fd_walk::{Entry, HardLink, Identity, LinkState};
use rustix::io::Errno;

use crate::exchange::halt::Halt;
use crate::exchange::halt::ProtectionError;
use crate::exchange::piece::Event;
use crate::exchange::{Slot, Stopped};
use crate::file::fate::{Fate, NoData, Prepared};
use crate::file::prepare::{Preparer, prepare_link};
use crate::file::save::{Content, Inherited, Saver};
use crate::plugins::command::save_command;
use crate::plugins::option::{Offered, offer, options_plugin};
use crate::shared::batch::{Batch, Item};
use crate::shared::job::Job;
use crate::source::kinds::is_read;
use crate::source::{Opened, Source, open_regular, open_special};
use crate::texts;

/// Takes batches and saves their items.
pub(crate) struct Worker<'j> {
    job: &'j Job,
    saver: Saver<'j>,
}

impl<'j> Worker<'j> {
    /// A worker that has done nothing yet.
    pub(crate) fn new(job: &'j Job) -> Result<Self, ProtectionError> {
        Ok(Self { job, saver: Saver::new(job)? })
    }

    /// Works until there are no more batches.
    pub(crate) fn run(&mut self) {
        let begun = Instant::now();
        self.run_to_end();
        self.job.progress.stages().add(Stage::Work, begun.elapsed());
    }

    fn run_to_end(&mut self) {
        let mut prepared = Vec::new();
        while let Some((slot, batch)) = self.job.exchange.take_batch(self.job.workers.depth.allowed()) {
            if let Err(Stopped) = self.work(slot, batch, &mut prepared) {
                // Otherwise a fatal event is on its way to the sender, which ends the job.
                if self.job.cancel.is_canceled() {
                    self.job.exchange.stop();
                }
                return;
            }
        }
    }

    /// `fates` is a buffer.
    fn work(&mut self, slot: Slot, mut batch: Batch, fates: &mut Vec<Prepared>) -> Result<(), Stopped> {
        let job = self.job;
        if batch.in_turn {
            let worked = self.work_in_turn(slot, batch);
            self.saver.meter.skip();
            return worked;
        }
        let mut preparer = self.preparer();
        preparer.prepare(&mut batch.items, fates)?;
        let mut file_index = job.exchange.first_file(slot)?;
        preparer.prepare_links(&mut batch.items, fates)?;
        let records = fates.iter().filter(|prepared| prepared.fate.has_record()).count();
        self.job.exchange.count_files(slot, u32::try_from(records).unwrap_or(u32::MAX));
        self.saver.ahead = batch.ahead;
        self.saver.emitter.open(slot)?;
        for (item, prepared) in batch.items.into_iter().zip(fates.drain(..)) {
            self.job.go_on()?;
            match item {
                Item::Entry(entry) => {
                    if self.work_entry(entry, prepared, file_index)? {
                        file_index = file_index.saturating_add(1);
                    }
                }
                Item::Event(event) => self.saver.emitter.note(event),
                // It has a batch that is worked on in turn.
                Item::Plugin(_) => {}
            }
            self.end_item()?;
        }
        self.saver.emitter.close();
        Ok(())
    }

    /// Works on the items of a batch one after the other, when all earlier batches are sent: a
    /// plugin decides about an entry when the entries before it are saved, and the number of a
    /// command's files is known at its end.
    fn work_in_turn(&mut self, slot: Slot, batch: Batch) -> Result<(), Stopped> {
        let exchange = &self.job.exchange;
        exchange.wait_for_turn(slot)?;
        let first_file = exchange.first_file(slot)?;
        let mut file_index = first_file;
        self.saver.emitter.open(slot)?;
        for item in batch.items {
            self.job.go_on()?;
            match item {
                Item::Entry(entry) => {
                    if self.work_entry_in_turn(entry, batch.include, file_index)? {
                        file_index = file_index.saturating_add(1);
                    }
                }
                Item::Event(event) => self.saver.emitter.note(event),
                Item::Plugin(command) => {
                    // Entries before the command in the FileSet are saved.
                    self.saver.emitter.publish()?;
                    let at_work = self.job.enter_plugin();
                    let saved = save_command(&mut self.saver, &command, file_index);
                    drop(at_work);
                    let files = saved.map_err(|halt| self.give_up(&halt, &command.text))?;
                    file_index = file_index.saturating_add(files);
                }
            }
            self.end_item()?;
        }
        self.job.exchange.count_files(slot, file_index.saturating_sub(first_file));
        self.saver.emitter.close();
        Ok(())
    }

    fn end_item(&mut self) -> Result<(), Stopped> {
        self.saver.emitter.make_room()?;
        self.saver.pace.step(&|| self.job.is_stopped());
        self.saver.meter.step(self.job);
        Ok(())
    }

    /// Offers an entry to the plugin of its Options, or saves it. `true` if it used its FileIndex.
    fn work_entry_in_turn(&mut self, mut entry: Entry, include: usize, file_index: u32) -> Result<bool, Stopped> {
        prepare_link(&mut entry);
        let Some(command) = options_plugin(&entry) else {
            let prepared = self.preparer().prepare_entry(&mut entry)?;
            return self.work_entry(entry, prepared, file_index);
        };
        let prepared = self.preparer().compare(&mut entry)?;
        if !matches!(prepared.fate, Fate::InItsTurn) {
            return self.work_entry(entry, prepared, file_index);
        }
        self.note(prepared.events, prepared.read_bytes);
        let at_work = self.job.enter_plugin();
        let offered = offer(&mut self.saver, &command, &mut entry, include, file_index);
        drop(at_work);
        match offered.map_err(|halt| self.give_up(&halt, &entry.path))? {
            Offered::Saved(state) => {
                self.job.resolve(&entry, state);
                Ok(true)
            }
            Offered::Skipped => {
                self.job.resolve(&entry, LinkState::NotSaved);
                Ok(false)
            }
            Offered::Declined => self.save_declined(entry, file_index),
            Offered::Missing { first, last } => {
                // The entry itself is saved, as by the stock daemon. A fatal message stops the
                // job's connections, so the messages come after the records, but before the entry's
                // own.
                self.saver.emitter.publish()?;
                self.save_declined(entry, file_index)?;
                let notes = std::mem::take(&mut self.saver.emitter.piece().notes);
                let messages = first.into_iter().chain([last.clone()]);
                self.note(messages.map(|text| Event::Message { kind: MessageType::Fatal, text, failed: false }), 0);
                self.note(notes.into_iter().map(|note| note.event), 0);
                Err(self.give_up(&Halt::Ended(last), b""))
            }
        }
    }

    /// Saves an entry that its plugin has left to the daemon.
    fn save_declined(&mut self, mut entry: Entry, file_index: u32) -> Result<bool, Stopped> {
        let fate = self.preparer().open(&mut entry)?;
        self.work_entry(entry, fate.into(), file_index)
    }

    fn preparer(&mut self) -> Preparer<'_> {
        let saver = &mut self.saver;
        Preparer {
            job: self.job,
            digesters: &mut saver.digests.digesters,
            block: &mut saver.buffers.block,
            pace: &mut saver.pace,
            meter: &mut saver.meter,
        }
    }

    /// What came of comparing an entry's data.
    fn note(&mut self, events: impl IntoIterator<Item = Event>, read_bytes: u64) {
        for event in events {
            self.saver.emitter.note(event);
        }
        self.saver.emitter.piece().tally.read_bytes += read_bytes;
    }

    /// Saves a prepared entry. `true` if it used its FileIndex.
    fn work_entry(&mut self, mut entry: Entry, prepared: Prepared, file_index: u32) -> Result<bool, Stopped> {
        self.note(prepared.events, prepared.read_bytes);
        let mut update = None;
        let mut opened = None;
        match prepared.fate {
            Fate::Nothing => return Ok(false),
            Fate::Unchanged => {
                if self.job.wants(MessageType::Skipped) {
                    let text = texts::unchanged(&entry.path);
                    self.saver.emitter.note(Event::Message { kind: MessageType::Skipped, text, failed: false });
                }
                return Ok(false);
            }
            Fate::Gone(errno) => {
                let text = fd_walk::texts::gone(&entry.path, &fd_os::error_text(errno.raw_os_error()));
                self.saver.emitter.note(Event::not_saved(text));
                return Ok(false);
            }
            Fate::LeftOut(why) => {
                match why {
                    NoData::NotOpened(errno) => self.saver.say_not_opened(&entry, errno),
                    NoData::NotRead(errno) => self.saver.say_not_read(&entry, errno),
                }
                if let Some(list) = &self.job.plan.accurate {
                    list.leave_to_earlier(entry.token);
                }
                self.saver.emitter.piece().tally.unread += 1;
                return Ok(false);
            }
            Fate::Update(digest) => update = Some(digest),
            Fate::InItsTurn => {}
            Fate::Opened(held) => opened = held.take().map(Ok),
            Fate::NotOpened(errno) => opened = Some(Err(errno)),
        }
        self.saver.emitter.set_current(&entry.path);
        let inherited = self.inherit(&mut entry)?;
        let content = if update.is_some() { Content::Nothing } else { self.content(&mut entry, opened) };
        if matches!(content, Content::NotOpened(_)) {
            // No restore sets it; and an accurate job that finds the file as it was tries it again,
            // instead of taking it for saved.
            entry.stat.ctime = 0;
        }
        let saved = i32::try_from(file_index)
            .map_err(|_| Halt::FileIndex)
            .and_then(|index| self.saver.save(&entry, inherited, update.as_deref(), content, index));
        let state = saved.map_err(|halt| self.give_up(&halt, &entry.path))?;
        self.job.resolve(&entry, state);
        Ok(true)
    }

    /// Opens the data of an entry. The entry gets the attributes of the open file: those of the
    /// walk may belong to another one.
    fn content(&mut self, entry: &mut Entry, opened: Option<Result<Opened, Errno>>) -> Content {
        let opened = match opened {
            None if !is_read(entry.file_type, &entry.stat) => return Content::Nothing,
            None => self.open_in_its_turn(entry),
            Some(opened) => opened,
        };
        let file = match opened {
            Ok(opened) => opened,
            Err(errno) => return Content::NotOpened(errno),
        };
        match entry.refresh(file.as_fd()) {
            Ok(Identity::Unchanged) => {}
            Ok(Identity::Changed) => {
                // Its digests ahead belong to the old contents.
                self.saver.ahead = None;
                entry.tell_later_names();
            }
            Ok(Identity::Replaced) => {
                self.saver.ahead = None;
                self.job.stand_alone(entry);
            }
            Err(errno) => return Content::NotOpened(errno),
        }
        if entry.file_type == FileType::Directory {
            let text = texts::became_directory(&entry.path);
            self.saver.emitter.note(Event::not_saved(text));
        }
        if !is_read(entry.file_type, &entry.stat) {
            return Content::Nothing;
        }
        let source = Source::new(file, entry.file_type, &entry.stat);
        if self.job.plan.accurate.is_some() && !source.is_readable() {
            // As for one that can't be opened: the next accurate job tries it again.
            entry.stat.ctime = 0;
        }
        Content::Open(source)
    }

    fn open_in_its_turn(&self, entry: &Entry) -> Result<Opened, Errno> {
        let begun = Instant::now();
        let job = self.job;
        let is_stopped = || job.is_stopped();
        let open_limits = job.open_limits(&is_stopped);
        let file = match entry.file_type {
            FileType::Regular => open_regular(entry, open_limits),
            _ => open_special(entry, open_limits),
        }?;
        Ok(Opened::new(file, begun.elapsed()))
    }

    /// What the entry takes from the first name of its inode. If that one was not saved, the entry
    /// is saved as a file of its own.
    fn inherit(&self, entry: &mut Entry) -> Result<Inherited, Stopped> {
        let Some(HardLink::Later { slot, .. }) = &entry.hard_link else { return Ok(Inherited::default()) };
        let state = self.job.exchange.wait_for(|| match slot.get() {
            LinkState::Pending => None,
            state => Some(state),
        })?;
        if let LinkState::Saved { file_index, digest } = state {
            entry.follow_first_name();
            return Ok(Inherited { link_fi: file_index, digest });
        }
        entry.become_own_file();
        Ok(Inherited::default())
    }

    /// Adds the reason to the stream, if it is to be reported. What was saved before is sent and
    /// counted.
    fn give_up(&mut self, halt: &Halt, path: &[u8]) -> Stopped {
        if matches!(halt, Halt::Plugin(_) | Halt::Fatal(_) | Halt::Ended(_)) && self.saver.emitter.publish().is_err() {
            return Stopped;
        }
        if halt.note(path, self.saver.emitter.piece()) {
            self.saver.emitter.close();
        }
        Stopped
    }
}
