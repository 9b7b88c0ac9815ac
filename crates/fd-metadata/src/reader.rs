//! Reading ACLs and extended attributes for a backup (reference 04 §10, §11).
//!
//! A file without either costs one system call: whether there is an ACL shows in the list of
//! attributes. Reading is by path, by descriptor or by a handle, and never follows a symbolic link.
//! Each ACL and each attribute is read for itself: what fails costs only itself.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use fd_records::{Acl, FileType, Stream, xattr};
use nix::errno::Errno;
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};

use crate::names::NameCache;
use crate::no_proc::{descriptor_path, has_proc};
use crate::target::{ACCESS_ACL, DEFAULT_ACL};
use crate::texts;
use crate::warnings::Failures;

const CIFS_ACL: &[u8] = b"system.cifs_acl";

/// The most that the kernel gives as one list or one value.
const KERNEL_LIMIT: usize = 64 * 1024;

/// The most that a Storage Daemon accepts as one record on any line (reference 04 §1.4).
const RECORD_LIMIT: usize = 1_000_000;

/// Memory of a payload that is kept for the next file.
const KEPT: usize = 64 * 1024;

/// Where the file is.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// An open file; saves the kernel the walk over the path.
    File(BorrowedFd<'a>),
    /// A path in whose place another file may stand by now. Nothing is taken from there without a
    /// handle (`O_PATH`) of the file that is meant. The error is `ENOENT`, or another one about its
    /// path, if it is gone.
    Handle(&'a [u8], &'a dyn Fn() -> io::Result<OwnedFd>),
    /// The same, of a directory that the job does not enter. It is not touched by its path: that
    /// could mount what is mounted on access, or wait for a server.
    Barred(&'a [u8], &'a dyn Fn() -> io::Result<OwnedFd>),
}

impl std::fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Handle(path, _) | Self::Barred(path, _) => write!(f, "{}", path.escape_ascii()),
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

/// What was found, as records in their order. Meant to be reused from file to file.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct FileMetadata {
    /// The payloads, one behind the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<(Stream, usize)>,
}

impl FileMetadata {
    /// The records: of ACLs with their final NUL, of extended attributes all in one.
    pub fn records(&self) -> impl Iterator<Item = (Stream, &[u8])> {
        let begins = [0].into_iter().chain(self.ends.iter().map(|(_, end)| *end));
        let payload = |((stream, end), begin): (&(Stream, usize), usize)| {
            (*stream, self.bytes.get(begin..*end).unwrap_or_default())
        };
        self.ends.iter().zip(begins).map(payload)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.clear();
    }

    /// The bytes of the record that is being made: those behind the last one that is ended.
    fn begun(&self) -> usize {
        self.bytes.len().saturating_sub(self.ends.last().map_or(0, |(_, end)| *end))
    }

    /// Ends the record that is being made. One without a payload is none.
    fn end(&mut self, stream: Stream) {
        if self.begun() > 0 {
            self.ends.push((stream, self.bytes.len()));
        }
    }

    /// Drops the record that is being made.
    fn drop_begun(&mut self) {
        self.bytes.truncate(self.bytes.len().saturating_sub(self.begun()));
    }
}

/// Reads metadata. Each thread has its own reader, without shared state.
#[derive(Default, Debug)]
pub struct MetadataReader {
    names: NameCache,
    /// The device of the last file, and whether that is a Windows share.
    device: Option<(u64, bool)>,
    /// Reused for lists.
    list: Vec<u8>,
    /// Reused for values.
    value: Vec<u8>,
    /// How many warnings have had a text.
    told: ReadTold,
}

/// How many warnings of each kind have had a text: a job shows no more of all its readers' than the
/// first few, so no reader makes more.
#[derive(Default, Debug)]
struct ReadTold {
    acl: usize,
    xattr: usize,
}

/// What could not be read. A [`crate::WarningLimit`] of its kind must admit a text before it is
/// shown.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReadWarnings {
    /// ACLs. The stock daemon saves the file without it and without a message.
    pub acl: Failures,
    /// Extended attributes.
    pub xattr: Failures,
}

/// The file that metadata is read of, and what it is read for.
struct Reading<'a> {
    path: &'a [u8],
    file_type: FileType,
    wanted: Wanted,
    is_cifs: bool,
}

