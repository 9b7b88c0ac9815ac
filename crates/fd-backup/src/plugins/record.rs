//! The records of one file or object of a plugin (reference 07 §5.5, §5.8, §6).

use std::borrow::Cow;
use std::sync::Arc;

use fd_bsock::MAX_PAYLOAD;
use fd_fileset::{EffectiveOptions, Flags, strip_path};
use fd_messages::MessageType;
use fd_metadata::Failures;
use fd_plugins::{FileEvent, Host, SavePacket};
use fd_records::{
    Attributes, Compression, FileEventRecord, FileType, LStat, MetadataKind, PluginMetadata, PluginName,
    PluginObjectRecord, RestoreObjectRecord, Stat, Stream,
};
use fd_walk::{Entry, LinkState};

use crate::digests::choice::Digests;
use crate::exchange::halt::Halt;
use crate::exchange::piece::Event;
use crate::file::save::Saver;
use crate::plugins::data::{say_not_opened, send_data};
use crate::plugins::file::{Opened, PluginFile, metadata_record};
use crate::plugins::guest::Guest;
use crate::source::kinds::{data_stream, is_digested};
use crate::texts;

/// The options of a file: what it inherits, with what the plugin has set (reference 07 §5.3). The
/// other options that a packet may set are not among those of a FileSet.
pub(crate) fn with_packet(inherited: &EffectiveOptions, packet: &SavePacket) -> Arc<EffectiveOptions> {
    let rest = inherited.flags.without(Flags::SPARSE);
    let flags = if packet.flags & SavePacket::SPARSE == 0 { rest } else { rest | Flags::SPARSE };
    Arc::new(EffectiveOptions { flags, ..inherited.clone() })
}

/// The stream of the record before a file or object, which the plugin may change.
pub(crate) fn start_stream(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>) -> Result<Stream, Halt> {
    let mut stream = Stream::PLUGIN_NAME;
    if guest.offers().check_stream {
        let mut number = i32::try_from(stream.number()).unwrap_or_default();
        let status = guest.call(|instance, host| instance.check_stream(host, &mut number))?;
        guest.pass_on(&mut saver.emitter)?;
        if let (true, Ok(number)) = (status.is_ok(), u32::try_from(number)) {
            stream = Stream::new(number);
        }
    }
    Ok(stream)
}

/// Sends the record before a file or object. Its number is that of the file.
pub(crate) fn send_start(
    saver: &mut Saver<'_>,
    stream: Stream,
    command: &[u8],
    portable: bool,
    file_index: i32,
) -> Result<(), Halt> {
    saver.buffers.record.clear();
    PluginName::Start { file_index: file_index.into(), portable, command }.encode(&mut saver.buffers.record);
    Ok(saver.emitter.record(file_index, stream, &saver.buffers.record)?)
}

/// Sends the record after a file or object.
pub(crate) fn send_end(saver: &mut Saver<'_>, file_index: i32) -> Result<(), Halt> {
    saver.buffers.record.clear();
    PluginName::End { file_index: file_index.into() }.encode(&mut saver.buffers.record);
    Ok(saver.emitter.record(file_index, Stream::PLUGIN_NAME, &saver.buffers.record)?)
}

/// Sends the record of an object of type 25, 27 or 30.
pub(crate) fn send_restore_object(
    saver: &mut Saver<'_>,
    command: &[u8],
    packet: &SavePacket,
    file_type: FileType,
    file_index: i32,
) -> Result<(), Halt> {
    let data = packet.object.data.as_slice();
    saver.buffers.compressed.clear();
    if data.len() > RestoreObjectRecord::COMPRESSED_ABOVE {
        saver.compressors.ready(Compression::Gzip(9))?.compress(data, &mut saver.buffers.compressed)?;
    }
    let is_compressed = !saver.buffers.compressed.is_empty() && saver.buffers.compressed.len() < data.len();
    saver.buffers.record.clear();
    RestoreObjectRecord {
        file_index,
        object_type: file_type.code(),
        index: packet.object.index,
        stored: if is_compressed { &saver.buffers.compressed } else { data },
        full_len: data.len(),
        is_compressed,
        command,
        name: packet.object.name.as_deref().unwrap_or_default(),
    }
    .encode(&mut saver.buffers.record);
    saver.emitter.piece().tally.files += 1;
    Ok(saver.emitter.record(file_index, Stream::RESTORE_OBJECT, &saver.buffers.record)?)
}

