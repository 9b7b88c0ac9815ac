//! Every text of this crate that an operator can see (reference 05 §16).
//!
//! Most stand word for word as the stock daemon writes them, with the `file.c:123 ` that some have
//! in front, since operators' scripts may look for it. Those that the stock daemon lacks are at the
//! end. All end with a line end.

use fd_compress::DecompressError;
use fd_crypto::pki::{DataError, SessionError};
use fd_messages::shown;
use fd_os::{error_text, job_error_text};
use fd_plugins::package_of;
use fd_records::{DigestKind, DigestValue, FileType, MetadataKind, PluginMetadataError, Stat, Stream, digest_text};
use nix::errno::Errno;

use crate::stream::SequenceError;
use crate::stream::SourceError;
use crate::tree::{LinkRefusal, PathError};

/// Puts a text together.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = shown(&parts.concat()).into_owned();
    text.push(b'\n');
    text
}

/// `<before><path>: ERR=<error>`
fn with_error(before: &str, path: &[u8], errno: Errno) -> Vec<u8> {
    join(&[before.as_bytes(), path, b": ERR=", error_text(errno as i32).as_bytes()])
}

/// Where the stock daemon's messages about the sequence of records come from: header, data, length.
pub(crate) struct SequenceLines([&'static str; 3]);

/// Those of a restore.
pub(crate) const RESTORE_LINES: SequenceLines = SequenceLines(["restore.c:480", "restore.c:491", "restore.c:498"]);
/// Those of a verify.
pub(crate) const VERIFY_LINES: SequenceLines =
    SequenceLines(["verify_vol.c:378", "verify_vol.c:390", "verify_vol.c:397"]);

pub(crate) fn sequence(error: &SequenceError, lines: &SequenceLines) -> Vec<u8> {
    let SequenceLines([of_header, of_data, of_size]) = lines;
    match error {
        SequenceError::Header(header) => join(&[of_header.as_bytes(), b" Record header scan error: ", header]),
        SequenceError::NoData(error) => {
            let reason = error.as_ref().map_or_else(|| error_text(Errno::ENODATA as i32), ToString::to_string);
            join(&[of_data.as_bytes(), b" Data record error. ERR=", reason.as_bytes()])
        }
        SequenceError::Size { actual, announced } => {
            format!("{of_size} Actual data size {actual} not same as header {announced}\n").into_bytes()
        }
        // It has been reported.
        SequenceError::Plugin => Vec::new(),
    }
}

pub(crate) fn attributes(record: &[u8]) -> Vec<u8> {
    let readable = record.split(|byte| *byte == 0).next().unwrap_or_default();
    join(&[b"Error scanning attributes: ", readable])
}

pub(crate) fn unsupported_data(stream: Stream) -> Vec<u8> {
    format!("{stream} stream not supported on this Client.\n").into_bytes()
}

pub(crate) fn unexpected_stream(stream: Stream) -> Vec<u8> {
    format!("Unexpected stream=\"{stream}\" ignored. This shouldn't happen!\n").into_bytes()
}

pub(crate) fn plugin_not_found(command: &[u8]) -> Vec<u8> {
    join(&[b"fd_plugins.c:1118 Plugin=", command, b" not found.", package_of(command).as_bytes()])
}

pub(crate) fn malformed_command(command: &[u8]) -> Vec<u8> {
    join(&[b"fd_plugins.c:464 Malformed plugin command: ", command])
}

pub(crate) fn second_start(file: &[u8], command: &[u8]) -> Vec<u8> {
    join(&[b"fd_plugins.c:1106 Second call to startRestoreFile. plugin=", file, b" cmd=", command])
}

pub(crate) fn unbalanced_create() -> Vec<u8> {
    b"fd_plugins.c:1193 Unbalanced call to createFile=1 1\n".to_vec()
}

pub(crate) fn create_failed(status: i32, path: &[u8]) -> Vec<u8> {
    let before = format!("fd_plugins.c:1200 Plugin createFile call failed. Stat={status} file=");
    join(&[before.as_bytes(), path])
}

pub(crate) fn create_refused(path: &[u8]) -> Vec<u8> {
    join(&[b"fd_plugins.c:1205 Plugin createFile call failed. Returned CF_ERROR file=", path])
}

pub(crate) fn plugin_open_failed(path: &[u8], errno: i32) -> Vec<u8> {
    join(&[b"fd_plugins.c:1235 Could not create ", path, b": ERR=", job_error_text(errno).as_bytes()])
}

pub(crate) fn metadata_failed(status: i32) -> Vec<u8> {
    format!("Plugin metadataRestore call failed, err: {status}\n").into_bytes()
}

/// Why a file is skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Skip {
    NotNewer,
    NotOlder,
    Exists,
    NothingToPatch,
}

pub(crate) fn skipped(why: Skip, path: &[u8]) -> Vec<u8> {
    let reason: &[u8] = match why {
        Skip::NotNewer => b"Not newer: ",
        Skip::NotOlder => b"Not older: ",
        Skip::Exists => b"Already exists: ",
        Skip::NothingToPatch => b"File must exists to apply a patch: ",
    };
    join(&[b"File skipped. ", reason, path])
}

pub(crate) fn not_replaced(path: &[u8], errno: Errno) -> Vec<u8> {
    join(&[
        b"File ",
        path,
        b" already exists and could not be replaced. ERR=",
        error_text(errno as i32).as_bytes(),
        b".",
    ])
}

pub(crate) fn could_not_create(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:254 Could not create ", path, errno)
}

pub(crate) fn cannot_make_fifo(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:269 Cannot make fifo ", path, errno)
}

pub(crate) fn cannot_make_node(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:287 Cannot make node ", path, errno)
}

pub(crate) fn could_not_open(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:317 Could not open ", path, errno)
}

pub(crate) fn could_not_symlink(path: &[u8], target: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:333 Could not symlink ", &[path, b" -> ", target].concat(), errno)
}

pub(crate) fn could_not_link(path: &[u8], target: &[u8], errno: Errno) -> Vec<u8> {
    with_error("create_file.c:360 Could not hard link ", &[path, b" -> ", target].concat(), errno)
}

pub(crate) fn was_deleted(name: &[u8]) -> Vec<u8> {
    let number = FileType::Deleted.code().to_string();
    join(&[b"create_file.c:436 Original file ", name, b" have been deleted: type=", number.as_bytes()])
}

pub(crate) fn was_not_saved(name: &[u8], type_code: u16) -> Vec<u8> {
    join(&[b"create_file.c:448 Original file ", name, b" not saved: type=", type_code.to_string().as_bytes()])
}

pub(crate) fn unknown_type(name: &[u8], type_code: u16) -> Vec<u8> {
    let number = type_code.to_string();
    join(&[b"create_file.c:451 Unknown file type ", number.as_bytes(), b"; not restored: ", name])
}

pub(crate) fn no_file_name(name: &[u8]) -> Vec<u8> {
    join(&[b"create_file.c:496 Zero length filename: ", name])
}

pub(crate) fn cannot_create_directory(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("mkpath.c:140 Cannot create directory ", path, errno)
}

/// Something on the way to a new directory is none.
pub(crate) fn component_not_directory(path: &[u8]) -> Vec<u8> {
    join(&[b"mkpath.c:144 ", path, b" exists but is not a directory."])
}

/// What is to be a directory exists as something else.
pub(crate) fn path_not_directory(path: &[u8]) -> Vec<u8> {
    join(&[b"mkpath.c:198 ", path, b" exists but is not a directory."])
}

pub(crate) fn seek_failed(address: u64, path: &[u8], errno: Errno) -> Vec<u8> {
    with_error(&format!("restore.c:1304 Seek to {address} error on "), path, errno)
}

pub(crate) fn decompression(error: &DecompressError, path: &[u8]) -> Vec<u8> {
    let about_file = |what: &str, detail: &str| join(&[what.as_bytes(), path, detail.as_bytes()]);
    match error {
        DecompressError::ZlibData => about_file("Uncompression error on file ", ". ERR=Zlib data error"),
        DecompressError::HeaderVersion { got, want } => {
            format!("Compressed header version error. Got=0x{got:x} want=0x{want:x}\n").into_bytes()
        }
        DecompressError::HeaderSize { comp_len, msg_len } => {
            format!("Compressed header size error. comp_len={comp_len}, msglen={msg_len}\n").into_bytes()
        }
        // The stock daemon reads past the record here.
        DecompressError::ShortHeader { len } => {
            format!("Compressed header size error. comp_len=0, msglen={len}\n").into_bytes()
        }
        DecompressError::Algorithm { magic } => {
            format!("Compression algorithm 0x{magic:x} found, but not supported!\n").into_bytes()
        }
        DecompressError::Lzo(error) => {
            about_file("LZO uncompression error on file ", &format!(". ERR={}", error.code()))
        }
        DecompressError::ZstdContentSize { code } => {
            about_file("ZSTD uncompression error on file ", &format!(". Invalid content size. ERR={code}"))
        }
        DecompressError::ZstdDecompress { code } => {
            about_file("ZSTD uncompression error on file ", &format!(". Decompress error. ERR={code}"))
        }
        // The stock daemon goes on until it has no memory.
        DecompressError::TooLarge { .. } | DecompressError::ZstdContext => {
            about_file("Uncompression error on file ", &format!(". ERR={error}"))
        }
    }
}

/// A write that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FailedWrite {
    /// Bytes written to the file so far.
    pub(crate) written: u64,
    /// Number of this write, from 1.
    pub(crate) block: u64,
    /// Bytes that were to be written.
    pub(crate) length: usize,
    /// Why.
    pub(crate) errno: Errno,
}

