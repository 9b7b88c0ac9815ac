//! Reading ACLs and extended attributes for a backup (reference 04 §10, §11).
//!
//! A file without either costs one system call: whether there is an ACL shows in the list of
//! attributes. Reading is by path, by descriptor or by a handle, and never follows a symbolic link.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use fd_records::{Acl, FileType, xattr};
use nix::errno::Errno;
use rustix::buffer::spare_capacity;

use crate::names::NameCache;
use crate::texts;

const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";
const CIFS_ACL: &[u8] = b"system.cifs_acl";

/// The most that the kernel gives as one list or one value.
const KERNEL_LIMIT: usize = 64 * 1024;

/// The most that a Storage Daemon accepts as one record (reference 04 §1.4).
const RECORD_LIMIT: usize = 1_000_000;

/// Where the file is.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// An open file; saves the kernel the walk over the path.
    File(BorrowedFd<'a>),
    /// A path in whose place another file may stand by now. Nothing is taken from there without a
    /// handle (`O_PATH`) of the file that is meant. The error is `ENOENT`, or another one about its
    /// path, if it is gone.
    Handle(&'a [u8], &'a dyn Fn() -> io::Result<OwnedFd>),
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Handle(path, _) => write!(f, "{}", path.escape_ascii()),
            Self::File(file) => write!(f, "{file:?}"),
        }
    }
}

/// A file of which metadata is read.
#[derive(Clone, Copy)]
enum Object<'a> {
    /// The link itself, if it is one.
    Path(&'a [u8]),
    File(BorrowedFd<'a>),
    /// The path of a handle in `/proc`, which leads to the object of the handle.
    Handle(&'a [u8]),
}

/// Which metadata the FileSet asks for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// ACLs (option letter `A`).
    pub acl: bool,
    /// Extended attributes (option letter `X`).
    pub xattr: bool,
}

/// What was found, as payloads of records. An empty one means: no record. Meant to be reused from
/// file to file.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct FileMetadata {
    /// Payload of stream 1008, with its final NUL.
    pub access_acl: Vec<u8>,
    /// Payload of stream 1007, with its final NUL; directories only.
    pub default_acl: Vec<u8>,
    /// Payload of stream 1998.
    pub xattrs: Vec<u8>,
}

impl FileMetadata {
    fn clear(&mut self) {
        self.access_acl.clear();
        self.default_acl.clear();
        self.xattrs.clear();
    }
}

/// Reads metadata. Each thread has its own reader, without shared state.
///
/// Remembers that a device supports no ACLs or no extended attributes, and does not ask it again
/// until a file of another device has come.
#[derive(Default, Debug)]
pub struct MetadataReader {
    names: NameCache,
    device: Option<Device>,
    /// Reused for lists.
    list: Vec<u8>,
    /// Reused for values.
    value: Vec<u8>,
}

/// What is known about the device of the last file.
#[derive(Clone, Copy, Debug)]
struct Device {
    number: u64,
    has_acls: bool,
    has_xattrs: bool,
    is_cifs: bool,
}

/// The warnings about a file of which there is no handle: none if it is gone, or something else has
/// taken its place.
fn without_handle(error: &io::Error, path: &[u8], acl: bool, xattr: bool) -> ReadWarnings {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32));
    if matches!(errno, Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) {
        return ReadWarnings::default();
    }
    ReadWarnings {
        acl: acl.then(|| texts::acl_failed(path, errno)),
        xattr: xattr.then(|| texts::list_failed(path, errno)),
    }
}

/// What could not be read, each a warning complete with line end that a [`crate::WarningLimit`] of
/// its kind must admit before it is shown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadWarnings {
    /// About an ACL. The stock daemon saves the file without it and without a message.
    pub acl: Option<Vec<u8>>,
    /// About extended attributes.
    pub xattr: Option<Vec<u8>>,
}

impl MetadataReader {
    /// A new reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the wanted metadata of one file into `found`, which is emptied first.
    ///
    /// `path` stands in the messages, `device` is the file's `st_dev`.
    pub fn read(
        &mut self,
        place: Place<'_>,
        path: &[u8],
        file_type: FileType,
        device: u64,
        wanted: Wanted,
        found: &mut FileMetadata,
    ) -> ReadWarnings {
        found.clear();
        let mut object = match place {
            Place::Handle(path, _) => Object::Path(path),
            Place::File(file) => Object::File(file),
        };
        let mut known = self.device_of(object, device, wanted);
        let acl = wanted.acl && known.has_acls && file_type != FileType::Symlink;
        let xattr = wanted.xattr && known.has_xattrs;
        let mut warnings = ReadWarnings::default();
        if acl || xattr {
            let mut listed = list(object, &mut self.list);
            // A file without any costs no handle.
            let is_worth_it = listed.is_err() || !self.list.is_empty() || known.is_cifs;
            let (handle, name);
            if let Place::Handle(_, reach) = place
                && is_worth_it
                && listed != Err(Errno::ENOTSUP)
            {
                handle = match reach() {
                    Ok(handle) => handle,
                    Err(error) => return without_handle(&error, path, acl, xattr),
                };
                name = format!("/proc/self/fd/{}", handle.as_raw_fd());
                object = Object::Handle(name.as_bytes());
                listed = list(object, &mut self.list);
            }
            if listed == Err(Errno::ENOTSUP) {
                known.has_acls = false;
                known.has_xattrs = false;
            } else {
                if acl {
                    let failed = self.read_acls(object, listed.is_ok(), file_type, &mut known, found);
                    warnings.acl = failed.err().map(|errno| texts::acl_failed(path, errno));
                }
                if xattr {
                    warnings.xattr = match listed {
                        Ok(()) => self.read_xattrs(object, path, wanted.acl, known.is_cifs, found),
                        Err(Errno::ENOENT) => None,
                        Err(errno) => Some(texts::list_failed(path, errno)),
                    };
                }
            }
        }
        self.device = Some(known);
        warnings
    }