impl Reading<'_> {
    /// Whether its ACLs are read. A link has none.
    fn wants_acl(&self) -> bool {
        self.wanted.acl && self.file_type != FileType::Symlink
    }
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
        let mut warnings = ReadWarnings::default();
        let known = self.device.filter(|(number, _)| *number == device).map(|(_, is_cifs)| is_cifs);
        let mut reading = Reading { path, file_type, wanted, is_cifs: known.unwrap_or_default() };
        if !reading.wants_acl() && !wanted.xattr {
            return warnings;
        }
        match place {
            Place::File(file) => {
                if known.is_none() {
                    reading.is_cifs = is_cifs(file);
                    self.device = Some((device, reading.is_cifs));
                }
                self.read_object(Object::File(file), &reading, found, &mut warnings);
            }
            Place::Handle(name, reach) | Place::Barred(name, reach) => {
                // A file without any costs no handle.
                let is_done = known == Some(false)
                    && matches!(place, Place::Handle(..))
                    && match list(Object::Path(name), &mut self.list) {
                        Ok(()) => self.list.is_empty(),
                        Err(errno) => errno == Errno::ENOTSUP,
                    };
                if !is_done {
                    let handle = match reach() {
                        Ok(handle) => handle,
                        Err(error) => {
                            self.without_handle(&error, &reading, &mut warnings);
                            return warnings;
                        }
                    };
                    if known.is_none() {
                        reading.is_cifs = is_cifs(handle.as_fd());
                        self.device = Some((device, reading.is_cifs));
                    }
                    self.read_handle(&handle, name, reach, &reading, found, &mut warnings);
                }
            }
        }
        warnings
    }

    /// Reads the file of a handle.
    fn read_handle(
        &mut self,
        handle: &OwnedFd,
        name: &[u8],
        reach: &dyn Fn() -> io::Result<OwnedFd>,
        reading: &Reading<'_>,
        found: &mut FileMetadata,
        warnings: &mut ReadWarnings,
    ) {
        let link = descriptor_path(handle.as_fd());
        let listed = list(Object::Handle(&link), &mut self.list);
        if listed != Err(Errno::ENOENT) || has_proc() {
            return self.read_listed(Object::Handle(&link), listed, reading, found, warnings);
        }
        if is_directory(reading.file_type) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            match rustix::fs::openat(handle, c".", flags, Mode::empty()) {
                Ok(directory) => self.read_object(Object::File(directory.as_fd()), reading, found, warnings),
                Err(errno) => self.without_handle(&errno.into(), reading, warnings),
            }
            return;
        }
        self.read_object(Object::Path(name), reading, found, warnings);
        // Nothing is kept of what may have taken its place meanwhile.
        if let Err(error) = reach() {
            found.clear();
            *warnings = ReadWarnings::default();
            self.without_handle(&error, reading, warnings);
        }
    }

    /// The warnings about a file of which there is no handle: none if it is gone, or something else
    /// has taken its place.
    fn without_handle(&mut self, error: &io::Error, reading: &Reading<'_>, warnings: &mut ReadWarnings) {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32));
        if matches!(errno, Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) {
            return;
        }
        if reading.wants_acl() {
            warnings.acl.add(&mut self.told.acl, || texts::acl_failed(reading.path, "ACL", errno));
        }
        if reading.wanted.xattr {
            warnings.xattr.add(&mut self.told.xattr, || texts::list_failed(reading.path, errno));
        }
    }

    /// Reads what can be read now.
    fn read_object(
        &mut self,
        object: Object<'_>,
        reading: &Reading<'_>,
        found: &mut FileMetadata,
        warnings: &mut ReadWarnings,
    ) {
        let listed = list(object, &mut self.list);
        self.read_listed(object, listed, reading, found, warnings);
    }

    /// Reads what is in the list.
    fn read_listed(
        &mut self,
        object: Object<'_>,
        listed: Result<(), Errno>,
        reading: &Reading<'_>,
        found: &mut FileMetadata,
        warnings: &mut ReadWarnings,
    ) {
        if listed == Err(Errno::ENOTSUP) {
            // So says this file; others of its file system may have some.
            return;
        }
        if reading.wants_acl() {
            self.read_acls(object, listed.is_ok(), reading, found, &mut warnings.acl);
        }
        if reading.wanted.xattr {
            match listed {
                Ok(()) => self.read_xattrs(object, reading, found, &mut warnings.xattr),
                Err(errno) => warnings.xattr.add(&mut self.told.xattr, || texts::list_failed(reading.path, errno)),
            }
        }
    }

    /// Reads the ACLs that the list names; all of them if the list could not be read.
    fn read_acls(
        &mut self,
        object: Object<'_>,
        listed: bool,
        reading: &Reading<'_>,
        found: &mut FileMetadata,
        failures: &mut Failures,
    ) {
        let is_directory = is_directory(reading.file_type);
        for (name, stream, possible, what) in [
            (ACCESS_ACL, Stream::LINUX_ACCESS_ACL, true, "access ACL"),
            (DEFAULT_ACL, Stream::LINUX_DEFAULT_ACL, is_directory, "default ACL"),
        ] {
            if !possible || (listed && !names_in(&self.list).any(|listed| listed == name)) {
                continue;
            }
            let acl = match get(object, name, &mut self.value) {
                // Not there, or gone since the list was made.
                Err(Errno::ENODATA) => continue,
                Err(Errno::ENOTSUP) if !listed => continue,
                got => got.and_then(|()| Acl::from_kernel(&self.value).ok_or(Errno::EINVAL)),
            };
            let told = &mut self.told.acl;
            match acl {
                Ok(acl) if acl.is_trivial() && (name != DEFAULT_ACL || acl.entries().is_empty()) => {}
                Ok(acl) => {
                    acl.to_text(&mut found.bytes, &mut self.names);
                    found.bytes.push(0);
                    if let Some(errno) = self.names.take_failed_name() {
                        failures.add(told, || texts::acl_by_number(reading.path, what, errno));
                    }
                    let length = found.begun();
                    if length > RECORD_LIMIT {
                        failures.add(told, || texts::acl_too_long(reading.path, what, length, RECORD_LIMIT));
                        found.drop_begun();
                    }
                    found.end(stream);
                }
                Err(errno) => failures.add(told, || texts::acl_failed(reading.path, what, errno)),
            }
        }
    }

    /// Reads the values of all listed names, each for itself.
    fn read_xattrs(
        &mut self,
        object: Object<'_>,
        reading: &Reading<'_>,
        found: &mut FileMetadata,
        failures: &mut Failures,
    ) {
        if reading.is_cifs && !names_in(&self.list).any(|name| name == CIFS_ACL) {
            self.list.extend_from_slice(CIFS_ACL);
            self.list.push(0);
        }
        let told = &mut self.told.xattr;
        for name in names_in(&self.list) {
            // These have records of their own.
            if reading.wanted.acl && (name == ACCESS_ACL || name == DEFAULT_ACL) {
                continue;
            }
            if let Err(errno) = get(object, name, &mut self.value) {
                // Older kernels don't list it, so it need not be there.
                if !(name == CIFS_ACL && matches!(errno, Errno::ENODATA | Errno::ENOTSUP)) {
                    failures.add(told, || texts::get_failed(reading.path, name, errno));
                }
                continue;
            }
            let length = found.begun() + xattr::length(name, &self.value);
            if length > RECORD_LIMIT {
                failures.add(told, || texts::record_too_long(reading.path, name, length, RECORD_LIMIT));
                continue;
            }
            xattr::push(&mut found.bytes, name, &self.value);
        }
        found.end(Stream::LINUX_XATTR);
    }
}

