//! Every text of this crate that an operator can see, word for word (reference 04 §10, §11 and
//! 05 §9, §10).
//!
//! The `file.c:123 ` in front is part of the reference's texts: operators' scripts may look for it.

use std::fmt::Write as _;

use fd_messages::one_line;
use fd_os::error_text;
use fd_records::{MetadataKind, Stream};
use nix::errno::Errno;

/// A list of extended attributes could not be read.
pub(crate) fn list_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    on_file(b"bxattr_linux.c:125 llistxattr error on file", path, &error_text(errno as i32))
}

/// An ACL could not be read. The stock daemon prepares this text, without `what`, and never shows
/// it.
pub(crate) fn acl_failed(path: &[u8], what: &str, errno: Errno) -> Vec<u8> {
    on_part(b"acl_get_file error on file", path, what, &error_text(errno as i32))
}

/// Not all users and groups of an ACL could be looked up. The stock daemon says nothing.
pub(crate) fn acl_by_number(path: &[u8], what: &str, errno: Errno) -> Vec<u8> {
    let part = format!("{what}: numbers in the place of names");
    on_part(b"acl_to_text error on file", path, &part, &error_text(errno as i32))
}

/// The text of an ACL needs more than a record can hold.
pub(crate) fn acl_too_long(path: &[u8], what: &str, length: usize, limit: usize) -> Vec<u8> {
    let text = format!(": its text needs {length} bytes, one record holds {limit} bytes.\n");
    one_line(&[b"Not saved of \"", path, b"\": ", what.as_bytes(), text.as_bytes()])
}

/// The value of an extended attribute could not be read. The stock daemon does not name it.
pub(crate) fn get_failed(path: &[u8], name: &[u8], errno: Errno) -> Vec<u8> {
    on_part(b"bxattr_linux.c:214 lgetxattr error on file", path, &attribute(name), &error_text(errno as i32))
}

/// The extended attributes of one file need more than a record can hold. The stock daemon sends the
/// record. If it does not compress, it loses the connection, hence the job.
pub(crate) fn record_too_long(path: &[u8], name: &[u8], length: usize, limit: usize) -> Vec<u8> {
    let text = format!(": with it {length} bytes are needed, one record holds {limit} bytes.\n");
    one_line(&[b"Not saved of \"", path, b"\": ", attribute(name).as_bytes(), text.as_bytes()])
}

/// An ACL or the extended attributes are to be set on a file that can't be looked at.
pub(crate) fn no_stat(kind: MetadataKind, path: &[u8], errno: Errno) -> Vec<u8> {
    let what: &[u8] = match kind {
        MetadataKind::Acl => b"bacl.c:219 Unable to stat file",
        MetadataKind::Xattr => b"bxattr.c:236 Unable to stat file",
    };
    on_file(what, path, &error_text(errno as i32))
}

/// The text of an ACL can't be read.
pub(crate) fn acl_from_text(path: &[u8]) -> Vec<u8> {
    on_file(b"bacl_linux.c:265 acl_from_text error on file", path, &error_text(Errno::EINVAL as i32))
}

/// Entries of an ACL are for users or groups that this host does not have, or could not look up
/// now. The stock daemon sets nothing of the ACL then, and names no entry.
pub(crate) fn acl_left_out(path: &[u8], entries: &[Vec<u8>], failed: Option<Errno>) -> Vec<u8> {
    let mut named = String::new();
    for entry in entries.iter().take(MOST_NAMED) {
        let _written = write!(named, "{}\"{}\"", if named.is_empty() { "" } else { ", " }, entry.escape_ascii());
    }
    match entries.len().saturating_sub(MOST_NAMED) {
        0 => {}
        more => {
            let _written = write!(named, " and {more} more");
        }
    }
    let what = format!("left out {named}");
    let why = failed.map_or_else(
        || "This host has no such user or group".to_owned(),
        |errno| format!("The host's users and groups can't be looked up: {}", error_text(errno as i32)),
    );
    on_part(b"bacl_linux.c:265 acl_from_text error on file", path, &what, &why)
}

/// Entries of an ACL are for the same user or group of this host.
pub(crate) fn acl_merged(path: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let named = entries.first().map(|entry| entry.escape_ascii().to_string()).unwrap_or_default();
    let what = format!("\"{named}\" and another entry");
    on_part(b"bacl_linux.c:265 acl_from_text error on file", path, &what, "They are for the same user or group here")
}

/// Entries that a message names.
const MOST_NAMED: usize = 20;

/// The mode of a file whose ACL could not be set gives more than the ACL would, and can't be
/// reduced.
pub(crate) fn mode_not_reduced(path: &[u8], errno: Errno) -> Vec<u8> {
    on_part(b"acl_set_file error on file", path, "rights of the group not reduced", &error_text(errno as i32))
}