    /// What is known about the file's device; forgets the one before.
    fn device_of(&self, object: Object<'_>, number: u64, wanted: Wanted) -> Device {
        match self.device {
            Some(known) if known.number == number => known,
            _ => Device { number, has_acls: true, has_xattrs: true, is_cifs: wanted.xattr && is_cifs(object) },
        }
    }

    /// Reads the ACLs that the list names; all of them if the list could not be read.
    fn read_acls(
        &mut self,
        object: Object<'_>,
        listed: bool,
        file_type: FileType,
        device: &mut Device,
        found: &mut FileMetadata,
    ) -> Result<(), Errno> {
        let is_directory = matches!(
            file_type,
            FileType::Directory | FileType::NoRecurse | FileType::OtherFileSystem | FileType::InvalidFileSystem
        );
        for (name, payload, possible) in
            [(ACCESS_ACL, &mut found.access_acl, true), (DEFAULT_ACL, &mut found.default_acl, is_directory)]
        {
            if !possible || (listed && !names_in(&self.list).any(|listed| listed == name)) {
                continue;
            }
            match get(object, name, &mut self.value) {
                Ok(()) => {
                    // A value that is no ACL would be a defect of the file system; the reference is
                    // silent too.
                    if let Ok(acl) = Acl::from_kernel(&self.value)
                        && (!acl.is_trivial() || (name == DEFAULT_ACL && !acl.entries().is_empty()))
                    {
                        acl.to_text(payload, &mut self.names);
                        payload.push(0);
                    }
                }
                Err(Errno::ENOTSUP) => device.has_acls = false,
                // Gone since the list was made.
                Err(Errno::ENODATA | Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Reads the values of all listed names. One that fails drops the record, as in the reference.
    fn read_xattrs(
        &mut self,
        object: Object<'_>,
        path: &[u8],
        without_acls: bool,
        is_cifs: bool,
        found: &mut FileMetadata,
    ) -> Option<Vec<u8>> {
        if is_cifs && !names_in(&self.list).any(|name| name == CIFS_ACL) {
            self.list.extend_from_slice(CIFS_ACL);
            self.list.push(0);
        }
        for name in names_in(&self.list) {
            if without_acls && (name == ACCESS_ACL || name == DEFAULT_ACL) {
                continue;
            }
            if let Err(errno) = get(object, name, &mut self.value) {
                found.xattrs.clear();
                return (errno != Errno::ENOENT).then(|| texts::get_failed(path, errno));
            }
            xattr::push(&mut found.xattrs, name, &self.value);
        }
        if found.xattrs.len() > RECORD_LIMIT {
            let warning = texts::record_too_long(path, found.xattrs.len(), RECORD_LIMIT);
            found.xattrs.clear();
            return Some(warning);
        }
        None
    }
}

/// The names of a list, each of which ends with a NUL.
fn names_in(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

/// Makes `into` hold the names. It gets the size that the kernel never exceeds, so one call is
/// enough.
fn list(object: Object<'_>, into: &mut Vec<u8>) -> Result<(), Errno> {
    into.clear();
    into.reserve(KERNEL_LIMIT);
    let outcome = match object {
        Object::Path(path) => rustix::fs::llistxattr(path, spare_capacity(into)),
        Object::Handle(path) => rustix::fs::listxattr(path, spare_capacity(into)),
        Object::File(file) => rustix::fs::flistxattr(file, spare_capacity(into)),
    };
    outcome.map(drop).map_err(|errno| Errno::from_raw(errno.raw_os_error()))
}

/// Makes `into` hold the value of one attribute; as [`list`].
fn get(object: Object<'_>, name: &[u8], into: &mut Vec<u8>) -> Result<(), Errno> {
    into.clear();
    into.reserve(KERNEL_LIMIT);
    let outcome = match object {
        Object::Path(path) => rustix::fs::lgetxattr(path, name, spare_capacity(into)),
        Object::Handle(path) => rustix::fs::getxattr(path, name, spare_capacity(into)),
        Object::File(file) => rustix::fs::fgetxattr(file, name, spare_capacity(into)),
    };
    outcome.map(drop).map_err(|errno| Errno::from_raw(errno.raw_os_error()))
}

/// Whether the file lies on a Windows share, whose ACL attribute is not listed by older kernels.
fn is_cifs(object: Object<'_>) -> bool {
    let status = match object {
        Object::Path(path) | Object::Handle(path) => nix::sys::statfs::statfs(path),
        Object::File(file) => nix::sys::statfs::fstatfs(file),
    };
    // Numbers of `cifs` and `smb2`, as unsigned 32 bit values.
    status.is_ok_and(|status| [0xFF53_4D42, 0xFE53_4D42].contains(&(status.filesystem_type().0 & 0xFFFF_FFFF)))
}
