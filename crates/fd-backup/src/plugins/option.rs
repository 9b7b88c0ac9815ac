//! A file of the walk that the plugin of its Options may save (reference 07 §5.7).

use std::sync::Arc;

use fd_messages::MessageType;
use fd_plugins::{SavePacket, Status};
use fd_records::FileType;
use fd_walk::{Entry, LinkState};

use crate::exchange::halt::Halt;
use crate::exchange::piece::Event;
use crate::file::save::Saver;
use crate::plugins::data::open;
use crate::plugins::file::PluginFile;
use crate::plugins::guest::{Guest, hand_on};
use crate::plugins::missing::{Named, named};
use crate::plugins::record::{is_encrypted, send_end, send_events, send_file, send_start, start_stream, with_packet};
use crate::shared::backup_host::{BackupHost, Way};
use crate::texts::{self, PluginPlace};

/// What became of the file.
pub(crate) enum Offered {
    /// It has its records, and later names of its inode refer to this.
    Saved(LinkState),
    /// It is not saved.
    Skipped,
    /// The daemon is to save it.
    Declined,
    /// There is no plugin: the daemon is to save it, and then the job ends.
    Missing {
        /// Said first, if there are no plugins at all.
        first: Option<Vec<u8>>,
        /// Said last.
        last: Vec<u8>,
    },
}

/// The plugin of the options that may save this entry: regular files only, and all of an Include if
/// its last block with a plugin names it.
pub(crate) fn options_plugin(entry: &Entry) -> Option<Arc<[u8]>> {
    let plugin = entry.options.plugin.as_ref()?;
    matches!(entry.file_type, FileType::Regular | FileType::EmptyFile).then(|| Arc::clone(plugin))
}

/// There is no such plugin, and this is said of it.
fn missing(saver: &mut Saver<'_>, command: &[u8], kind: MessageType, text: Vec<u8>) -> Offered {
    let not_found = texts::plugin_not_found(PluginPlace::Options, command);
    if kind != MessageType::Fatal {
        saver.emitter.note(Event::Message { kind, text, failed: false });
        Offered::Missing { first: None, last: not_found }
    } else if saver.job.plan.plugins.is_empty() {
        Offered::Missing { first: Some(text), last: not_found }
    } else {
        Offered::Missing { first: None, last: text }
    }
}

/// Offers an entry to the plugin of its options.
pub(crate) fn offer(
    saver: &mut Saver<'_>,
    command: &[u8],
    entry: &mut Entry,
    include: usize,
    file_index: u32,
) -> Result<Offered, Halt> {
    let job = saver.job;
    let plugin = match named(&job.plan.plugins, PluginPlace::Options, command) {
        Named::Plugin(plugin) => plugin,
        Named::Silent | Named::TakesNoPart => return Ok(Offered::Declined),
        Named::Missing(kind, text) => return Ok(missing(saver, command, kind, text)),
    };
    let options = Arc::clone(&entry.options);
    let slot = saver.emitter.slot();
    let hand_on = |messages| hand_on(job, slot, messages);
    let mut host = BackupHost::new(job.surroundings(), include, &options, Way::Stream(&hand_on));
    host.files = file_index.saturating_sub(1);
    let mut guest = Guest::new(plugin, host);
    let known = job.plan.accurate.as_ref().and_then(|list| list.attributes(&entry.record_names().name));
    let mut packet = SavePacket {
        name: Some(entry.path.clone()),
        snap_name: Some(entry.read_path().into_owned()),
        // As with the stock daemon, a file that is no link is its own.
        link: Some(if entry.link.is_empty() { entry.path.clone() } else { entry.link.clone() }),
        stat: entry.stat,
        accurate_found: known.is_some(),
        delta_seq: known.map_or(0, |known| u32::try_from(known.delta_seq).unwrap_or_default()),
        ..SavePacket::empty()
    };
    job.go_on()?;
    let status = guest.call(|instance, host| instance.handle_file(host, command, &mut packet))?;
    guest.pass_on(&mut saver.emitter)?;
    guest.check()?;
    match status {
        Status::Ok => {}
        Status::Skip => return Ok(Offered::Skipped),
        _ => return Ok(Offered::Declined),
    }
    let file_index = i32::try_from(file_index).map_err(|_| Halt::FileIndex)?;
    entry.options = with_packet(&entry.options, &packet);
    saver.emitter.set_current(&entry.path);
    let read_name = entry.read_path();
    let is_encrypted = saver.encryption.is_some() && is_encrypted(entry, &packet, true);
    let file = PluginFile {
        command,
        entry,
        packet: &packet,
        read_name: &read_name,
        file_index,
        is_walked: true,
        is_encrypted,
        has_earlier: job.plan.has_earlier(entry),
    };
    let stream = start_stream(saver, &mut guest)?;
    let Some(opened) = open(saver, &mut guest, &file)? else {
        if let Some(list) = &job.plan.accurate {
            list.leave_to_earlier(entry.token);
        }
        guest.check()?;
        return Ok(Offered::Skipped);
    };
    send_start(saver, stream, command, packet.portable, file_index)?;
    let outcome = send_file(saver, &mut guest, &file, opened)?;
    send_events(saver, &guest.host.file_events, file_index)?;
    send_end(saver, file_index)?;
    guest.check()?;
    Ok(Offered::Saved(outcome))
}
