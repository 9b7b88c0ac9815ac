//! All texts of this crate that an operator can see, word for word (reference 04 §16, 03 §8).
//!
//! The `file.c:123 ` at the beginning of some is part of the stock daemon's texts; scripts may
//! search for it.

use std::time::Duration;

use fd_bsock::FrameError;
use fd_compress::CompressError;
use fd_messages::{Stage, StageTimes, one_line};
use fd_os::{error_text, job_error_text};
use fd_plugins::{FileSetChange, package_of};
use fd_records::{DigestKind, MetadataKind};
use rustix::io::Errno;

use crate::plugins::names::NameFault;

/// A file can't be opened; its attributes are saved already.
pub(crate) fn cannot_open(path: &[u8], errno: Errno) -> Vec<u8> {
    one_line(&[b"     Cannot open \"", path, b"\": ERR=", error_text(errno.raw_os_error()).as_bytes(), b".\n"])
}

/// The same for a plugin's file, whose error may be one of the daemon's own.
pub(crate) fn plugin_cannot_open(path: &[u8], errno: i32) -> Vec<u8> {
    one_line(&[b"     Cannot open \"", path, b"\": ERR=", job_error_text(errno).as_bytes(), b".\n"])
}

/// A directory has taken a file's place since the walk.
pub(crate) fn became_directory(path: &[u8]) -> Vec<u8> {
    one_line(&[b"     \"", path, b"\" became a directory during the backup: its contents are not saved.\n"])
}

/// Reading failed in the middle of a file.
pub(crate) fn read_error(path: &[u8], errno: Errno) -> Vec<u8> {
    plugin_read_error(path, errno.raw_os_error())
}

/// The same for a plugin's file: its number may be any.
pub(crate) fn plugin_read_error(path: &[u8], errno: i32) -> Vec<u8> {
    one_line(&[b"Read error on file ", path, b". ERR=", error_text(errno).as_bytes(), b"\n"])
}

/// A plugin knows only at the end of its file that the data is not whole; ferrofd's own.
pub(crate) fn plugin_cannot_close(path: &[u8], errno: i32) -> Vec<u8> {
    let reason = error_text(errno);
    one_line(&[b"Plugin could not close ", path, b": ERR=", reason.as_bytes(), b". Its data may not be whole.\n"])
}

/// All files with data failed. The stock daemon's job ends with warnings.
pub(crate) fn nothing_read(files: u64) -> Vec<u8> {
    format!("No file could be read: of {files} with data, no data is saved.\n").into_bytes()
}

/// So much could not be examined in these directories that it is not known what is gone.
pub(crate) fn nothing_counts_as_deleted(directory: &[u8], others: usize) -> Vec<u8> {
    let others = match others {
        0 => String::new(),
        1 => " and another directory".to_owned(),
        _ => format!(" and {others} other directories"),
    };
    one_line(&[
        b"Not all files and directories could be examined, so no file of earlier jobs in \"",
        if directory.is_empty() { b"/" } else { directory },
        b"\"",
        others.as_bytes(),
        b" counts as deleted.\n",
    ])
}

/// A read error beyond the limit.
pub(crate) fn too_many_errors(errors: u32) -> Vec<u8> {
    format!("Too many errors. JobErrors={errors}.\n").into_bytes()
}

/// The attributes of a file can't be read again after its data.
pub(crate) fn cannot_stat(path: &[u8], errno: Errno) -> Vec<u8> {
    one_line(&[b"Cannot stat file ", path, b": ERR=", error_text(errno.raw_os_error()).as_bytes(), b"\n"])
}

/// The contents changed while the file was read.
pub(crate) fn mtime_changed(path: &[u8]) -> Vec<u8> {
    one_line(&[path, b" mtime changed during backup.\n"])
}

/// The inode changed while the file was read.
pub(crate) fn ctime_changed(path: &[u8]) -> Vec<u8> {
    one_line(&[path, b" ctime changed during backup.\n"])
}

/// The size changed while the file was read.
pub(crate) fn size_changed(path: &[u8], from: i64, to: i64) -> Vec<u8> {
    one_line(&[path, format!(" size of {from} changed during backup to {to}.\n").as_bytes()])
}

