//! What the reader saves the writer sets again, on a real file system.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use fd_metadata::{
    Failures, FileMetadata, MetadataReader, MetadataWriter, NameCache, Place, ReadWarnings, Target, Wanted,
    WriterWarnings,
};
use fd_records::{FileType, Identities as _, Names as _, Stream};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

const BOTH: Wanted = Wanted { acl: true, xattr: true };
const ACCESS_TEXT: &[u8] = b"user::rw-\nuser:root:rw-\nuser:12345:r--\ngroup::r--\nmask::rw-\nother::r--\n\0";
const DEFAULT_TEXT: &[u8] = b"user::rwx\ngroup::r-x\nother::r-x\n\0";

const NONE: WriterWarnings = WriterWarnings { texts: Vec::new(), queued: false };

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

/// The records of a file, by what they are.
#[derive(PartialEq, Eq, Default, Debug)]
struct Found {
    access_acl: Vec<u8>,
    default_acl: Vec<u8>,
    xattrs: Vec<u8>,
}

impl From<&FileMetadata> for Found {
    fn from(metadata: &FileMetadata) -> Self {
        let of = |stream| {
            metadata.records().find(|(found, _)| *found == stream).map_or_else(Vec::new, |(_, bytes)| bytes.to_vec())
        };
        Self {
            access_acl: of(Stream::LINUX_ACCESS_ACL),
            default_acl: of(Stream::LINUX_DEFAULT_ACL),
            xattrs: of(Stream::LINUX_XATTR),
        }
    }
}

fn read(path: &Path, file_type: FileType, wanted: Wanted) -> Found {
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
        let is_error = |text: &Vec<u8>| text.ends_with(b": ERR=Input/output error\n");
        let errors = |failures: Failures| failures.texts.iter().filter(|text| is_error(text)).count();
        assert_eq!(
            (errors(failed.acl), errors(failed.xattr)),
            (usize::from(wanted.acl && file_type != FileType::Symlink), usize::from(wanted.xattr))
        );
    }
    if file_type != FileType::Symlink {
        let file = File::open(path).unwrap();
        let mut by_file = FileMetadata::default();
        let place = Place::File(file.as_fd());
        assert_eq!(reader.read(place, bytes, file_type, device, wanted, &mut by_file), ReadWarnings::default());
        assert_eq!(by_file, by_handle);
    }
    Found::from(&by_handle)
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
        assert_eq!(writer.apply(&target, b"f", Stream::LINUX_ACCESS_ACL, ACCESS_TEXT), NONE);
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
    assert_eq!(writer.apply(&target, b"d", Stream::LINUX_DEFAULT_ACL, DEFAULT_TEXT), NONE);
    assert_eq!(writer.apply(&target, b"d", Stream::UNIX_ACCESS_ACL, ACCESS_TEXT), NONE);
    let found = read(&folder.path("d"), FileType::Directory, BOTH);
    assert_eq!(found.access_acl, ACCESS_TEXT);
    assert_eq!(found.default_acl, DEFAULT_TEXT);
    for _ in 0..2 {
        assert_eq!(writer.apply(&target, b"d", Stream::LINUX_DEFAULT_ACL, b"\0"), NONE);
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
    assert_eq!(writer.apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record), NONE);
    assert_eq!(read(&folder.path("f"), FileType::Regular, BOTH).xattrs.len(), record.len());

    // Only trusted attributes may stand on a link, and only root may set them.
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"trusted.foo", b"symval");
    let warnings = writer.apply(&folder.target("link"), b"link", Stream::LINUX_XATTR, &record);
    if let Some(text) = warnings.texts.first() {
        return skip::test(&String::from_utf8_lossy(text));
    }
    assert_eq!(read(&folder.path("link"), FileType::Symlink, BOTH).xattrs, record);
    assert!(!read(&folder.path("f"), FileType::Regular, BOTH).xattrs.windows(7).any(|bytes| bytes == b"trusted"));
}

