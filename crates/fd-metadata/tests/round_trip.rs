//! What the reader saves the writer sets again, on a real file system.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use fd_metadata::{FileMetadata, MetadataReader, MetadataWriter, Place, ReadWarnings, Target, Wanted};
use fd_records::{FileType, Stream};
use nix::errno::Errno;
use nix::fcntl::OFlag;

const BOTH: Wanted = Wanted { acl: true, xattr: true };
const ACCESS_TEXT: &[u8] = b"user::rw-\nuser:root:rw-\nuser:12345:r--\ngroup::r--\nmask::rw-\nother::r--\n\0";
const DEFAULT_TEXT: &[u8] = b"user::rwx\ngroup::r-x\nother::r-x\n\0";

const NO_XATTRS: &str = "no extended attributes here";

struct Folder {
    folder: tempfile::TempDir,
    handle: File,
}

impl Folder {
    /// A folder on a file system with ACLs and extended attributes; `None` where there is none.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let handle = File::open(folder.path()).unwrap();
        let made = Self { folder, handle };
        fs::write(made.path("probe"), b"").unwrap();
        made.target("probe").set_xattr(b"user.probe", b"1").is_ok().then_some(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn target<'a>(&'a self, name: &'a str) -> Target<'a> {
        Target::Named { directory: self.handle.as_fd(), name: name.as_bytes() }
    }
}

/// A handle of what stands there, as a backup takes one.
fn handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    fs::OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map(OwnedFd::from)
}

fn read(path: &Path, file_type: FileType, wanted: Wanted) -> FileMetadata {
    let device = fs::symlink_metadata(path).unwrap().dev();
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut by_handle = FileMetadata::default();
    let mut reader = MetadataReader::new();
    let handle = || handle(path);
    let place = Place::Handle(bytes, &handle);
    assert_eq!(reader.read(place, bytes, file_type, device, wanted, &mut by_handle), ReadWarnings::default());
    let mut of_nothing = FileMetadata::default();
    let gone = Place::Handle(bytes, &|| Err(Errno::ENOENT.into()));
    assert_eq!(reader.read(gone, bytes, file_type, device, wanted, &mut of_nothing), ReadWarnings::default());
    assert_eq!(of_nothing, FileMetadata::default(), "nothing of what took its place");
    if by_handle != FileMetadata::default() {
        let failed = reader.read(
            Place::Handle(bytes, &|| Err(Errno::EIO.into())),
            b"f",
            file_type,
            device,
            wanted,
            &mut of_nothing,
        );
        let error =
            |text: Option<Vec<u8>>| text.is_some_and(|text| text.ends_with(b" \"f\": ERR=Input/output error\n"));
        assert_eq!(
            (error(failed.acl), error(failed.xattr)),
            (wanted.acl && file_type != FileType::Symlink, wanted.xattr)
        );
    }
    if file_type != FileType::Symlink {
        let file = File::open(path).unwrap();
        let mut by_file = FileMetadata::default();
        let place = Place::File(file.as_fd());
        assert_eq!(reader.read(place, bytes, file_type, device, wanted, &mut by_file), ReadWarnings::default());
        assert_eq!(by_file, by_handle);
    }
    by_handle
}

#[test]
fn a_plain_file_has_no_records() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let found = read(&folder.path("f"), FileType::Regular, BOTH);
    assert!(found.access_acl.is_empty() && found.default_acl.is_empty() && found.xattrs.is_empty());
}