/// A file is saved as an empty one, which it may not be.
pub(crate) fn may_have_content(path: &[u8]) -> Vec<u8> {
    one_line(&[path, b" is saved without data: its file system says that it is empty, and can't know.\n"])
}

/// More files are saved like that than were named.
pub(crate) fn may_have_content_in_all(count: usize) -> Vec<u8> {
    format!("{count} files are saved without data: their file systems say that they are empty, and can't know.\n")
        .into_bytes()
}

/// The list has no digest of a file that is to be compared.
pub(crate) fn cannot_verify(path: &[u8]) -> Vec<u8> {
    one_line(&[b"Cannot verify checksum for ", path, b"\n"])
}

/// A file can't be opened to be compared.
pub(crate) fn cannot_open_to_verify(path: &[u8], errno: Errno) -> Vec<u8> {
    one_line(&[b"     Cannot open ", path, b": ERR=", error_text(errno.raw_os_error()).as_bytes(), b".\n"])
}

/// Reading failed while a file was compared.
pub(crate) fn cannot_read_to_verify(path: &[u8], errno: Errno) -> Vec<u8> {
    one_line(&[b"Error reading file ", path, b": ERR=", error_text(errno.raw_os_error()).as_bytes(), b"\n"])
}

/// The Director of a Verify job can't be reached.
pub(crate) fn director_lost(error: &str) -> Vec<u8> {
    one_line(&[b"Network error in send to Director: ERR=", error.as_bytes(), b"\n"])
}

/// A file is unchanged since the catalog's record.
pub(crate) fn unchanged(path: &[u8]) -> Vec<u8> {
    one_line(&[b"     Unchanged file skipped: ", path, b"\n"])
}

/// What base jobs save: `bytes` of files that need not be sent.
pub(crate) fn space_saved(bytes: u64) -> Vec<u8> {
    format!("Space saved with Base jobs: {} MB\n", bytes / (1024 * 1024)).into_bytes()
}

/// A thread can't be started, or ended by a defect.
pub(crate) fn internal(error: &str) -> Vec<u8> {
    format!("Backup failed: {error}\n").into_bytes()
}

/// A digest can't be computed; the file is saved without it.
pub(crate) fn digest_failed(kind: DigestKind) -> Vec<u8> {
    format!("{} digest initialization failed\n", kind.stream()).into_bytes()
}

/// A plugin command in the FileSet of a Verify job that reads the disk.
pub(crate) fn no_plugins_on_disk(command: &[u8]) -> Vec<u8> {
    one_line(&[b"Plugin: \"", command, b"\" not found.\n"])
}

/// Where a plugin is named. The stock daemon's message has another line number for each place
/// (reference 07 §5.2).
#[derive(Clone, Copy)]
pub(crate) enum PluginPlace {
    /// A plugin command of the FileSet, in a backup.
    Command,
    /// A plugin command of the FileSet, in an estimate.
    Estimate,
    /// The plugin of an Options block.
    Options,
}

/// A named plugin is not loaded.
pub(crate) fn plugin_not_loaded(place: PluginPlace, command: &[u8]) -> Vec<u8> {
    let line: &[u8] = match place {
        PluginPlace::Command => b"664",
        PluginPlace::Estimate => b"837",
        PluginPlace::Options => b"584",
    };
    let package = package_of(command).as_bytes();
    [b"fd_plugins.c:", line, b" Command plugin \"", command, b"\" requested, but is not loaded.", package, b"\n"]
        .concat()
}

/// There are plugins, but not the named one.
pub(crate) fn plugin_not_found(place: PluginPlace, command: &[u8]) -> Vec<u8> {
    let (line, kind): (&[u8], &[u8]) = match place {
        PluginPlace::Command => (b"802", b"Command"),
        PluginPlace::Estimate => (b"952", b"Command"),
        PluginPlace::Options => (b"630", b"Options"),
    };
    let package = package_of(command).as_bytes();
    one_line(&[b"fd_plugins.c:", line, b" ", kind, b" plugin \"", command, b"\" not found.", package, b"\n"])
}

