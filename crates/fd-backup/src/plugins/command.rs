//! The files of a plugin command (reference 07 §5.4).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fd_fileset::EffectiveOptions;
use fd_messages::MessageType;
use fd_plugins::{Event as PluginEvent, SavePacket, Status};
use fd_records::{FileType, Stat};
use fd_walk::{Entry, texts as walk_texts};

use crate::exchange::halt::Halt;
use crate::exchange::piece::Event;
use crate::file::save::Saver;
use crate::plugins::data::open;
use crate::plugins::file::PluginFile;
use crate::plugins::guest::{Guest, hand_on, note};
use crate::plugins::missing::{Named, named};
use crate::plugins::names;
use crate::plugins::record::{
    is_encrypted, record_names, send_end, send_events, send_file, send_plugin_object, send_restore_object, send_start,
    start_stream, with_packet,
};
use crate::shared::backup_host::{BackupHost, Way};
use crate::shared::batch::Command;
use crate::texts::{self, PluginPlace};

/// Saves everything that a plugin command names. The first file gets the FileIndex `first_file`.
/// Returns the number of files and objects.
pub(crate) fn save_command(saver: &mut Saver<'_>, item: &Command, first_file: u32) -> Result<u32, Halt> {
    let job = saver.job;
    let Command { text: command, include, options, is_added } = item;
    let slot = saver.emitter.slot();
    let hand_on = |messages| hand_on(job, slot, messages);
    let mut host = BackupHost::new(job.surroundings(), *include, options, Way::Stream(&hand_on));
    host.files = first_file.saturating_sub(1);
    if *is_added {
        job.plan.facts.note_command(command);
        // A malformed one is reported below.
        let _reported = job.plan.plugins.tell_named(&mut host, command, &PluginEvent::PluginCommand(command));
        note(host.take_messages(), &mut saver.emitter, false)?;
    }
    let plugin = match named(&job.plan.plugins, PluginPlace::Command, command) {
        Named::Plugin(plugin) if plugin.offers().backup => plugin,
        Named::Silent => return Ok(0),
        Named::Missing(MessageType::Fatal, text) => return Err(Halt::Fatal(text)),
        other => {
            let (kind, text) = match other {
                Named::Missing(kind, text) => (kind, text),
                _ => (MessageType::Error, texts::plugin_takes_no_part(command)),
            };
            saver.emitter.note(Event::Message { kind, text, failed: false });
            note_unknown(saver, command);
            return Ok(0);
        }
    };
    let guest = Guest::new(plugin, host);
    let mut run = CommandRun { saver, guest, command, options: Variants::new(options), files: 0, first_file };
    run.run()?;
    Ok(run.files)
}

/// What the command has not named may be there all the same.
fn note_unknown(saver: &mut Saver<'_>, command: &[u8]) {
    if saver.job.plan.accurate.as_ref().is_some_and(|list| list.nothing_is_gone()) {
        let text = texts::nothing_of_plugin_is_gone(command);
        saver.emitter.note(Event::Message { kind: MessageType::Warning, text, failed: false });
    }
}

/// A command at work.
struct CommandRun<'r, 'j, 'g, 'h> {
    saver: &'r mut Saver<'j>,
    guest: Guest<'g, 'h>,
    command: &'r [u8],
    options: Variants,
    /// Files and objects so far.
    files: u32,
    first_file: u32,
}

impl CommandRun<'_, '_, '_, '_> {
    fn run(&mut self) -> Result<(), Halt> {
        let command = self.command;
        let begun = self.guest.call(|instance, host| instance.event(host, &PluginEvent::BackupCommand(command)))?;
        self.pass_on()?;
        if !begun.is_ok() {
            self.note_early_end(begun);
            note_unknown(self.saver, command);
            return Ok(());
        }
        while self.next()? {}
        Ok(())
    }