#[test]
fn acls_survive_by_name_and_by_descriptor() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    for open in [false, true] {
        fs::write(folder.path("f"), b"").unwrap();
        let file = File::options().write(true).open(folder.path("f")).unwrap();
        let target = if open { Target::Open(file.as_fd()) } else { folder.target("f") };
        let mut writer = MetadataWriter::new();
        assert_eq!(writer.apply(&target, b"f", Stream::LINUX_ACCESS_ACL, ACCESS_TEXT), None);
        let found = read(&folder.path("f"), FileType::Regular, BOTH);
        assert_eq!(String::from_utf8_lossy(&found.access_acl), String::from_utf8_lossy(ACCESS_TEXT));
        assert!(found.default_acl.is_empty() && found.xattrs.is_empty());
        // With attributes but without ACLs the kernel's value is saved.
        let found = read(&folder.path("f"), FileType::Regular, Wanted { acl: false, xattr: true });
        assert!(found.access_acl.is_empty());
        assert!(found.xattrs.starts_with(b"\0\x5c\x58\x84\0\0\0\x17system.posix_acl_access"));
        fs::remove_file(folder.path("f")).unwrap();
    }
}

#[test]
fn a_directory_has_two_acls_and_loses_the_default_again() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::create_dir(folder.path("d")).unwrap();
    let mut writer = MetadataWriter::new();
    let target = folder.target("d");
    assert_eq!(writer.apply(&target, b"d", Stream::LINUX_DEFAULT_ACL, DEFAULT_TEXT), None);
    assert_eq!(writer.apply(&target, b"d", Stream::UNIX_ACCESS_ACL, ACCESS_TEXT), None);
    let found = read(&folder.path("d"), FileType::Directory, BOTH);
    assert_eq!(found.access_acl, ACCESS_TEXT);
    assert_eq!(found.default_acl, DEFAULT_TEXT);
    for _ in 0..2 {
        assert_eq!(writer.apply(&target, b"d", Stream::LINUX_DEFAULT_ACL, b"\0"), None);
        assert!(read(&folder.path("d"), FileType::Directory, BOTH).default_acl.is_empty());
    }
}

#[test]
fn attributes_survive_on_files_and_links() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    symlink("f", folder.path("link")).unwrap();
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"user.one", b"value1");
    fd_records::xattr::push(&mut record, b"user.empty", b"");
    let mut writer = MetadataWriter::new();
    assert_eq!(writer.apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record), None);
    assert_eq!(read(&folder.path("f"), FileType::Regular, BOTH).xattrs.len(), record.len());

    // Only trusted attributes may stand on a link, and only root may set them.
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"trusted.foo", b"symval");
    match writer.apply(&folder.target("link"), b"link", Stream::LINUX_XATTR, &record) {
        None => assert_eq!(read(&folder.path("link"), FileType::Symlink, BOTH).xattrs, record),
        Some(warning) => {
            return skip::test(&String::from_utf8_lossy(&warning.text));
        }
    }
    assert!(!read(&folder.path("f"), FileType::Regular, BOTH).xattrs.windows(7).any(|bytes| bytes == b"trusted"));
}

#[test]
fn warnings_of_failed_writes_are_word_for_word() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let target = folder.target("f");
    let mut writer = MetadataWriter::new();
    let mut acl = |stream: Stream, text: &[u8]| {
        let warning = writer.apply(&target, b"/x/f", stream, text).unwrap();
        (String::from_utf8(warning.text).unwrap(), warning.queued)
    };
    let direct = |text: &str| (text.to_owned(), false);
    assert_eq!(
        acl(Stream::LINUX_ACCESS_ACL, b"user:nobody-here:r--\n\0"),
        direct("bacl_linux.c:265 acl_from_text error on file \"/x/f\": ERR=Invalid argument\n")
    );
    assert_eq!(
        acl(Stream::LINUX_ACCESS_ACL, b"user::rw-\nuser:0:r--\ngroup::r--\nother::r--\n\0"),
        direct("bacl_linux.c:273 acl_valid error on file \"/x/f\": ERR=Invalid argument\n")
    );
    assert_eq!(
        acl(Stream::LINUX_DEFAULT_ACL, DEFAULT_TEXT),
        direct("bacl_linux.c:332 acl_set_file error on file \"/x/f\": ERR=Permission denied\n")
    );
    assert_eq!(
        acl(Stream::new(1002), ACCESS_TEXT),
        ("bacl.c:505 Can't restore ACLs of /x/f - incompatible acl stream encountered - 1002\n".to_owned(), true)
    );

    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, &[b"user.".as_slice(), &[b'n'; 300]].concat(), b"");
    let warning = writer.apply(&target, b"/x/f", Stream::LINUX_XATTR, &record).unwrap();
    assert_eq!(
        String::from_utf8(warning.text).unwrap(),
        "bxattr_linux.c:298 setxattr error on file \"/x/f\": ERR=Numerical result out of range\n"
    );
    let warning = writer.apply(&target, b"/x/f", Stream::new(1990), &record).unwrap();
    assert_eq!(
        String::from_utf8(warning.text).unwrap(),
        "bxattr.c:488 Can't restore Extended Attributes of /x/f - incompatible xattr stream encountered - 1990\n"
    );
    assert!(warning.queued);
    assert_eq!(writer.summaries().count(), 0);
}