pub(crate) fn write_failed(failed: &FailedWrite, path: &[u8]) -> Vec<u8> {
    let FailedWrite { written, block, length, errno } = failed;
    let before = format!("restore.c:1524 Write error at byte={written} block={block} write_len={length} lerror=0 on ");
    with_error(&before, path, *errno)
}

/// A plugin has taken a part of a block.
pub(crate) fn wrong_write_size(wanted: usize, wrote: usize) -> Vec<u8> {
    format!("restore.c:1520 Wrong write size error at byte=0 block=0 wanted={wanted} wrote={wrote}\n").into_bytes()
}

pub(crate) fn windows_write_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    let before: &[u8] = b"restore.c:1495 Write error in Win32 Block Decomposition on ";
    join(&[before, path, b": ", error_text(errno as i32).as_bytes()])
}

pub(crate) fn wrong_size(path: &[u8], recorded: i64, restored: i64) -> Vec<u8> {
    let sizes = format!(" not correct. Original {recorded}, restored {restored}.");
    join(&[b"attribs.c:603 File size of restored file ", path, sizes.as_bytes()])
}

/// Where the stock daemon's messages about attributes come from: owner, modes, times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeLines([&'static str; 3]);

/// Those of an open file.
pub(crate) const OPEN_LINES: AttributeLines = AttributeLines(["attribs.c:119", "attribs.c:130", "attribs.c:137"]);
/// Those of what is known by its name.
pub(crate) const NAME_LINES: AttributeLines = AttributeLines(["attribs.c:144", "attribs.c:150", "attribs.c:160"]);
/// Those of a symbolic link.
pub(crate) const LINK_LINES: AttributeLines = AttributeLines(["attribs.c:627", "attribs.c:150", "attribs.c:651"]);

