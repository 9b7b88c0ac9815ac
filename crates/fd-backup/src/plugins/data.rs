//! The data of a plugin's file on its way into the stream (reference 07 §5.6).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fd_fileset::Flags;
use fd_messages::{MessageType, Stage};
use fd_plugins::{Io, IoDone, SavePacket};
use rustix::fs::OFlags;

use crate::digests::protect::Encryption;
use crate::exchange::halt::Halt;
use crate::exchange::piece::Event;
use crate::file::blocks::{Cut, is_zero};
use crate::file::data::Transform;
use crate::file::save::Saver;
use crate::plugins::file::{Opened, PluginFile};
use crate::plugins::guest::Guest;
use crate::texts;

/// After a call that took so long, the Storage Daemon gets what is ready: the next call may take
/// long, too.
pub(crate) const LONG_CALL: Duration = Duration::from_millis(100);

/// Most pieces of a plugin's data that wait for the sender. It is one stream, which goes no faster
/// if more of them take memory.
const MOST_AHEAD: usize = 8;

/// Opens the plugin's file, if its data is to be read. `None` if that fails, and a record would
/// hide the copy of an earlier job: then the file gets none.
///
/// What the plugin says meanwhile waits for its place behind the attributes.
pub(crate) fn open(
    saver: &mut Saver<'_>,
    guest: &mut Guest<'_, '_>,
    file: &PluginFile<'_>,
) -> Result<Option<Opened>, Halt> {
    if !PluginFile::is_read(file.entry, file.packet, file.is_walked) || file.ends_the_job() {
        return Ok(Some(Opened::Nothing));
    }
    saver.job.go_on()?;
    let no_atime = file.entry.options.has(Flags::NO_ATIME);
    let flags = if no_atime { i32::try_from(OFlags::NOATIME.bits()).unwrap_or_default() } else { 0 };
    let opened = guest.call(|instance, host| instance.io(host, Io::Open { name: file.read_name, flags, mode: 0 }))?;
    if opened.status >= 0 {
        return Ok(Some(Opened::Open));
    }
    saver.job.open_error.store(opened.errno, Ordering::Relaxed);
    if file.is_file() && file.has_earlier {
        say_not_opened(saver, guest, file, opened.errno)?;
        return Ok(None);
    }
    Ok(Some(Opened::Failed(opened.errno)))
}

/// Says that the file can't be opened, behind what its plugin has said.
pub(crate) fn say_not_opened(
    saver: &mut Saver<'_>,
    guest: &mut Guest<'_, '_>,
    file: &PluginFile<'_>,
    errno: i32,
) -> Result<(), Halt> {
    guest.pass_on(&mut saver.emitter)?;
    saver.emitter.note(Event::not_saved(texts::plugin_cannot_open(&file.entry.path, errno)));
    saver.emitter.piece().tally.unread += u32::from(file.is_file());
    Ok(())
}

/// Sends the data of the open file, and closes it.
pub(crate) fn send_data(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>, file: &PluginFile<'_>) -> Result<(), Halt> {
    guest.pass_on(&mut saver.emitter)?;
    saver.emitter.header(file.file_index, file.data_stream(), file.entry.stat.size)?;
    if !file.is_walked {
        // Its program may take long.
        saver.emitter.publish()?;
    }
    let options = &file.entry.options;
    let with_addresses = file.has_sparse_data() || file.has(SavePacket::OFFSETS);
    saver.emitter.stay_near(Some(MOST_AHEAD));
    let (end, is_given) = if options.compression.is_some() || file.is_encrypted || with_addresses {
        send_transformed(saver, guest, file)?
    } else {
        send_in_place(saver, guest)?
    };
    saver.emitter.stay_near(None);
    if end.status < 0 {
        let text = texts::plugin_read_error(&file.entry.path, end.errno);
        saver.emitter.note(Event::ReadError { text });
    }
    let tally = &mut saver.emitter.piece().tally;
    if is_given || end.status >= 0 {
        tally.read += 1;
    } else {
        tally.unread += u32::from(file.is_file());
    }
    saver.emitter.close_stream();
    saver.job.go_on()?;
    let closed = guest.call(|instance, host| instance.io(host, Io::Close))?;
    guest.pass_on(&mut saver.emitter)?;
    if closed.has_failed_to_close() && end.status >= 0 && !guest.host.told_error && !guest.host.is_canceled() {
        let text = texts::plugin_cannot_close(&file.entry.path, closed.errno);
        saver.emitter.note(Event::Message { kind: MessageType::Error, text, failed: false });
    }
    Ok(())
}

