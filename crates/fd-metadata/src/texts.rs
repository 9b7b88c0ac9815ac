//! Every text of this crate that an operator can see, word for word (reference 04 §10, §11 and
//! 05 §9, §10).
//!
//! The `file.c:123 ` in front is part of the reference's texts: operators' scripts may look for it.

use fd_os::error_text;
use fd_records::{MetadataKind, Stream};
use nix::errno::Errno;

/// A list of extended attributes could not be read.
pub(crate) fn list_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    on_file(b"bxattr_linux.c:125 llistxattr error on file", path, &error_text(errno as i32))
}

/// An ACL could not be read. The stock daemon prepares this text and never shows it.
pub(crate) fn acl_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    on_file(b"acl_get_file error on file", path, &error_text(errno as i32))
}

/// The value of an extended attribute could not be read.
pub(crate) fn get_failed(path: &[u8], errno: Errno) -> Vec<u8> {
    on_file(b"bxattr_linux.c:214 lgetxattr error on file", path, &error_text(errno as i32))
}

/// The extended attributes of one file need more than a record can hold. The reference sends the
/// record and loses the connection, hence the job.
pub(crate) fn record_too_long(path: &[u8], length: usize, limit: usize) -> Vec<u8> {
    let mut text = b"Extended attributes of \"".to_vec();
    text.extend_from_slice(path);
    text.extend_from_slice(
        format!("\" not saved: they need {length} bytes, one record holds {limit} bytes.\n").as_bytes(),
    );
    text
}

/// An ACL or the extended attributes are to be set on a file that can't be looked at.
pub(crate) fn no_stat(kind: MetadataKind, path: &[u8], errno: Errno) -> Vec<u8> {
    let what: &[u8] = match kind {
        MetadataKind::Acl => b"bacl.c:219 Unable to stat file",
        MetadataKind::Xattr => b"bxattr.c:236 Unable to stat file",
    };
    on_file(what, path, &error_text(errno as i32))
}

/// The text of an ACL can't be read, or names an unknown user or group.
pub(crate) fn acl_from_text(path: &[u8]) -> Vec<u8> {
    on_file(b"bacl_linux.c:265 acl_from_text error on file", path, &error_text(Errno::EINVAL as i32))
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

/// An ACL could not be set.
pub(crate) fn acl_set(path: &[u8], errno: Errno) -> Vec<u8> {
    if errno == Errno::ENOTSUP {
        return on_file(b"acl_set_file error on file", path, NO_ACLS);
    }
    on_file(b"bacl_linux.c:332 acl_set_file error on file", path, &error_text(errno as i32))
}

const NO_ACLS: &str = "filesystem doesn't support ACLs";

/// An extended attribute could not be set.
pub(crate) fn xattr_set(path: &[u8], errno: Errno) -> Vec<u8> {
    on_file(b"bxattr_linux.c:298 setxattr error on file", path, &error_text(errno as i32))
}

/// An ACL or extended attributes of another system.
pub(crate) fn incompatible(kind: MetadataKind, path: &[u8], stream: Stream) -> Vec<u8> {
    let head: &[u8] = match kind {
        MetadataKind::Acl => b"bacl.c:505 Can't restore ACLs of ",
        MetadataKind::Xattr => b"bxattr.c:488 Can't restore Extended Attributes of ",
    };
    let tail = format!(" - incompatible {} stream encountered - {}\n", kind.name(), stream.kind().number());
    [head, path, tail.as_bytes()].concat()
}

/// At the end of a backup.
pub(crate) fn saving_summary(kind: MetadataKind, count: u32) -> Vec<u8> {
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
    [what, b" \"", path, b"\": ERR=", error.as_bytes(), b"\n"].concat()
}