pub(crate) fn owner_not_set(AttributeLines([line, ..]): AttributeLines, path: &[u8], errno: Errno) -> Vec<u8> {
    with_error(&format!("{line} Unable to set file owner "), path, errno)
}

pub(crate) fn modes_not_set(AttributeLines([_, line, _]): AttributeLines, path: &[u8], errno: Errno) -> Vec<u8> {
    with_error(&format!("{line} Unable to set file modes "), path, errno)
}

pub(crate) fn times_not_set(AttributeLines([.., line]): AttributeLines, path: &[u8], errno: Errno) -> Vec<u8> {
    with_error(&format!("{line} Unable to set file times "), path, errno)
}

/// A program keeps none for another owner than its own.
pub(crate) fn set_id_left_out(path: &[u8]) -> Vec<u8> {
    join(&[b"Set-id bits of ", path, b" not restored: its owner or group is not the one that was saved."])
}

/// An update of attributes whose name means an object that it can't be for.
pub(crate) fn update_refused(path: &[u8]) -> Vec<u8> {
    join(&[b"Attributes of ", path, b" not updated: ", IS_ANOTHER])
}

/// A directory that was there is not given away: the record may be for another one.
pub(crate) fn directory_refused(path: &[u8], there: (u32, u32), record: (u32, u32)) -> Vec<u8> {
    let [there, record] = [there, record].map(|(uid, gid)| format!("{uid}:{gid}"));
    let why = format!(
        "belongs to {there} and not to {record}, and another user may have put it there. If it is the right \
         one, chown it and restore it again."
    );
    join(&[b"Attributes of ", path, b" not restored: it ", why.as_bytes()])
}