#[test]
fn warnings_of_failed_writes_are_word_for_word() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let target = folder.target("f");
    let mut writer = MetadataWriter::new();
    let mut acl = |stream: Stream, text: &[u8]| {
        let warnings = writer.apply(&target, b"/x/f", stream, text);
        let [text] = warnings.texts.try_into().unwrap();
        (String::from_utf8(text).unwrap(), warnings.queued)
    };
    let direct = |text: &str| (text.to_owned(), false);
    assert_eq!(
        acl(Stream::LINUX_ACCESS_ACL, b"user:0:rubbish\n\0"),
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
    let warnings = writer.apply(&target, b"/x/f", Stream::LINUX_XATTR, &record);
    let name = format!("user.{}", "n".repeat(300));
    assert_eq!(
        strings(warnings.texts),
        [format!(
            "bxattr_linux.c:298 setxattr error on file \"/x/f\": attribute \"{name}\": \
             ERR=Numerical result out of range\n"
        )]
    );
    let warnings = writer.apply(&target, b"/x/f", Stream::new(1990), &record);
    assert_eq!(
        strings(warnings.texts),
        ["bxattr.c:488 Can't restore Extended Attributes of /x/f - incompatible xattr stream encountered - 1990\n"]
    );
    assert!(warnings.queued);
    let summaries = strings(writer.summaries().collect());
    assert_eq!(
        summaries,
        ["Encountered 3 acl errors while doing restore\n", "Encountered 1 xattr errors while doing restore\n"]
    );
}

/// Of a directory that the daemon may not read, too.
#[test]
fn only_an_acl_that_was_there_is_said_to_be_removed() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::create_dir(folder.path("d")).unwrap();
    let handle = handle(&folder.path("d")).unwrap();
    let mut writer = MetadataWriter::new();
    let drop = |writer: &mut MetadataWriter| {
        strings(writer.drop_acls(&Target::PinnedDirectory(handle.as_fd()), b"/d", true, true).texts)
    };
    assert_eq!(drop(&mut writer), [""; 0]);
    let default = b"user::rwx\ngroup::r-x\nother::r-x\n";
    for round in 0..30 {
        let target = Target::PinnedDirectory(handle.as_fd());
        assert!(writer.apply(&target, b"/d", Stream::LINUX_DEFAULT_ACL, default).texts.is_empty());
        assert_eq!(drop(&mut writer).len(), usize::from(round < 25), "{round}");
    }
    assert_eq!(
        strings(writer.summaries().collect()),
        ["Removed 30 ACLs of directories of which the backup has none\n"]
    );
    // At the end of the next Storage Daemon's records.
    assert_eq!(writer.summaries().count(), 0);
}

fn strings(texts: Vec<Vec<u8>>) -> Vec<String> {
    texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
}

/// A file of the mode 670 with an ACL from another host: what its record becomes, and the messages.
fn restored_acl(folder: &Folder, text: &str) -> (String, u32, Vec<String>) {
    let path = folder.path("restored");
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o674)).unwrap();
    let target = folder.target("restored");
    let record = [text.as_bytes(), b"\0"].concat();
    let warnings = MetadataWriter::new().apply(&target, b"f", Stream::LINUX_ACCESS_ACL, &record);
    let found = read(&path, FileType::Regular, BOTH).access_acl;
    let mode = fs::metadata(&path).unwrap().mode() & 0o777;
    fs::remove_file(&path).unwrap();
    (String::from_utf8(found).unwrap(), mode, strings(warnings.texts))
}

#[test]
fn entries_of_unknown_users_are_left_out_and_no_user_gets_more() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    let text =
        "user::rw-\nuser:nobody-here:rwx\nuser:1234:r--\ngroup::r--\ngroup:no group:-w-\nmask::rwx\nother::r--\n";
    let (acl, mode, texts) = restored_acl(&folder, text);
    assert_eq!(acl, "user::rw-\nuser:1234:r--\ngroup::r--\nmask::rwx\nother::r--\n\0");
    assert_eq!(mode, 0o674, "the bits of the group are the mask");
    assert_eq!(
        texts,
        ["bacl_linux.c:265 acl_from_text error on file \"f\": left out \"user:nobody-here:rwx\", \
          \"group:no group:-w-\": ERR=This host has no such user or group\n"]
    );

    // The kernel does not take this number.
    let text = "user::rw-\nuser:4294967295:r--\ngroup::rw-\nmask::rwx\nother::r--\n";
    let (acl, mode, texts) = restored_acl(&folder, text);
    assert_eq!((acl.as_str(), mode), ("", 0o644), "the owning group and others as the entry that is lost: {texts:?}");
    assert_eq!(texts.len(), 1);

    let (acl, mode, texts) = restored_acl(&folder, "user::rw-\nrubbish");
    assert_eq!((acl.as_str(), mode, texts.len()), ("", 0o604, 1), "{texts:?}");
}