/// Sends the record of an object of type 29.
pub(crate) fn send_plugin_object(
    saver: &mut Saver<'_>,
    command: &[u8],
    packet: &SavePacket,
    file_index: i32,
) -> Result<(), Halt> {
    let object = &packet.plugin_object;
    saver.buffers.record.clear();
    PluginObjectRecord {
        path: &object.path,
        command,
        category: &object.category,
        object_type: &object.object_type,
        name: &object.name,
        source: &object.source,
        uuid: &object.uuid,
        size: object.size,
        status: u8::try_from(object.status & 0xFF).unwrap_or_default(),
        count: object.count,
    }
    .encode(&mut saver.buffers.record);
    saver.emitter.piece().tally.files += 1;
    Ok(saver.emitter.record(file_index, Stream::PLUGIN_OBJECT, &saver.buffers.record)?)
}

/// Sends all records of a file between its start and its end, but for its events. Returns what
/// later names of its inode refer to.
pub(crate) fn send_file(
    saver: &mut Saver<'_>,
    guest: &mut Guest<'_, '_>,
    file: &PluginFile<'_>,
    opened: Opened,
) -> Result<LinkState, Halt> {
    let PluginFile { entry, file_index, .. } = *file;
    saver.emitter.piece().tally.files += 1;
    saver.say_saved(entry);
    send_attributes(saver, file, file.stat(opened))?;
    if entry.file_type == FileType::Deleted || !send_plugin_metadata(saver, guest, file)? {
        return Ok(LinkState::Saved { file_index, digest: None });
    }
    if file.is_encrypted {
        if file.has(SavePacket::OFFSETS) {
            return Err(Halt::Fatal(texts::ENCRYPTED_OFFSETS.into()));
        }
        saver.send_session(entry, file_index)?;
    }
    let signed = saver.signs(entry.file_type)?;
    // Not batched: the length of the data is not known.
    let digests = Digests { record: saver.choose_digest(entry), signed, ..Digests::default() };
    saver.begin_digests(digests)?;
    match opened {
        Opened::Nothing => {}
        Opened::Open => send_data(saver, guest, file)?,
        Opened::Failed(errno) => {
            say_not_opened(saver, guest, file, errno)?;
            // The next name may carry the data.
            return Ok(LinkState::NotSaved);
        }
    }
    if file.is_walked {
        if entry.is_checked_for_changes() {
            saver.check_changes(entry);
        }
        saver.send_metadata(entry, file_index, None)?;
    } else {
        send_xacl(saver, guest, file)?;
    }
    saver.send_digests(digests, None, file_index)
}

/// Whether the data of a file is encrypted, in a job with encryption: also that of a directory or
/// link, which the stock daemon sends in clear.
pub(crate) fn is_encrypted(entry: &Entry, packet: &SavePacket, is_walked: bool) -> bool {
    is_digested(entry.file_type) || PluginFile::is_read(entry, packet, is_walked)
}