/// The same of a patch.
pub(crate) fn patch_refused(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" not patched: ", IS_ANOTHER])
}

/// A file that exists is not replaced by one that can't be decrypted.
pub(crate) fn kept_without_keys(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" is kept as it is. ", NO_KEYS])
}

/// A file that exists is not replaced by one without its data.
pub(crate) fn kept_without_data(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" is kept as it is. There is no data to replace it with."])
}

pub(crate) fn no_private_keys() -> Vec<u8> {
    join(&[NO_KEYS])
}

const IS_ANOTHER: &[u8] = b"another object has its name now. Restore it together with the job that has its data.";
const NO_KEYS: &[u8] = b"No private decryption keys have been defined to decrypt encrypted backup data.";

pub(crate) fn second_session() -> Vec<u8> {
    b"restore.c:656 Unexpected cryptographic session data stream.\n".to_vec()
}

pub(crate) fn session_refused(error: &SessionError) -> Vec<u8> {
    match error {
        SessionError::NoPrivateKey => b"Missing private key required to decrypt encrypted backup data.\n".as_slice(),
        SessionError::Key(_) => b"Decrypt of the session key failed.\n",
        SessionError::Cipher => b"Unsupported encryption algorithm. Decrypt failed.\n",
        SessionError::Malformed(_) => {
            b"restore.c:705 An error=7 occurred while decoding encrypted session data stream: ERR=Internal error\n"
        }
    }
    .to_vec()
}

/// An error in OpenSSL's queue.
pub(crate) fn openssl(error: &str) -> Vec<u8> {
    format!("openssl.c:108 {error}\n").into_bytes()
}

pub(crate) fn session_decoding(error: &str) -> Vec<u8> {
    openssl(&format!("CryptoData decoding failed: ERR={error}"))
}

pub(crate) fn key_decryption(error: &str) -> Vec<u8> {
    openssl(&format!("Failure decrypting the session key: ERR={error}"))
}

pub(crate) fn cipher_context(error: &str) -> Vec<u8> {
    openssl(&format!("OpenSSL cipher context initialization failed: ERR={error}"))
}

pub(crate) fn no_decryption_context(path: &[u8]) -> Vec<u8> {
    join(&[b"restore.c:793 Failed to initialize decryption context for ", path])
}

/// The stock daemon ends the job here, without the file's name.
pub(crate) fn decryption_error(path: &[u8], error: &DataError) -> Vec<u8> {
    join(&[b"Decryption error on file ", path, b": ", error.to_string().as_bytes()])
}

pub(crate) fn decryption_end(path: &[u8], waiting: usize, decrypted: usize) -> Vec<u8> {
    let lengths = format!("restore.c:1733 Decryption error. buf_len={waiting} decrypt_len={decrypted} on file ");
    join(&[lengths.as_bytes(), path])
}

pub(crate) fn second_signature() -> Vec<u8> {
    b"restore.c:1025 Unexpected cryptographic signature data stream.\n".to_vec()
}

pub(crate) fn signature_unreadable(path: &[u8]) -> Vec<u8> {
    join(&[b"restore.c:1031 Failed to decode message signature for ", path])
}

pub(crate) fn signature_missing(path: &[u8]) -> Vec<u8> {
    join(&[b"restore.c:1858 Missing cryptographic signature for ", path])
}

pub(crate) fn signature_differs(error: &str) -> Vec<u8> {
    openssl(&format!("OpenSSL digest Verify final failed: ERR={error}"))
}

pub(crate) fn signature_invalid(path: &[u8], error: &str) -> Vec<u8> {
    join(&[b"restore.c:1888 Signature validation failed for file ", path, b": ERR=", error.as_bytes()])
}

/// The stock daemon has no such message.
pub(crate) fn unknown_signer(path: &[u8]) -> Vec<u8> {
    join(&[
        b"The signature of ",
        path,
        b" was made with a key that no PKI Keypair or PKI Signer names; such signatures are not checked",
    ])
}

/// The same of all files of a job.
pub(crate) fn unknown_signers(count: u64) -> Vec<u8> {
    let text = "files so far were made with keys that no PKI Keypair or PKI Signer names, and were not checked";
    join(&[format!("The signatures of {count} {text}").as_bytes()])
}

/// The stock daemon has no such case.
pub(crate) fn signature_unchecked(path: &[u8]) -> Vec<u8> {
    join(&[b"The signature of ", path, b" was not checked: no digest of its kind could be made"])
}