#[test]
fn two_names_of_one_user_become_one_entry_with_what_both_have() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    let text = "user::rw-\nuser:root:rw-\nuser:0:r-x\ngroup::r--\nmask::rwx\nother::r--\n";
    let (acl, _, texts) = restored_acl(&folder, text);
    assert_eq!(acl, "user::rw-\nuser:root:r--\ngroup::r--\nmask::rwx\nother::r--\n\0");
    assert_eq!(texts.len(), 1);
    assert!(texts[0].contains("\"user:0:r-x\" and another entry"), "{texts:?}");
}

/// Does `work` in a thread whose `/etc` is empty but for this file of users and one of groups.
fn with_own_etc(users: &[u8], groups: &[u8], work: impl FnOnce() + Send) {
    let there = || {
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        // A daemon that keeps names would be asked first.
        if Path::new("/var/run/nscd").exists() {
            mount(none, "/var/run/nscd", Some("tmpfs"), MsFlags::empty(), none)?;
        }
        mount(none, "/etc", Some("tmpfs"), MsFlags::empty(), none)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Err(errno) = there() {
                return skip::test(&format!("no mounts of a thread's own here: {errno}"));
            }
            fs::write("/etc/nsswitch.conf", b"passwd: files\ngroup: files\n").unwrap();
            fs::write("/etc/passwd", users).unwrap();
            fs::write("/etc/group", groups).unwrap();
            work();
        });
    });
}

#[test]
fn groups_of_any_size_and_names_of_any_bytes_are_found() {
    let members: Vec<_> = (0..70_000).map(|number| format!("student{number:05}")).collect();
    let groups = [b"students:x:5000:", members.join(",").as_bytes(), b"\ngr\xfcn:x:5001:\n"].concat();
    with_own_etc(b"j\xfcrgen:x:5002:5000::/:/bin/sh\n", &groups, || {
        let mut names = NameCache::new();
        let numbers = [b"students".as_slice(), b"gr\xfcn", b"nobody-here"].map(|name| names.group_number(name));
        assert_eq!(numbers, [Some(5000), Some(5001), None]);
        assert_eq!(names.group_name(5000), Some(b"students".as_slice()));
        assert_eq!(names.group_name(5001), Some(b"gr\xfcn".as_slice()));
        assert_eq!(names.group_name(5003), None);
        assert_eq!(names.user_name(5002), Some(b"j\xfcrgen".as_slice()));
        assert_eq!(names.user_number(b"j\xfcrgen"), Some(5002));
    });
}

/// As when a directory service is not there for a moment: libacl asks again for each file.
#[test]
fn a_user_who_can_not_be_looked_up_is_looked_up_for_the_next_file() {
    const ACL: &[u8] = b"user::rw-\nuser:anna:r--\ngroup::r--\nmask::r--\nother::---\n\0";
    const NUMBER: &[u8] = b"user::rw-\nuser:5002:r--\ngroup::r--\nmask::r--\nother::---\n\0";
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    for file in ["a", "b"] {
        fs::write(folder.path(file), b"").unwrap();
    }
    with_own_etc(b"anna:x:5002:5000::/:/bin/sh\n", b"", || {
        let breaks = || {
            fs::rename("/etc/passwd", "/etc/kept").unwrap();
            symlink("passwd", "/etc/passwd").unwrap();
        };
        let is_there_again = || fs::rename("/etc/kept", "/etc/passwd").unwrap();
        let why = fd_os::error_text(Errno::ELOOP as i32);
        let (mut writer, mut reader) = (MetadataWriter::new(), MetadataReader::new());
        let mut restore =
            |file: &str| strings(writer.apply(&folder.target(file), b"f", Stream::LINUX_ACCESS_ACL, ACL).texts);
        breaks();
        assert_eq!(
            restore("a"),
            [format!(
                "bacl_linux.c:265 acl_from_text error on file \"f\": left out \"user:anna:r--\": \
                 ERR=The host's users and groups can't be looked up: {why}\n"
            )]
        );
        is_there_again();
        assert_eq!(restore("a"), [""; 0]);
        assert_eq!(restore("b"), [""; 0]);

        let mut save = |file: &str| {
            let open = File::open(folder.path(file)).unwrap();
            let mut found = FileMetadata::default();
            let warnings = reader.read(Place::File(open.as_fd()), b"f", FileType::Regular, 1, BOTH, &mut found);
            assert_eq!(warnings.acl.count as usize, warnings.acl.texts.len());
            (Found::from(&found).access_acl, strings(warnings.acl.texts))
        };
        breaks();
        let warning =
            format!("acl_to_text error on file \"f\": access ACL: numbers in the place of names: ERR={why}\n");
        assert_eq!(save("a"), (NUMBER.to_vec(), vec![warning]));
        is_there_again();
        assert_eq!(save("a"), (ACL.to_vec(), Vec::new()));
        assert_eq!(save("b"), (ACL.to_vec(), Vec::new()));
    });
}