/// A plugin command has a space before any colon.
pub(crate) fn malformed_command(command: &[u8]) -> Vec<u8> {
    one_line(&[b"fd_plugins.c:464 Malformed plugin command: ", command, b"\n"])
}

/// A plugin wants no part in the job, and a command of the FileSet is for it; ferrofd's own.
pub(crate) fn plugin_takes_no_part(command: &[u8]) -> Vec<u8> {
    one_line(&[b"Plugin command \"", command, b"\" saves nothing: its plugin takes no part in this job.\n"])
}

/// A plugin has refused a command or its next file without a word; ferrofd's own.
pub(crate) fn plugin_ended_early(command: &[u8]) -> Vec<u8> {
    one_line(&[b"Plugin command \"", command, b"\" has ended early: its plugin has failed, and does not say why.\n"])
}

/// In an accurate job: what such a command would have saved may be there; ferrofd's own.
pub(crate) fn nothing_of_plugin_is_gone(command: &[u8]) -> Vec<u8> {
    let rest: &[u8] = b"\" was not run to its end, so no file of earlier jobs counts as deleted.\n";
    one_line(&[b"Plugin command \"", command, rest])
}

/// A plugin has failed earlier in the job; ferrofd's own.
pub(crate) fn plugin_failed_before(command: &[u8]) -> Vec<u8> {
    one_line(&[b"Command plugin \"", command, b"\" can't be run: the plugin has failed before.\n"])
}

/// A plugin has put no type into its packet.
pub(crate) fn no_type(place: PluginPlace, command: &[u8]) -> Vec<u8> {
    let line: &[u8] = if matches!(place, PluginPlace::Estimate) { b"891" } else { b"724" };
    one_line(&[b"fd_plugins.c:", line, b" Command plugin \"", command, b"\": no type in startBackupFile packet.\n"])
}

/// A plugin's change of the FileSet that comes too early or too late; ferrofd's own.
#[must_use]
pub fn change_refused(plugin: &[u8], change: &FileSetChange<'_>) -> Vec<u8> {
    let why = ": it is not possible at this time, or no Include was begun for it.\n";
    let (function, item) = (change.how.function(), change.item.escape_ascii());
    one_line(&[b"Plugin ", plugin, format!(" could not change the FileSet with {function}({item}){why}").as_bytes()])
}

/// A plugin says more than can be kept; ferrofd's own.
pub(crate) const MESSAGES_LEFT_OUT: &str = "The plugin says more than is kept within one call; the rest is left out.\n";

/// A plugin has put no name of its object into its packet.
pub(crate) fn no_object_name(command: &[u8]) -> Vec<u8> {
    let rest: &[u8] = b"\": no object_name in startBackupFile packet.\n";
    one_line(&[b"fd_plugins.c:737 Command plugin \"", command, rest])
}

/// A plugin's object is empty, and not saved; ferrofd's own.
pub(crate) fn empty_object(command: &[u8], name: &[u8]) -> Vec<u8> {
    one_line(&[b"Command plugin \"", command, b"\": object \"", name, b"\" is empty and is not saved.\n"])
}

/// A plugin has put no name of its file into its packet.
pub(crate) fn no_name(place: PluginPlace, command: &[u8]) -> Vec<u8> {
    let line: &[u8] = if matches!(place, PluginPlace::Estimate) { b"898" } else { b"763" };
    one_line(&[b"fd_plugins.c:", line, b" Command plugin \"", command, b"\": no fname in startBackupFile packet.\n"])
}

/// A plugin asks whether a file without a name has changed.
pub(crate) const PLUGIN_NO_NAME_TO_CHECK: &str =
    "fd_plugins.c:2559 Command plugin: no fname in baculaCheckChanges packet.\n";

/// What a plugin could not do with a file.
pub(crate) const NO_ACCESS: &str = "Could not access";

/// A plugin calls a file an archive.
pub(crate) fn archive_not_saved(path: &[u8]) -> Vec<u8> {
    one_line(&[b"     Archive file not saved: ", path, b"\n"])
}