pub(crate) fn no_session_data(path: &[u8]) -> Vec<u8> {
    join(&[b"restore.c:785 Missing encryption session data stream for ", path])
}

pub(crate) fn ignored_data_streams(count: u64) -> Vec<u8> {
    format!("{count} non-supported data streams and 0 non-supported attrib streams ignored.\n").into_bytes()
}

pub(crate) fn ignored_streams(count: u64, what: &str) -> Vec<u8> {
    format!("{count} non-supported {what} streams ignored.\n").into_bytes()
}

/// The line about each file of a verify, in the stock daemon's spelling.
pub(crate) fn verifying(name: &[u8]) -> Vec<u8> {
    join(&[b"Veryfying: ", name])
}

pub(crate) fn no_signature() -> Vec<u8> {
    b"Checksum verification required in Verify FileSet option, but no Signature found in the FileSet\n".to_vec()
}

pub(crate) fn director_lost(error: &str) -> Vec<u8> {
    join(&[b"Network error in send to Director: ERR=", error.as_bytes()])
}

pub(crate) fn events_not_sent(error: &str) -> Vec<u8> {
    format!("verify_vol.c:284 Network send error to DIR. ERR={error}\n").into_bytes()
}

pub(crate) fn encrypted_not_verified() -> Vec<u8> {
    b"Verification of encrypted file data is not supported.\n".to_vec()
}

pub(crate) fn size_differs(name: &[u8], counted: u64, recorded: i64) -> Vec<u8> {
    let sizes = format!("\". Vol: {counted} File: {recorded}");
    join(&[b"   st_size  differs on \"", name, sizes.as_bytes()])
}

/// Computed and stored are base 64.
pub(crate) fn data_differs(stream: Stream, name: &[u8], computed: &[u8], stored: &[u8]) -> Vec<u8> {
    let what = format!("   {stream} differs on \"");
    join(&[what.as_bytes(), name, b"\". File=", computed, b" Vol=", stored])
}

pub(crate) fn not_in_catalog(name: &[u8]) -> Vec<u8> {
    join(&[b"Not in the Catalog: ", name])
}

pub(crate) fn catalog_size_differs(name: &[u8]) -> Vec<u8> {
    join(&[b"Cat st_size differs: ", name])
}

pub(crate) fn catalog_digest_differs(name: &[u8]) -> Vec<u8> {
    join(&[b"Cat checksum differs: ", name])
}

pub(crate) fn only_in_catalog() -> Vec<u8> {
    b"The following files were in the Catalog, but not in the Job data:\n".to_vec()
}

pub(crate) fn listed(name: &[u8]) -> Vec<u8> {
    join(&[b"    ", name])
}

// Messages that the stock daemon lacks.

/// The connection to the Storage Daemon ended before the data: how much is missing is unknown.
pub(crate) fn connection_lost(error: &SourceError) -> Vec<u8> {
    join(&[b"The records ended before the end of the data. ERR=", error.0.as_bytes()])
}

/// Whether something stands under the name is not known, so nothing is made there.
pub(crate) fn not_examined(path: &[u8], errno: Errno) -> Vec<u8> {
    join(&[b"Could not examine ", path, b", which is not restored. ERR=", error_text(errno as i32).as_bytes(), b"."])
}

/// The name or the link's target can't be used.
pub(crate) fn name_refused(name: &[u8], why: PathError) -> Vec<u8> {
    join(&[b"File ", name, b" not restored: ", why.to_string().as_bytes(), b"."])
}

/// The name has no directory in it; the stock daemon has no such message.
pub(crate) fn no_directory(name: &[u8]) -> Vec<u8> {
    join(&[b"File ", name, b" not restored: the name has no directory."])
}

/// A symbolic link on the path must not be followed.
pub(crate) fn link_refused(path: &[u8], link: &[u8], why: LinkRefusal) -> Vec<u8> {
    let reason = match why {
        LinkRefusal::NewerThanJob => "it is newer than this job".to_owned(),
        LinkRefusal::OfTheFuture => {
            "its time of change is in the future: the clock of this host or of its file server is wrong".to_owned()
        }
        LinkRefusal::Foreign(owner) => format!("it belongs to user {owner}, and its target to another user"),
        LinkRefusal::Moved => "another user than the owner of its target may have moved it here".to_owned(),
        LinkRefusal::LeadsOut => "it leads out of the restore directory".to_owned(),
    };
    join(&[b"File ", path, b" not restored: will not follow the symbolic link ", link, b": ", reason.as_bytes(), b"."])
}