#[test]
fn an_attribute_that_fails_costs_only_itself() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"user.before", b"1");
    fd_records::xattr::push(&mut record, b"user.large", &vec![7; 70_000]);
    fd_records::xattr::push(&mut record, b"nospace.foo", b"2");
    fd_records::xattr::push(&mut record, b"user.after", b"3");
    let mut writer = MetadataWriter::new();
    let warnings = writer.apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record);
    assert_eq!(
        strings(warnings.texts),
        [
            "bxattr_linux.c:298 setxattr error on file \"f\": attribute \"user.large\": ERR=Argument list too long\n",
            "setxattr error on file \"f\": attribute \"nospace.foo\": ERR=Not supported here\n"
        ]
    );
    let found = read(&folder.path("f"), FileType::Regular, BOTH).xattrs;
    let names: Vec<_> = fd_records::xattr::entries(&found).map(|attribute| attribute.name).collect();
    assert_eq!(names, [b"user.before".as_slice(), b"user.after"]);
    let summaries = strings(writer.summaries().collect());
    assert_eq!(summaries, ["Encountered 2 xattr errors while doing restore\n"]);
}

/// Then, too, the bits of the group are the mask.
#[test]
fn no_user_gets_more_if_an_acl_among_the_attributes_can_not_be_set() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    let mut acl = 2_u32.to_le_bytes().to_vec();
    // The kernel does not take this number for a user.
    for (tag, rights) in [(1_u16, 6_u16), (2, 4), (4, 4), (0x10, 7), (0x20, 4)] {
        acl.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        acl.extend(u32::MAX.to_le_bytes());
    }
    for (value, mode) in [(acl.as_slice(), 0o644), (b"damaged", 0o604)] {
        fs::write(folder.path("f"), b"").unwrap();
        fs::set_permissions(folder.path("f"), fs::Permissions::from_mode(0o674)).unwrap();
        let mut record = Vec::new();
        fd_records::xattr::push(&mut record, b"system.posix_acl_access", value);
        let warnings = MetadataWriter::new().apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record);
        assert_eq!(warnings.texts.len(), 1);
        assert_eq!(fs::metadata(folder.path("f")).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn what_xfs_calls_an_acl_is_never_set_behind_the_acl() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    // Version, and an entry for the user 12345 that may do everything.
    let value = [&1_u32.to_be_bytes()[..], &2_u32.to_be_bytes(), &12_345_u32.to_be_bytes(), &[0, 7, 0, 0]].concat();
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"trusted.SGI_ACL_FILE", &value);
    fd_records::xattr::push(&mut record, b"trusted.SGI_ACL_DEFAULT", &value);
    fd_records::xattr::push(&mut record, b"user.after", b"1");
    let mut writer = MetadataWriter::new();
    assert_eq!(writer.apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record), NONE);
    let found = read(&folder.path("f"), FileType::Regular, BOTH).xattrs;
    let names: Vec<_> = fd_records::xattr::entries(&found).map(|attribute| attribute.name).collect();
    assert_eq!(names, [b"user.after"]);
}

