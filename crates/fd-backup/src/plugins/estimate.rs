//! The files of a plugin command in an estimate: counted and listed, but not read (reference 07
//! §8.1).

use std::sync::Arc;

use fd_messages::MessageType;
use fd_plugins::{Event as PluginEvent, Gone, JobPlugins, SavePacket, Status};
use fd_records::FileType;
use fd_walk::{Entry, FoundCommand};

use crate::plugins::missing::{Named, named};
use crate::plugins::names;
use crate::shared::backup_host::{BackupHost, Surroundings, Way};
use crate::texts::{self, PluginPlace};

/// Passes what a command would save to `each`, of whichever type. `say` gets messages. The estimate
/// goes on after any of them.
pub(crate) fn estimate_command(
    plugins: &JobPlugins,
    surroundings: Surroundings<'_>,
    item: FoundCommand<'_>,
    files: u64,
    say: &dyn Fn(MessageType, &[u8]),
    each: &mut dyn FnMut(&Entry),
) {
    let FoundCommand { command, include, options, is_added } = item;
    let mut host = BackupHost::new(surroundings, include, options, Way::Direct(say));
    host.files = u32::try_from(files).unwrap_or(u32::MAX);
    if is_added {
        let _reported = plugins.tell_named(&mut host, command, &PluginEvent::PluginCommand(command));
    }
    let mut plugin = match named(plugins, PluginPlace::Estimate, command) {
        Named::Plugin(plugin) => plugin,
        Named::Silent | Named::TakesNoPart => return,
        Named::Missing(kind, text) => return say(kind, &text),
    };
    if !plugin.offers().backup {
        return;
    }
    let mut run = || -> Result<(), Gone> {
        let begun = plugin.call(|instance| instance.event(&mut host, &PluginEvent::EstimateCommand(command)))?;
        let mut goes_on = begun.is_ok();
        while goes_on && !host.is_canceled() {
            let mut packet = SavePacket::empty();
            let started = plugin.call(|instance| instance.start_backup_file(&mut host, command, false, &mut packet))?;
            if !started.is_ok() {
                break;
            }
            match file(command, packet, &host) {
                Ok(Some((entry, counts))) => {
                    each(&entry);
                    host.files = host.files.saturating_add(u32::from(counts));
                }
                Ok(None) => {}
                Err(text) => {
                    say(MessageType::Fatal, &text);
                    break;
                }
            }
            let ended = plugin.call(|instance| instance.end_backup_file(&mut host))?;
            goes_on = ended == Status::More;
        }
        Ok(())
    };
    if let Err(gone) = run()
        && !gone.canceled
    {
        say(MessageType::Fatal, &gone.text);
    }
}

/// The file of a packet, and whether it counts where the plugin asks for the number of files
/// (variable 23); `None` for an object. The error is what is wrong with the packet.
fn file(command: &[u8], packet: SavePacket, host: &BackupHost<'_>) -> Result<Option<(Entry, bool)>, Vec<u8>> {
    const OBJECTS: [FileType; 4] =
        [FileType::RestoreFirst, FileType::PluginConfig, FileType::PluginObject, FileType::SecurityObject];
    if packet.file_type == 0 {
        return Err(texts::no_type(PluginPlace::Estimate, command));
    }
    let file_type = u16::try_from(packet.file_type).ok().and_then(FileType::from_code);
    if file_type.is_some_and(|file_type| OBJECTS.contains(&file_type)) {
        return Ok(None);
    }
    let Some(name) = packet.name else { return Err(texts::no_name(PluginPlace::Estimate, command)) };
    let counts = matches!(
        file_type,
        Some(
            FileType::HardLink
                | FileType::EmptyFile
                | FileType::Regular
                | FileType::Symlink
                | FileType::Directory
                | FileType::Special
                | FileType::Raw
                | FileType::Fifo
        )
    );
    let file_type = file_type.unwrap_or(FileType::Special);
    if names::fault_of_file(command, file_type, &name, packet.link.as_deref()).is_some() {
        // A backup says so.
        return Ok(None);
    }
    let mut entry = Entry::of_plugin(name, file_type, packet.stat, Arc::clone(host.options()));
    entry.link = packet.link.unwrap_or_default();
    Ok(Some((entry, counts)))
}