/// Why data is not written to a special file. Modes include the type of the object.
pub(crate) enum NoData {
    /// The mode in the record is not that of a special file.
    NotSpecial(u32),
    /// The existing object is of another type than the record.
    OtherType { there: u32, record: u32 },
    /// The restore goes to another directory.
    BelowWhere,
    /// It was made after this job began.
    New,
    /// The record itself has made it.
    JustMade,
    /// Its owner is not that of the record.
    OfAnother,
}

pub(crate) fn no_data(path: &[u8], why: &NoData) -> Vec<u8> {
    let reason = match why {
        NoData::NotSpecial(mode) => {
            format!("the record is of a special file, but its mode is that of {}", type_name(*mode))
        }
        NoData::OtherType { there, record } => {
            format!("it is {}, the data is that of {}", type_name(*there), type_name(*record))
        }
        NoData::BelowWhere => "data is written to special files only at their original path, without where".to_owned(),
        NoData::New => "it is newer than this job, and data is written to special files that are older only".to_owned(),
        NoData::OfAnother => "its owner and group are not those of the record, and a user who can change its name may \
                              have put it there"
            .to_owned(),
        NoData::JustMade => "it did not exist before this job, which made it without its data".to_owned(),
    };
    join(&[b"Data of ", path, b" not restored: ", reason.as_bytes(), b"."])
}

const fn type_name(mode: u32) -> &'static str {
    match mode & Stat::MODE_TYPE {
        Stat::MODE_FIFO => "a FIFO",
        Stat::MODE_CHARACTER => "a character device",
        Stat::MODE_BLOCK => "a block device",
        Stat::MODE_REGULAR => "a regular file",
        Stat::MODE_DIRECTORY => "a directory",
        Stat::MODE_SYMLINK => "a symbolic link",
        Stat::MODE_SOCKET => "a socket",
        _ => "a file of unknown type",
    }
}

/// A hard link would be to a file that is not restored.
pub(crate) fn link_leads_out(path: &[u8], first: &[u8]) -> Vec<u8> {
    join(&[
        b"File ",
        path,
        b" not restored: regexwhere gives it another name, but not the file that it is a hard link to, ",
        first,
        b".",
    ])
}

/// The data of a file does not end.
pub(crate) fn too_much_data(path: &[u8], recorded: i64, most: u64) -> Vec<u8> {
    let sizes = format!(", which had {recorded} bytes when it was saved; stopped at {most}.");
    join(&[b"More data than fits file ", path, sizes.as_bytes()])
}

/// The data of the file is not what was saved.
pub(crate) fn digest_differs(kind: DigestKind, path: &[u8], recorded: &[u8], restored: &DigestValue) -> Vec<u8> {
    let (saved, now) = (digest_text::of(recorded), digest_text::of(restored.as_bytes()));
    let kind = kind.name().as_bytes();
    join(&[
        kind,
        b" digest of restored file ",
        path,
        b" differs from the backup. Original ",
        &saved,
        b", restored ",
        &now,
        b".",
    ])
}

/// Another process wrote to the file before its data was compared with what was saved.
pub(crate) fn changed_meanwhile(path: &[u8]) -> Vec<u8> {
    join(&[b"Restored file ", path, b" was changed before its digest could be compared with the backup."])
}

/// The data of the file can't be compared with what was saved.
pub(crate) fn not_read_back(path: &[u8], errno: Errno) -> Vec<u8> {
    let reason = error_text(errno as i32);
    join(&[b"Could not read restored file ", path, b" to compare it with the backup: ERR=", reason.as_bytes()])
}

/// The volume's digest can't be compared: the stock daemon reports a difference.
pub(crate) fn other_digest(name: &[u8], stream: Stream, wanted: DigestKind) -> Vec<u8> {
    let what = format!(" is a {stream}, the FileSet has {wanted}: such files are not compared.");
    join(&[b"The digest of ", name, what.as_bytes()])
}

/// A record of sparse data that has no room for its address.
pub(crate) fn short_address(path: &[u8], length: usize) -> Vec<u8> {
    let reason = format!(". ERR=record of {length} bytes, its address alone needs 8");
    join(&[b"Sparse data error on file ", path, reason.as_bytes()])
}

/// A record of another file or backup, among those of this file.
pub(crate) fn record_of_another_file(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" may not be complete: a record of another file or backup came among its own."])
}