fn send_attributes(saver: &mut Saver<'_>, file: &PluginFile<'_>, stat: Stat) -> Result<(), Halt> {
    let PluginFile { entry, packet, file_index, is_walked, .. } = *file;
    let is_update = packet.stat_update && !is_walked;
    let (name, link) = if is_walked {
        let names = entry.record_names();
        (names.name, names.link)
    } else {
        record_names(entry)
    };
    saver.buffers.record.clear();
    Attributes {
        file_index,
        file_type: entry.file_type,
        name: &name,
        lstat: LStat {
            stat,
            link_fi: if is_walked { 0 } else { packet.link_fi },
            flags: 0,
            // Without the bit of its addresses.
            data_stream: data_stream(&entry.options, file.is_encrypted),
        },
        link: &link,
        attr_ex: if is_update { Attributes::UPDATE_MARK } else { &[] },
        delta_seq: delta_seq(packet, is_update && entry.file_type == FileType::Regular),
    }
    .encode(&mut saver.buffers.record);
    let stream = if is_update { Stream::ATTRIBUTES_UPDATE } else { Stream::ATTRIBUTES };
    Ok(saver.emitter.record(file_index, stream, &saver.buffers.record)?)
}

/// A delta follows the one that the catalog has.
fn delta_seq(packet: &SavePacket, is_updated_file: bool) -> i32 {
    let next = if packet.flags & SavePacket::DELTA == 0 { 0 } else { packet.delta_seq.saturating_add(1) };
    if is_updated_file { 1 } else { i32::try_from(next).unwrap_or(i32::MAX) }
}

/// Name and link of the record of a command's file. Its link is what the plugin has set: for a
/// directory the name with a slash. Where a file is to be stripped of leading components, both must
/// have enough of them (reference 07 §5.8).
pub(crate) fn record_names(entry: &Entry) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
    let (path, link, strip) = (entry.path.as_slice(), entry.link.as_slice(), entry.options.strip_path);
    let is_directory = entry.file_type.has_directory_name() && !link.is_empty();
    let name = if is_directory { link } else { path };
    let keeps_link = matches!(entry.file_type, FileType::Symlink | FileType::HardLink);
    let whole = (Cow::Borrowed(name), Cow::Borrowed(if keeps_link { link } else { &[] }));
    if entry.file_type == FileType::Deleted {
        return whole;
    }
    let Some(short_path) = strip_path(path, strip) else { return whole };
    match entry.file_type {
        FileType::Symlink => (Cow::Owned(short_path), whole.1),
        _ => match strip_path(link, strip) {
            Some(short_link) if is_directory => (Cow::Owned(short_link), whole.1),
            Some(short_link) if keeps_link => (Cow::Owned(short_path), Cow::Owned(short_link)),
            Some(_) => (Cow::Owned(short_path), whole.1),
            None => whole,
        },
    }
}

/// Sends the metadata of a file (reference 07 §5.9). What can't be sent is reported, and the file
/// goes on without it. `false` if the file ends here.
fn send_plugin_metadata(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>, file: &PluginFile<'_>) -> Result<bool, Halt> {
    let Some(packets) = &file.packet.metadata else { return Ok(true) };
    if packets.is_empty() {
        guest.host.message(MessageType::Error, &texts::metadata_failed(guest.file(), &file.entry.path));
        guest.pass_on(&mut saver.emitter)?;
    }
    for packet in packets {
        let record = metadata_record(packet);
        let wrong = match record.stream() {
            None => Some((MessageType::Fatal, texts::metadata_type(packet.kind))),
            Some(_) if record.record_len() > PluginMetadata::LONGEST => {
                Some((MessageType::Error, texts::metadata_too_long(record.record_len())))
            }
            Some(stream) => {
                saver.buffers.record.clear();
                record.encode(&mut saver.buffers.record);
                let sent = saver.emitter.large_record(file.file_index, stream, &saver.buffers.record);
                saver.buffers.record.shrink_to(MAX_PAYLOAD);
                sent.err().map(|error| (MessageType::Error, texts::record_refused(&file.entry.path, &error)))
            }
        };
        if let Some((kind, text)) = wrong {
            guest.host.message(kind, &text);
            guest.host.message(MessageType::Error, &texts::metadata_failed(guest.file(), &file.entry.path));
            guest.pass_on(&mut saver.emitter)?;
            if kind == MessageType::Fatal {
                return Ok(false);
            }
        }
        saver.emitter.make_room()?;
    }
    Ok(true)
}