#[test]
fn an_unsupported_name_space_stops_the_device_silently() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let target = folder.target("f");
    let mut writer = MetadataWriter::new();
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"nospace.foo", b"1");
    fd_records::xattr::push(&mut record, b"user.after", b"2");
    assert_eq!(writer.apply(&target, b"f", Stream::LINUX_XATTR, &record), None);
    // The entries behind it are still set, the next record is only counted.
    let found = read(&folder.path("f"), FileType::Regular, BOTH);
    assert!(found.xattrs.ends_with(b"user.after\0\0\0\x012"));
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"user.later", b"3");
    assert_eq!(writer.apply(&target, b"f", Stream::LINUX_XATTR, &record), None);
    assert_eq!(read(&folder.path("f"), FileType::Regular, BOTH).xattrs.len(), found.xattrs.len());
    let summaries: Vec<Vec<u8>> = writer.summaries().collect();
    assert_eq!(summaries, [b"Encountered 1 xattr errors while doing restore\n"]);
}

#[test]
fn a_missing_file_is_passed_over() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    let mut writer = MetadataWriter::new();
    let target = folder.target("missing");
    assert_eq!(writer.apply(&target, b"m", Stream::LINUX_ACCESS_ACL, ACCESS_TEXT), None);
    assert_eq!(writer.apply(&target, b"m", Stream::LINUX_XATTR, b""), None);
    let path = folder.path("missing");
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut found = FileMetadata::default();
    let mut reader = MetadataReader::new();
    assert_eq!(
        reader.read(Place::Handle(bytes, &|| handle(&path)), bytes, FileType::Regular, 1, BOTH, &mut found),
        ReadWarnings::default()
    );
}

#[test]
fn metadata_that_cannot_be_read_causes_a_warning() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    // A handle can't be read from, which is an error other than ENOENT.
    let file = handle(&folder.path("f")).unwrap();
    let place = Place::File(file.as_fd());
    let mut found = FileMetadata::default();
    let mut reader = MetadataReader::new();
    let acl_only = Wanted { acl: true, xattr: false };
    // The stock daemon saves such a file without its ACL and says nothing (reference 04 §18.8).
    let warnings = reader.read(place, b"/f/g", FileType::Regular, 1, acl_only, &mut found);
    let acl = format!("acl_get_file error on file \"/f/g\": ERR={}\n", fd_os::error_text(Errno::EBADF as i32));
    assert_eq!(warnings, ReadWarnings { acl: Some(acl.into_bytes()), xattr: None });
    let warning = reader.read(place, b"/f/g", FileType::Regular, 1, BOTH, &mut found).xattr.unwrap();
    assert_eq!(
        String::from_utf8(warning).unwrap(),
        format!(
            "bxattr_linux.c:125 llistxattr error on file \"/f/g\": ERR={}\n",
            fd_os::error_text(Errno::EBADF as i32)
        )
    );
}