/// Data that follows something else than data of its kind.
pub(crate) fn data_out_of_place(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" may not be complete: data of it came out of place."])
}

/// Data behind the digest of its file.
pub(crate) fn data_not_compared(name: &[u8]) -> Vec<u8> {
    join(&[b"Data of ", name, b" came out of place: it is not compared."])
}

/// The parts that a Windows client saves end within one, or make no sense.
pub(crate) fn windows_data_torn(path: &[u8]) -> Vec<u8> {
    join(&[b"Windows data of file ", path, b" is damaged, or its end is missing."])
}

/// Data that a record puts before the end of what is there, as no backup does.
pub(crate) fn address_goes_back(path: &[u8], address: u64, end: u64) -> Vec<u8> {
    let reason = format!(". ERR=address {address} is before byte {end}, which is written already");
    join(&[b"Sparse data error on file ", path, reason.as_bytes()])
}

/// Zeros that the backup has left out at the end of a device or FIFO.
pub(crate) fn zeros_missing(path: &[u8], written: u64) -> Vec<u8> {
    let reason = format!(
        " was saved with Sparse = yes: zeros behind its last data are not on the volume. Nothing is written there, from \
         byte {written} on."
    );
    join(&[path, reason.as_bytes()])
}

/// More ACLs and extended attributes than any file has.
pub(crate) fn too_much_metadata(path: &[u8]) -> Vec<u8> {
    join(&[b"More ACL and extended attribute records than expected for ", path, b"; the rest is ignored."])
}

/// Over a network data is often written only when its file is closed.
pub(crate) fn close_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("Data may be missing: could not close ", path, errno)
}

/// A plugin could not end a file, and has not said why.
pub(crate) fn plugin_close_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    with_error("Plugin could not close ", path, errno)
}

/// A plugin could not restore an ACL or extended attributes, and has not said why.
pub(crate) fn xacl_failed(kind: MetadataKind, path: &[u8], status: i32) -> Vec<u8> {
    let before = format!("Plugin could not restore the {} of ", kind.name());
    join(&[before.as_bytes(), path, format!(": status {status}").as_bytes()])
}

/// Metadata of a plugin that makes no sense.
pub(crate) fn damaged_metadata(path: &[u8], error: &PluginMetadataError) -> Vec<u8> {
    join(&[b"Damaged plugin metadata of ", path, b": ERR=", error.to_string().as_bytes()])
}

/// The file that a plugin had in hand when it failed.
pub(crate) fn file_of_failed_plugin(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" not restored: its plugin has failed."])
}

/// Data that a plugin has saved with an update of attributes, and the plugin is not there.
pub(crate) fn data_needs_plugin(path: &[u8]) -> Vec<u8> {
    join(&[b"Data of ", path, b" not restored: its plugin, which has saved it as an update, is needed."])
}

/// Data that a plugin has saved with an update of attributes, which it leaves to the daemon.
pub(crate) fn data_of_update_dropped(path: &[u8]) -> Vec<u8> {
    join(&[b"Data of ", path, b" not restored: its plugin has left the update of its attributes to the daemon."])
}

/// Later files of plugins that have failed in the job.
pub(crate) fn lost_with_plugin(count: u64) -> Vec<u8> {
    format!("{count} more files were not restored because their plugin has failed.\n").into_bytes()
}

/// Hard links that wait for the end of the records, which does not come.
pub(crate) fn lost_late_links(count: usize) -> Vec<u8> {
    format!("{count} hard links were not restored: records are missing, among which their first names may be.\n")
        .into_bytes()
}

/// A plugin that looks at data has ended a Verify job.
pub(crate) fn verify_ended_by_plugin(plugin: &[u8], name: &[u8], code: i32) -> Vec<u8> {
    join(&[b"Plugin ", plugin, b" has ended the Verify job at ", name, format!(": status {code}").as_bytes()])
}

/// Plugins have found more than is kept.
pub(crate) fn too_many_events(most: usize) -> Vec<u8> {
    format!("Plugins have found more than {most} things; the rest is not sent to the Director.\n").into_bytes()
}

/// What the volume says, fit for a message: a part of it, without anything that a terminal obeys.
fn of_volume(text: &[u8]) -> Vec<u8> {
    const MOST: usize = 1_000;
    let shown = text.get(..MOST).unwrap_or(text);
    let mut printable: Vec<u8> = shown.iter().map(|byte| if byte.is_ascii_control() { b'?' } else { *byte }).collect();
    if shown.len() < text.len() {
        printable.extend_from_slice(b"...");
    }
    printable
}