/// Sends what the plugin has as ACLs and extended attributes, whatever the options say.
fn send_xacl(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>, file: &PluginFile<'_>) -> Result<(), Halt> {
    if !guest.offers().xacl {
        return Ok(());
    }
    for (kind, stream) in [(MetadataKind::Acl, Stream::PLUGIN_ACL), (MetadataKind::Xattr, Stream::PLUGIN_XATTR)] {
        loop {
            saver.job.go_on()?;
            saver.buffers.record.clear();
            let content = &mut saver.buffers.record;
            let status = guest.call(|instance, host| instance.read_xacl(host, kind, content))?;
            guest.pass_on(&mut saver.emitter)?;
            if !status.is_ok() {
                let failures = Failures { texts: vec![texts::no_xacl(kind)], count: 1 };
                saver.emitter.note(Event::MetadataWarnings { kind, failures });
                break;
            }
            if saver.buffers.record.is_empty() {
                break;
            }
            let len = saver.buffers.record.len();
            match saver.emitter.large_record(file.file_index, stream, &saver.buffers.record) {
                Ok(()) => saver.emitter.piece().tally.job_bytes += len as u64,
                // The file is good without it, and so are those that follow.
                Err(error) => {
                    let text = texts::record_refused(&file.entry.path, &error);
                    saver.emitter.note(Event::Message { kind: MessageType::Error, text, failed: false });
                }
            }
            saver.buffers.record.shrink_to(MAX_PAYLOAD);
            saver.emitter.make_room()?;
        }
    }
    Ok(())
}

/// Sends what the plugin has found in the file (reference 07 §5.10).
pub(crate) fn send_events(saver: &mut Saver<'_>, events: &[FileEvent], file_index: i32) -> Result<(), Halt> {
    for event in events {
        saver.buffers.record.clear();
        FileEventRecord {
            kind: event.kind,
            severity: event.severity,
            source: &event.source,
            description: &event.description,
        }
        .encode(&mut saver.buffers.record);
        saver.emitter.record(file_index, Stream::FILE_EVENT, &saver.buffers.record)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, link: &str, file_type: FileType, strip_path: u32) -> String {
        let options = Arc::new(EffectiveOptions { strip_path, ..EffectiveOptions::default() });
        let mut entry = Entry::of_plugin(path.into(), file_type, Stat::default(), options);
        entry.link = link.into();
        let (name, link) = record_names(&entry);
        format!("{} {}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&link))
    }

    /// Reference 07 §5.8.
    #[test]
    fn a_name_is_stripped_if_its_link_can_be_stripped_too() {
        assert_eq!(names("/@tp/file1", "/@tp/file1", FileType::Regular, 1), "/file1 ");
        assert_eq!(names("/@tp/file1", "", FileType::Regular, 1), "/@tp/file1 ");
        assert_eq!(names("/@tp/file1", "", FileType::Regular, 0), "/@tp/file1 ");
        assert_eq!(names("/@tp/dir", "/@tp/dir/", FileType::Directory, 1), "/dir/ ");
        assert_eq!(names("/@tp/lnk", "x", FileType::Symlink, 1), "/lnk x");
        assert_eq!(names("/@tp/b", "/@tp/a", FileType::HardLink, 1), "/b /a");
        assert_eq!(names("/@tp/b", "/@tp/b", FileType::Deleted, 1), "/@tp/b ");
    }

    #[test]
    fn the_link_of_a_directory_is_its_name() {
        assert_eq!(names("/@tp/dir", "/@tp/dir/", FileType::Directory, 0), "/@tp/dir/ ");
        assert_eq!(names("/@tp/dir", "", FileType::Directory, 0), "/@tp/dir ");
    }
}