/// An ACL lacks entries.
pub(crate) fn acl_valid(path: &[u8]) -> Vec<u8> {
    on_file(b"bacl_linux.c:273 acl_valid error on file", path, &error_text(Errno::EINVAL as i32))
}

/// A default ACL could not be removed.
pub(crate) fn acl_delete(path: &[u8], errno: Errno) -> Vec<u8> {
    if errno == Errno::ENOTSUP {
        return on_file(b"acl_delete_def_file error on file", path, NO_ACLS);
    }
    on_file(b"bacl_linux.c:302 acl_delete_def_file error on file", path, &error_text(errno as i32))
}

/// A directory that was there had an ACL that the backup has not.
pub(crate) fn acl_removed(path: &[u8], is_default: bool) -> Vec<u8> {
    let kind: &[u8] = if is_default { b"default ACL" } else { b"ACL" };
    one_line(&[b"Removed the ", kind, b" of directory \"", path, b"\", of which the backup has none\n"])
}

/// How many there were, where not each is named.
pub(crate) fn acls_removed(count: u64) -> Vec<u8> {
    format!("Removed {count} ACLs of directories of which the backup has none\n").into_bytes()
}

/// An ACL could not be set.
pub(crate) fn acl_set(path: &[u8], errno: Errno) -> Vec<u8> {
    if errno == Errno::ENOTSUP {
        return on_file(b"acl_set_file error on file", path, NO_ACLS);
    }
    on_file(b"bacl_linux.c:332 acl_set_file error on file", path, &error_text(errno as i32))
}

const NO_ACLS: &str = "filesystem doesn't support ACLs";

/// An extended attribute could not be set. The stock daemon does not name it.
pub(crate) fn xattr_set(path: &[u8], name: &[u8], errno: Errno) -> Vec<u8> {
    on_part(b"bxattr_linux.c:298 setxattr error on file", path, &attribute(name), &error_text(errno as i32))
}

/// A record whose rest makes no sense. The stock daemon says nothing.
pub(crate) fn xattrs_damaged(path: &[u8], left: usize) -> Vec<u8> {
    let rest = format!("\" are damaged: the last {left} bytes of their record are left out\n");
    one_line(&[b"Extended attributes of file \"", path, rest.as_bytes()])
}

/// An attribute that this file can't have is in the record. The stock daemon says nothing.
pub(crate) fn xattr_unsupported(path: &[u8], name: &[u8]) -> Vec<u8> {
    on_part(b"setxattr error on file", path, &attribute(name), "Not supported here")
}

/// More of one record could not be set than is named.
pub(crate) fn more_not_set(path: &[u8], more: u64) -> Vec<u8> {
    one_line(&[
        b"bxattr_linux.c:298 setxattr error on file \"",
        path,
        format!("\": {more} more attributes\n").as_bytes(),
    ])
}

/// An ACL or extended attributes of another system.
pub(crate) fn incompatible(kind: MetadataKind, path: &[u8], stream: Stream) -> Vec<u8> {
    let head: &[u8] = match kind {
        MetadataKind::Acl => b"bacl.c:505 Can't restore ACLs of ",
        MetadataKind::Xattr => b"bxattr.c:488 Can't restore Extended Attributes of ",
    };
    let tail = format!(" - incompatible {} stream encountered - {}\n", kind.name(), stream.kind().number());
    one_line(&[head, path, tail.as_bytes()])
}

/// At the end of a backup.
pub(crate) fn saving_summary(kind: MetadataKind, count: u64) -> Vec<u8> {
    let what = kind.name();
    format!("Had {count} {what} errors while doing backup\n").into_bytes()
}

/// At the end of a restore.
pub(crate) fn restoring_summary(kind: MetadataKind, count: u64) -> Vec<u8> {
    let what = kind.name();
    format!("Encountered {count} {what} errors while doing restore\n").into_bytes()
}

/// `<what> "<path>": ERR=<error>`
fn on_file(what: &[u8], path: &[u8], error: &str) -> Vec<u8> {
    one_line(&[what, b" \"", path, b"\": ERR=", error.as_bytes(), b"\n"])
}

/// `<what> "<path>": <part>: ERR=<error>`
fn on_part(what: &[u8], path: &[u8], part: &str, error: &str) -> Vec<u8> {
    one_line(&[what, b" \"", path, b"\": ", part.as_bytes(), b": ERR=", error.as_bytes(), b"\n"])
}

/// An attribute; its name may have any bytes.
fn attribute(name: &[u8]) -> String {
    format!("attribute \"{}\"", name.escape_ascii())
}