    /// Saves the next file. `false` after the last one.
    fn next(&mut self) -> Result<bool, Halt> {
        self.saver.job.go_on()?;
        let command = self.command;
        let mut packet = SavePacket::empty();
        self.guest.host.file_events.clear();
        self.guest.host.told_error = false;
        let started = self.guest.call(|instance, host| instance.start_backup_file(host, command, true, &mut packet))?;
        self.pass_on_only()?;
        if !started.is_ok() {
            self.guest.check()?;
            self.note_early_end(started);
            return Ok(false);
        }
        // After a fatal message the file is not saved, but the plugin may end it.
        let ended = if self.guest.host.fatal.is_some() { self.end_file()? } else { self.save(&packet)? };
        self.pass_on()?;
        self.note_early_end(ended);
        if matches!(ended, Status::Ok | Status::More) {
            self.mark_seen(&packet);
        }
        self.saver.emitter.make_room()?;
        Ok(ended == Status::More)
    }

    /// The file is not gone.
    fn mark_seen(&self, packet: &SavePacket) {
        let Some(list) = &self.saver.job.plan.accurate else { return };
        let stripped = self.guest.host.options().strip_path;
        let is_directory = packet.stat.mode_type() == Stat::MODE_DIRECTORY;
        // The catalog has a directory with its slash, and by its link, if it has one.
        let link = packet.link.as_deref().filter(|_| is_directory);
        for name in packet.name.as_deref().into_iter().chain(link) {
            list.mark_seen(name, stripped);
            if is_directory && !name.ends_with(b"/") {
                list.mark_seen(&[name, b"/"].concat(), stripped);
            }
        }
    }

    /// That a plugin has failed must be known, also if it doesn't say so: the backup is not whole.
    fn note_early_end(&mut self, answer: Status) {
        if answer != Status::Error {
            return;
        }
        if !self.guest.host.told_error && !self.guest.host.is_canceled() {
            let text = texts::plugin_ended_early(self.command);
            self.saver.emitter.note(Event::Message { kind: MessageType::Error, text, failed: false });
        }
        note_unknown(self.saver, self.command);
    }

    /// Saves what the plugin has put into the packet, and tells it.
    fn save(&mut self, packet: &SavePacket) -> Result<Status, Halt> {
        let command = self.command;
        let file_index = self.first_file.saturating_add(self.files);
        let file_index = i32::try_from(file_index).map_err(|_| Halt::FileIndex)?;
        if packet.file_type == 0 {
            return Err(Halt::Fatal(texts::no_type(PluginPlace::Command, command)));
        }
        let kind = Kind::of(packet);
        if let Kind::Object(file_type) = kind {
            if file_type != FileType::PluginObject {
                let Some(name) = &packet.object.name else {
                    return Err(Halt::Fatal(texts::no_object_name(command)));
                };
                // It would end a Director that has its catalog in SQLite (reference 07 §6.1).
                if packet.object.data.is_empty() {
                    let text = texts::empty_object(command, name);
                    self.saver.emitter.note(Event::Message { kind: MessageType::Error, text, failed: false });
                    return self.end_file();
                }
            }
            self.save_object(packet, file_type, file_index)?;
            return self.end_file();
        }
        let name = if matches!(kind, Kind::Filled) { Some(command) } else { packet.name.as_deref() };
        let Some(name) = name else {
            return Err(Halt::Fatal(texts::no_name(PluginPlace::Command, command)));
        };
        self.saver.emitter.set_current(name);
        let (announced, file_type) = self.announce(kind, name);
        if let Some(event) = announced {
            self.saver.emitter.note(event);
        }
        let Some(file_type) = file_type else { return self.end_file() };
        if let Some((name, fault)) = names::fault_of_file(command, file_type, name, packet.link.as_deref()) {
            self.saver.emitter.note(Event::not_saved(texts::name_refused(command, name, fault)));
            return self.end_file();
        }
        self.save_file(packet, name, file_type, file_index)
    }