/// A plugin says that the drive's type is not allowed.
pub(crate) fn disallowed_drive_type(path: &[u8]) -> Vec<u8> {
    one_line(&[b"     Disallowed drive type. Will not descend into ", path, b"\n"])
}

/// A plugin's file has a type that no file may have.
pub(crate) fn unknown_type(code: i32, path: &[u8]) -> Vec<u8> {
    one_line(&[b"     Unknown file type ", code.to_string().as_bytes(), b"; not saved: ", path, b"\n"])
}

/// Bytes of a refused name that a message shows.
const LONGEST_NAME_SHOWN: usize = 300;

/// A plugin's file has a name that a restore would put elsewhere; ferrofd's own.
pub(crate) fn name_refused(command: &[u8], name: &[u8], fault: NameFault) -> Vec<u8> {
    let why = match fault {
        NameFault::Relative => "is not absolute",
        NameFault::Nul => "has a NUL byte",
        NameFault::Dots => "has a part that is . or ..",
        NameFault::EmptyPart => "has an empty part",
        NameFault::LongPart => "has a part of more than 255 bytes",
        NameFault::LongName => "has more than 4,095 bytes",
        NameFault::LongTarget => "is that of a link to more than 4,095 bytes",
    };
    // It may have a megabyte.
    let name = name.get(..name.len().min(LONGEST_NAME_SHOWN)).unwrap_or_default().escape_ascii();
    one_line(&[b"Command plugin \"", command, format!("\": not saved, because its name {why}: {name}\n").as_bytes()])
}

/// A packet of metadata is too long: `len` bytes.
pub(crate) fn metadata_too_long(len: usize) -> Vec<u8> {
    format!("backup.c:261 Metadata size ({len}) is bigger then currently supported one (3MB)\n").into_bytes()
}

/// A packet of metadata has an unknown type.
pub(crate) fn metadata_type(kind: i32) -> Vec<u8> {
    format!("backup.c:291 Invalid metadata type: {kind}\n").into_bytes()
}

/// The metadata of a plugin's file can't be saved.
pub(crate) fn metadata_failed(plugin: &[u8], path: &[u8]) -> Vec<u8> {
    let head: &[u8] = b"fd_plugins.c:1315 Failed to backup metadata for plugin: \"";
    one_line(&[head, plugin, b"\" fname: ", path, b"\n"])
}

/// A plugin can't give the ACLs or the extended attributes of a file.
pub(crate) fn no_xacl(kind: MetadataKind) -> Vec<u8> {
    format!("No OS {} configured.\n", kind.name().to_uppercase()).into_bytes()
}

/// A plugin's data has addresses, and the job encrypts.
pub(crate) const ENCRYPTED_OFFSETS: &str = "crypto.c:39 Encrypting sparse or offset data not supported.\n";

/// The connection to the Storage Daemon is lost. The line number is that of the most frequent
/// place, a data block: frames are sent many at a time, so the failed one is unknown.
pub(crate) fn network_send_error(error: &str) -> Vec<u8> {
    format!("backup.c:1056 Network send error to SD. ERR={error}\n").into_bytes()
}

/// A block can't be compressed.
pub(crate) fn compression_failed(error: CompressError) -> Vec<u8> {
    match error {
        CompressError::Deflate { code } => format!("Compression deflate error: {code}\n"),
        CompressError::Lzo(error) => format!("Compression LZO error: {}\n", error.code()),
        CompressError::Zstd { code } => format!("Compression ZSTD error: {code}\n"),
        CompressError::ZstdContext => "Compression ZSTD error. Unable to allocate the ZSTD context\n".to_owned(),
        other => format!("Compression error: {other}\n"),
    }
    .into_bytes()
}

/// More files than a FileIndex can count.
pub(crate) fn too_many_files() -> Vec<u8> {
    format!("Too many files in one job: FileIndex can't exceed {}.\n", i32::MAX).into_bytes()
}