#[test]
fn the_warnings_of_one_record_are_bounded() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let mut record = Vec::new();
    for number in 0..1000 {
        fd_records::xattr::push(&mut record, format!("user.{}{number}", "n".repeat(252)).as_bytes(), b"");
    }
    let mut writer = MetadataWriter::new();
    let warnings = strings(writer.apply(&folder.target("f"), b"f", Stream::LINUX_XATTR, &record).texts);
    assert_eq!(warnings.len(), 26);
    assert!(warnings[25].ends_with("975 more attributes\n"), "{warnings:?}");
    assert_eq!(strings(writer.summaries().collect()), ["Encountered 1000 xattr errors while doing restore\n"]);
}

#[test]
fn an_attribute_that_one_file_cannot_have_is_tried_on_the_next() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    fs::write(folder.path("f"), b"").unwrap();
    let target = folder.target("f");
    let mut writer = MetadataWriter::new();
    let mut apply = |name: &[u8]| {
        let mut record = Vec::new();
        fd_records::xattr::push(&mut record, name, b"1");
        writer.apply(&target, b"f", Stream::LINUX_XATTR, &record).texts.len()
    };
    assert_eq!((apply(b"nospace.foo"), apply(b"user.later")), (1, 0));
    assert!(read(&folder.path("f"), FileType::Regular, BOTH).xattrs.ends_with(b"user.later\0\0\0\x011"));
    // There may be one for each file: the first few have a message, and all are counted.
    assert_eq!((0..100).map(|_| apply(b"nospace.foo")).sum::<usize>(), 24);
    assert_eq!(strings(writer.summaries().collect()), ["Encountered 101 xattr errors while doing restore\n"]);
}

#[test]
fn a_missing_file_is_passed_over() {
    let Some(folder) = Folder::new() else { return skip::test(NO_XATTRS) };
    let mut writer = MetadataWriter::new();
    let target = folder.target("missing");
    assert_eq!(writer.apply(&target, b"m", Stream::LINUX_ACCESS_ACL, ACCESS_TEXT), NONE);
    assert_eq!(writer.apply(&target, b"m", Stream::LINUX_XATTR, b""), NONE);
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
    let error = fd_os::error_text(Errno::EBADF as i32);
    let acl = format!("acl_get_file error on file \"/f/g\": access ACL: ERR={error}\n");
    assert_eq!((strings(warnings.acl.texts), warnings.acl.count), (vec![acl], 1));
    assert_eq!(warnings.xattr, Failures::default());
    let warnings = reader.read(place, b"/f/g", FileType::Regular, 1, BOTH, &mut found).xattr;
    assert_eq!(
        strings(warnings.texts),
        [format!("bxattr_linux.c:125 llistxattr error on file \"/f/g\": ERR={error}\n")]
    );
}

/// A local user can give a file more than a record holds: what fits is saved, and the rest named.
#[test]
fn attributes_are_bounded_while_they_are_read() {
    let Some(large) = many_attributes() else { return skip::test("no file system here holds so many attributes") };
    let file = File::open(large.path().join("f")).unwrap();
    let mut found = FileMetadata::default();
    let place = Place::File(file.as_fd());
    let warnings = MetadataReader::new().read(place, b"f", FileType::Regular, 1, BOTH, &mut found).xattr;
    let xattrs = Found::from(&found).xattrs;
    let saved = fd_records::xattr::entries(&xattrs).count();
    assert!(xattrs.len() <= 1_000_000 && saved == 15, "{saved} in {} bytes", xattrs.len());
    assert_eq!((warnings.count, warnings.texts.len()), (25, 25));
}

/// A folder with a file of 40 attributes of 65,000 bytes.
fn many_attributes() -> Option<tempfile::TempDir> {
    ["/dev/shm", "/tmp", "/var/tmp"].into_iter().find_map(|place| {
        let folder = tempfile::tempdir_in(place).ok()?;
        let file = File::create(folder.path().join("f")).ok()?;
        let target = Target::Open(file.as_fd());
        let set = |number: u32| target.set_xattr(format!("user.{number}").as_bytes(), &vec![7; 65_000]).is_ok();
        (0..40).all(set).then_some(folder)
    })
}