    fn save_object(&mut self, packet: &SavePacket, file_type: FileType, file_index: i32) -> Result<(), Halt> {
        let Self { saver, guest, command, .. } = self;
        let stream = start_stream(saver, guest)?;
        send_start(saver, stream, command, packet.portable, file_index)?;
        saver.say_saved(&object_entry(command, packet, file_type));
        if file_type == FileType::PluginObject {
            send_plugin_object(saver, command, packet, file_index)?;
        } else {
            send_restore_object(saver, command, packet, file_type, file_index)?;
        }
        self.files += 1;
        self.guest.host.files += 1;
        if file_type == FileType::RestoreFirst {
            // As with the stock daemon, no option is left (reference 07 §5.3).
            self.options.clear();
        }
        send_end(self.saver, file_index)
    }

    fn save_file(
        &mut self,
        packet: &SavePacket,
        name: &[u8],
        file_type: FileType,
        file_index: i32,
    ) -> Result<Status, Halt> {
        let options = self.options.with(packet);
        let mut entry = Entry::of_plugin(name.to_vec(), file_type, packet.stat, options);
        entry.link = packet.link.clone().unwrap_or_default();
        let is_encrypted = self.saver.encryption.is_some() && is_encrypted(&entry, packet, false);
        let file = PluginFile {
            command: self.command,
            entry: &entry,
            packet,
            read_name: name,
            file_index,
            is_walked: false,
            is_encrypted,
            has_earlier: self.saver.job.plan.has_earlier_of(&record_names(&entry).0),
        };
        let stream = start_stream(self.saver, &mut self.guest)?;
        self.guest.host.files += 1;
        let Some(opened) = open(self.saver, &mut self.guest, &file)? else {
            self.guest.host.files -= 1;
            return self.end_file();
        };
        self.files += 1;
        send_start(self.saver, stream, file.command, packet.portable, file_index)?;
        send_file(self.saver, &mut self.guest, &file, opened)?;
        // What the plugin finds at the end of the file belongs to it, too.
        let ended = self.end_file()?;
        send_events(self.saver, &self.guest.host.file_events, file_index)?;
        send_end(self.saver, file_index)?;
        Ok(ended)
    }

    fn end_file(&mut self) -> Result<Status, Halt> {
        if self.guest.host.fatal.is_none() {
            self.saver.job.go_on()?;
        }
        let ended = self.guest.call(|instance, host| instance.end_backup_file(host))?;
        self.pass_on_only()?;
        Ok(ended)
    }