/// Sends data as it is: it is read directly to its place in the stream. Returns the last answer,
/// and whether there was data.
fn send_in_place(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>) -> Result<(IoDone, bool), Halt> {
    let most = saver.job.record_len;
    let mut is_given = false;
    loop {
        let start = saver.emitter.begin_block(false);
        let room = saver.emitter.block_room(false);
        let payload = room.len();
        // A plugin that is gone has left room without data: it would end the stream.
        let (done, spent) = read(guest, room, most).inspect_err(|_| room.truncate(start))?;
        let len = length(done, most);
        room.truncate(if len == 0 { start } else { payload.saturating_add(len) });
        if len > 0 {
            is_given = true;
            saver.digests.update(room.get(payload..).unwrap_or_default());
            saver.emitter.end_block(false, start)?;
            let tally = &mut saver.emitter.piece().tally;
            tally.read_bytes += len as u64;
            tally.job_bytes += len as u64;
            saver.emitter.make_room()?;
        }
        after_read(saver, guest, spent)?;
        if len == 0 || guest.host.fatal.is_some() {
            return Ok((done, is_given));
        }
    }
}

/// Compresses or encrypts data, or sends it with addresses. Returns what [`send_in_place`] does.
fn send_transformed(
    saver: &mut Saver<'_>,
    guest: &mut Guest<'_, '_>,
    file: &PluginFile<'_>,
) -> Result<(IoDone, bool), Halt> {
    let options = &file.entry.options;
    let sparse = file.has_sparse_data();
    let offsets = file.has(SavePacket::OFFSETS);
    let cut = Cut::new(file.entry.file_type, &file.entry.stat, sparse, saver.job.record_len);
    let mut block = std::mem::take(&mut saver.buffers.block);
    let mut position = 0_u64;
    let end = loop {
        block.clear();
        let (done, spent) = read(guest, &mut block, cut.block_len)?;
        let len = length(done, cut.block_len);
        block.truncate(len);
        if len > 0 && !(cut.may_leave_out(position, len) && is_zero(&block)) {
            let address = if sparse { position } else { u64::from_be_bytes(done.offset.to_be_bytes()) };
            let compressor = options.compression.map(|kind| saver.compressors.ready(kind)).transpose()?;
            let mut transform = Transform {
                digests: &mut saver.digests,
                compressor,
                compressed: &mut saver.buffers.compressed,
                addresses: sparse || offsets,
                batched: false,
                encryptor: saver.encryption.as_mut().filter(|_| file.is_encrypted).map(Encryption::encryptor),
            };
            transform.send(&mut saver.emitter, address, &block)?;
        }
        position = position.saturating_add(len as u64);
        after_read(saver, guest, spent)?;
        if len == 0 || guest.host.fatal.is_some() {
            break done;
        }
    };
    saver.buffers.block = block;
    if end.status >= 0
        && let Some(encryption) = saver.encryption.as_mut().filter(|_| file.is_encrypted)
    {
        let rest = encryption.encryptor().finish()?;
        saver.emitter.payload(&[rest])?;
        saver.emitter.piece().tally.job_bytes += rest.len() as u64;
    }
    Ok((end, position > 0))
}

/// Reads the next block to the end of `room`.
fn read(guest: &mut Guest<'_, '_>, room: &mut Vec<u8>, most: usize) -> Result<(IoDone, Duration), Halt> {
    let begun = Instant::now();
    let done = guest.call(|instance, host| instance.read_to(host, room, most))?;
    Ok((done, begun.elapsed()))
}

/// The bytes that were read; none after an error.
fn length(done: IoDone, most: usize) -> usize {
    usize::try_from(done.status).unwrap_or_default().min(most)
}

/// Passes on the plugin's messages, and keeps the pace.
fn after_read(saver: &mut Saver<'_>, guest: &mut Guest<'_, '_>, spent: Duration) -> Result<(), Halt> {
    let job = saver.job;
    job.progress.stages().add(Stage::Read, spent);
    if !guest.pass_on(&mut saver.emitter)? && spent >= LONG_CALL {
        saver.emitter.publish()?;
    }
    saver.pace.step(&|| job.is_stopped());
    job.go_on()?;
    Ok(())
}