/// A record is longer than a Storage Daemon accepts.
pub(crate) fn record_refused(path: &[u8], error: &FrameError) -> Vec<u8> {
    one_line(&[b"Record of \"", path, b"\" can't be sent: ", error.to_string().as_bytes(), b"\n"])
}

/// Step of OpenSSL's that failed: a cipher can't be set up.
pub(crate) const CIPHER_CONTEXT: &str = "OpenSSL cipher context initialization failed";
/// Step of OpenSSL's that failed: data can't be encrypted.
pub(crate) const CIPHER_UPDATE: &str = "OpenSSL cipher update failed";
/// Step of OpenSSL's that failed: nothing can be signed.
pub(crate) const SIGNATURE_CREATION: &str = "Signature creation failed";
/// The cipher can't be set up.
pub(crate) const NO_ENCRYPTION_CONTEXT: &str = "crypto.c:46 Failed to initialize encryption context.\n";
/// Data can't be encrypted.
pub(crate) const ENCRYPTION_ERROR: &str = "Encryption error\n";
/// The digest can't be signed.
pub(crate) const ADDING_SIGNER_ERROR: &str = "An error occurred while adding signer the stream.\n";
/// The key can't sign.
pub(crate) const SIGNING_ERROR: &str = "An error occurred while signing the stream.\n";

/// An error in OpenSSL's queue.
pub(crate) fn openssl(what: &str, error: &str) -> Vec<u8> {
    format!("openssl.c:108 {what}: ERR={error}\n").into_bytes()
}

/// No content key can be made for the recipients. The second line is ferrofd's own.
pub(crate) fn no_session(error: &str) -> Vec<u8> {
    format!("An error occurred while encrypting the stream.\n{error}\n").into_bytes()
}

/// The digest to be signed can't be computed.
pub(crate) fn no_signature(error: &fd_crypto::DigestError) -> Vec<u8> {
    format!("Failed to allocate memory for crypto signature.\n{error}\n").into_bytes()
}

/// Threads of a job that is over still wait for storage.
pub(crate) fn left_behind(threads: usize) -> Vec<u8> {
    format!("A file system of the host does not answer: {threads} of the job's threads still wait for it.\n")
        .into_bytes()
}

/// The time that each stage took, in seconds, what an inode scan has spared, and what was given
/// away to others. `age` is that of the job.
pub(crate) fn stage_times(times: &StageTimes, workers: usize, not_looked_up: u64, age: Duration) -> Vec<u8> {
    let seconds = |stage| times.get(stage).as_secs_f64();
    let (walk, walk_waits) = (seconds(Stage::Walk), seconds(Stage::WalkWaits));
    let (work, read) = (seconds(Stage::Work), seconds(Stage::Read));
    let (for_entries, for_sender) = (seconds(Stage::WorkWaitsForEntries), seconds(Stage::WorkWaitsForSender));
    let (send, send_waits) = (seconds(Stage::Send), seconds(Stage::SendWaits));
    let encode = (work - read - for_entries - for_sender).max(0.0);
    let slowest = if send >= send_waits {
        "the Storage Daemon or the network to it"
    } else if walk - walk_waits > walk_waits && for_entries > for_sender && for_entries > read + encode {
        "looking at the tree"
    } else if read > encode {
        "reading files"
    } else {
        "digests, compression and encryption"
    };
    let spared = if not_looked_up == 0 {
        String::new()
    } else {
        format!(" ({not_looked_up} entries not looked up after an inode scan)")
    };
    let gave_way = times.gave_way_to().map_or_else(String::new, |(gave_way, to)| {
        format!("; gave way {:.0} s of {:.0} s: {to} pressure", gave_way.as_secs_f64(), age.as_secs_f64())
    });
    format!(
        "Where the time went, in seconds: walk {:.3} and waiting {walk_waits:.3}{spared}; {workers} workers: reading {read:.3}, \
         digests, compression and encryption {encode:.3}, waiting for entries {for_entries:.3}, for the sender \
         {for_sender:.3}; sending {send:.3} and waiting {send_waits:.3}{gave_way}. Slowest: {slowest}.\n",
        (walk - walk_waits).max(0.0)
    )
    .into_bytes()
}