    /// Messages about a file of this kind, and the type of its record, if it has one: as for an
    /// entry of the walk (reference 03 §8.1).
    fn announce(&self, kind: Kind, name: &[u8]) -> (Option<Event>, Option<FileType>) {
        let fileset = self.saver.job.plan.fileset.as_ref();
        let say = |kind, build: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            build(&mut text);
            Some(Event::Message { kind, text, failed: kind == MessageType::NotSaved })
        };
        // As with the stock daemon, the reason is that of the last file that could not be opened.
        let reason = fd_os::error_text(self.saver.job.open_error.load(Ordering::Relaxed));
        let command = self.command;
        let could_not = |what| say(MessageType::NotSaved, &|text| walk_texts::could_not(text, what, name, &reason));
        let directory = Some(FileType::Directory);
        match kind {
            Kind::Object(_) => (None, None),
            Kind::Filled => (Some(Event::not_saved(texts::unknown_type(FILLED, name))), None),
            Kind::Unknown(code) => (Some(Event::not_saved(texts::unknown_type(code, name))), None),
            Kind::File(file_type) => match file_type {
                FileType::NoAccess => (could_not(texts::NO_ACCESS), None),
                FileType::NoFollow => (could_not(walk_texts::FOLLOW), None),
                FileType::NoStat => (could_not(walk_texts::STAT), None),
                FileType::NoOpen => (could_not(walk_texts::OPEN_DIRECTORY), None),
                FileType::IsArchive => {
                    let text = texts::archive_not_saved(name);
                    (Some(Event::Message { kind: MessageType::NotSaved, text, failed: false }), None)
                }
                FileType::Unchanged | FileType::DirectoryUnchanged => {
                    (say(MessageType::Skipped, &|text| text.extend(texts::unchanged(name))), None)
                }
                FileType::DirectoryBegin => (None, None),
                FileType::NoRecurse => {
                    (say(MessageType::Info, &|text| walk_texts::no_recursion(text, command, name)), directory)
                }
                FileType::OtherFileSystem if fileset.lists(name) => (None, directory),
                FileType::OtherFileSystem => {
                    (say(MessageType::Info, &|text| walk_texts::other_file_system(text, command, name)), directory)
                }
                FileType::InvalidFileSystem => {
                    (say(MessageType::Info, &|text| walk_texts::disallowed_file_system(text, command, name)), directory)
                }
                FileType::InvalidDriveType => {
                    (say(MessageType::Info, &|text| text.extend(texts::disallowed_drive_type(name))), Some(file_type))
                }
                other => (None, Some(other)),
            },
            Kind::Socket => (say(MessageType::Skipped, &|text| walk_texts::socket(text, name)), None),
        }
    }

    /// Passes on the plugin's messages. A fatal one ends the job.
    fn pass_on(&mut self) -> Result<(), Halt> {
        self.pass_on_only()?;
        self.guest.check()
    }

    fn pass_on_only(&mut self) -> Result<(), Halt> {
        self.guest.pass_on(&mut self.saver.emitter)?;
        Ok(())
    }
}

/// The number of [`FileType::PluginConfigFilled`].
const FILLED: i32 = FileType::PluginConfigFilled.code() as i32;

/// What a packet describes.
#[derive(Clone, Copy)]
enum Kind {
    /// An object, with its type.
    Object(FileType),
    /// A file, with its type.
    File(FileType),
    Socket,
    /// A filled-in object, which only a Director makes.
    Filled,
    /// A type that no plugin may use.
    Unknown(i32),
}

impl Kind {
    fn of(packet: &SavePacket) -> Self {
        let code = packet.file_type;
        let Some(file_type) = u16::try_from(code).ok().and_then(FileType::from_code) else {
            return Self::Unknown(code);
        };
        match file_type {
            FileType::RestoreFirst | FileType::PluginConfig | FileType::PluginObject | FileType::SecurityObject => {
                Self::Object(file_type)
            }
            FileType::PluginConfigFilled => Self::Filled,
            FileType::Plugin | FileType::Base => Self::Unknown(code),
            FileType::Special if packet.stat.mode_type() == Stat::MODE_SOCKET => Self::Socket,
            other => Self::File(other),
        }
    }
}

/// What the listing of saved files says of an object: its command.
fn object_entry(command: &[u8], packet: &SavePacket, file_type: FileType) -> Entry {
    Entry::of_plugin(command.to_vec(), file_type, packet.stat, Arc::default())
}

/// The options of a command's files: what they inherit, with those that the plugin sets for each
/// (reference 07 §5.3).
struct Variants {
    inherited: Arc<EffectiveOptions>,
    sparse: Option<Arc<EffectiveOptions>>,
    plain: Option<Arc<EffectiveOptions>>,
}

impl Variants {
    fn new(inherited: &Arc<EffectiveOptions>) -> Self {
        Self { inherited: Arc::clone(inherited), sparse: None, plain: None }
    }

    fn clear(&mut self) {
        *self = Self::new(&Arc::default());
    }

    fn with(&mut self, packet: &SavePacket) -> Arc<EffectiveOptions> {
        let is_sparse = packet.flags & SavePacket::SPARSE != 0;
        let variant = if is_sparse { &mut self.sparse } else { &mut self.plain };
        Arc::clone(variant.get_or_insert_with(|| with_packet(&self.inherited, packet)))
    }
}