/// A program is given the data of a file that a plugin has saved.
pub(crate) fn volume_asks_for_program(plugin: &[u8], program: &[u8]) -> Vec<u8> {
    join(&[b"The volume asks plugin ", plugin, b" to run: ", &of_volume(program)])
}

/// A plugin gets a command that does not say which programs it runs.
pub(crate) fn volume_asks_plugin(plugin: &[u8], command: &[u8]) -> Vec<u8> {
    join(&[b"The volume asks plugin ", plugin, b" to restore: ", &of_volume(command)])
}

/// A command that only the volume says.
pub(crate) fn unknown_command(command: &[u8]) -> Vec<u8> {
    join(&[
        b"Refused, and not restored: the volume asks for plugin command \"",
        &of_volume(command),
        b"\", which no FileSet of this Director has had on this host. If it is right, let the Director estimate the job \
          that saves it on this client, or (without PKI) set plugins.restore_commands = \"any\" in bacula-fd.toml, and \
          restore again.",
    ])
}

/// A command of a volume where none may be run.
pub(crate) fn commands_of_volumes_are_off(command: &[u8]) -> Vec<u8> {
    join(&[
        b"Refused, and not restored: the volume asks for plugin command \"",
        &of_volume(command),
        b"\", and plugins.restore_commands in bacula-fd.toml is \"none\".",
    ])
}

/// The first name of a hard link was kept, or is not restored, and means another file.
pub(crate) fn name_of_another(path: &[u8], first: &[u8]) -> Vec<u8> {
    join(&[
        b"File ",
        path,
        b" is a name of ",
        first,
        b" now, which was there before this job and is not the file that was saved.",
    ])
}

/// The first name of a hard link means another file, and what is there may be the only copy.
pub(crate) fn kept_without_first_name(path: &[u8], first: &[u8]) -> Vec<u8> {
    join(&[
        b"File ",
        path,
        b" is kept as it is. It was saved as a hard link to ",
        first,
        b", which was there before this job and is not the file that was saved.",
    ])
}

/// The file system takes the name for that of another file, which this job has restored.
pub(crate) fn name_taken(path: &[u8], other: &[u8]) -> Vec<u8> {
    join(&[
        b"File ",
        path,
        b" not restored: this file system takes its name for ",
        other,
        b", which this job has restored there and which is kept.",
    ])
}

/// A record would change a file whose data is not whole.
pub(crate) fn belongs_to_unfinished(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" not restored: what it belongs to is not complete."])
}

/// The first name of a hard link is another file by now.
pub(crate) fn first_name_replaced(path: &[u8], first: &[u8]) -> Vec<u8> {
    const WHY: &[u8] = b" is not the file that was restored, and another user could put it there.";
    join(&[b"File ", path, b" not restored: ", first, WHY])
}

/// The first name of a hard link was saved again when the link may have been gone.
pub(crate) fn first_name_changed(path: &[u8], first: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" not restored: ", first, b" has changed since it was a name of it."])
}

/// A directory that was there has its new attributes, and the ACLs that it had.
pub(crate) fn acl_may_be_missing(path: &[u8]) -> Vec<u8> {
    const WHY: &[u8] = b" may lack its ACL: the restore ended after its attributes. Restore it with replace=always.";
    join(&[b"Directory ", path, WHY])
}

/// The same of a new one.
pub(crate) fn directory_unfinished(path: &[u8]) -> Vec<u8> {
    const WHY: &[u8] =
        b" is not complete: the restore ended after its attributes. The next restore applies its record.";
    join(&[b"Directory ", path, WHY])
}

/// The record that ends a plugin's file has not come.
pub(crate) fn end_missing(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" may not be complete: its end is missing on the volume."])
}

/// The record that ends a file of a plugin has not come, and another file has.
pub(crate) fn section_without_end(command: &[u8]) -> Vec<u8> {
    join(&[
        b"A file of plugin command \"",
        &of_volume(command),
        b"\" may not be complete, or missing: its end is missing on the volume.",
    ])
}

/// The data of a file has not come to its end, and how much is missing is not known.
pub(crate) fn unfinished(path: &[u8]) -> Vec<u8> {
    join(&[b"File ", path, b" is not complete: its data broke off. The next restore replaces it."])
}