fn is_directory(file_type: FileType) -> bool {
    matches!(
        file_type,
        FileType::Directory | FileType::NoRecurse | FileType::OtherFileSystem | FileType::InvalidFileSystem
    )
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
fn is_cifs(file: BorrowedFd<'_>) -> bool {
    // Numbers of `cifs` and `smb2`, as unsigned 32 bit values.
    nix::sys::statfs::fstatfs(file)
        .is_ok_and(|status| [0xFF53_4D42, 0xFE53_4D42].contains(&(status.filesystem_type().0 & 0xFFFF_FFFF)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_order_and_no_more_memory_than_for_other_files() {
        let mut found = FileMetadata::default();
        let long = vec![7; 900_000];
        found.bytes.extend_from_slice(&long);
        found.end(Stream::LINUX_ACCESS_ACL);
        found.end(Stream::LINUX_DEFAULT_ACL);
        found.bytes.extend_from_slice(b"too long");
        found.drop_begun();
        found.bytes.extend_from_slice(b"attributes");
        found.end(Stream::LINUX_XATTR);
        let records: Vec<_> = found.records().collect();
        assert_eq!(records, [(Stream::LINUX_ACCESS_ACL, long.as_slice()), (Stream::LINUX_XATTR, &b"attributes"[..])]);
        found.clear();
        assert_eq!(found.records().count(), 0);
        assert!(found.bytes.capacity() <= KEPT, "{}", found.bytes.capacity());
    }
}
