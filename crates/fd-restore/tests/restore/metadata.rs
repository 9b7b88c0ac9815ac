//! ACLs and extended attributes: which records apply, when, and to what (reference 05 §9, §10).

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink};

use fd_messages::MessageType;
use fd_metadata::{FileMetadata, MetadataReader, Place as Source, Wanted};
use fd_records::{FileType, Replace, Stream};
use nix::fcntl::OFlag;

use crate::volume::{Frame, MTIME, Place, Saved, Volume, is_root};

const ACCESS: &[u8] = b"user::rw-\nuser:12345:rw-\ngroup::r--\nmask::rw-\nother::r--\n\0";
const DEFAULT: &[u8] = b"user::rwx\nuser:12345:rwx\ngroup::r-x\nmask::rwx\nother::r-x\n\0";

fn xattr(name: &str, value: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, name.as_bytes(), value);
    record
}

/// The records of a file, by what they are.
#[derive(PartialEq, Eq, Default, Debug)]
pub(crate) struct Found {
    access_acl: Vec<u8>,
    default_acl: Vec<u8>,
    pub(crate) xattrs: Vec<u8>,
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

pub(crate) fn metadata(place: &Place, name: &str) -> Found {
    let path = place.text(name);
    let stat = place.stat(name);
    let file_type = if stat.is_dir() {
        FileType::Directory
    } else if stat.is_symlink() {
        FileType::Symlink
    } else if !stat.is_file() {
        FileType::Special
    } else {
        FileType::Regular
    };
    let mut found = FileMetadata::default();
    let wanted = Wanted { acl: true, xattr: true };
    let handle = || {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
        OpenOptions::new().read(true).custom_flags(flags.bits()).open(&path).map(OwnedFd::from)
    };
    let source = Source::Handle(path.as_bytes(), &handle);
    MetadataReader::new().read(source, path.as_bytes(), file_type, stat.dev(), wanted, &mut found);
    Found::from(&found)
}

/// Whether extended attributes work where the tests restore to.
fn works(place: &Place) -> bool {
    let mut volume = Volume::new();
    volume.put(&Saved::file("/probe")).record(Stream::LINUX_XATTR, &xattr("user.probe", b"1"));
    place.job().run(&volume);
    !metadata(place, "probe").xattrs.is_empty()
}

#[test]
fn files_and_directories_get_both() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let mut volume = Volume::new();
    volume
        .file("/f", b"x")
        .record(Stream::LINUX_ACCESS_ACL, ACCESS)
        .record(Stream::LINUX_XATTR, &xattr("user.a", b"1"));
    volume.directory("/d/").record(Stream::LINUX_ACCESS_ACL, DEFAULT).record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
    volume.record(Stream::LINUX_XATTR, &xattr("user.b", b""));
    volume.put(&Saved::new("/e", FileType::EmptyFile, 0o100_644)).record(Stream::UNIX_ACCESS_ACL, ACCESS);
    volume.directory("/old/").record(Stream::UNIX_ACCESS_ACL, DEFAULT).record(Stream::UNIX_DEFAULT_ACL, DEFAULT);
    place.job().run(&volume).assert_quiet();
    let file = metadata(&place, "f");
    assert_eq!((file.access_acl.as_slice(), file.xattrs), (ACCESS, xattr("user.a", b"1")));
    let directory = metadata(&place, "d");
    assert_eq!((directory.access_acl.as_slice(), directory.default_acl.as_slice()), (DEFAULT, DEFAULT));
    assert_eq!(directory.xattrs, xattr("user.b", b""));
    assert_eq!(metadata(&place, "e").access_acl, ACCESS);
    let old = metadata(&place, "old");
    assert_eq!((old.access_acl.as_slice(), old.default_acl.as_slice()), (DEFAULT, DEFAULT));
    // They do not spoil the times.
    assert_eq!(place.stat("f").mtime(), crate::volume::MTIME);
}

#[test]
fn special_files_get_theirs_and_hard_links_none() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let mut volume = Volume::new();
    volume.file("/f", b"x").put(&Saved::hard_link("/h", "/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
    volume.record(Stream::LINUX_XATTR, &xattr("user.a", b"1"));
    volume.put(&Saved::new("/p", FileType::Special, 0o010_600)).record(Stream::LINUX_ACCESS_ACL, ACCESS);
    if is_root() {
        volume.record(Stream::LINUX_XATTR, &xattr("trusted.a", b"1"));
    }
    place.job().run(&volume).assert_quiet();
    assert!(metadata(&place, "h").access_acl.is_empty() && metadata(&place, "h").xattrs.is_empty());
    assert_eq!(metadata(&place, "p").access_acl, ACCESS);
    assert_eq!(!metadata(&place, "p").xattrs.is_empty(), is_root());
    // What is kept in its place gets none.
    let mut volume = Volume::new();
    volume.put(&Saved::new("/p", FileType::Special, 0o010_600)).record(Stream::LINUX_ACCESS_ACL, DEFAULT);
    assert_eq!(place.job_with(Replace::Never).run(&volume).told().len(), 1);
    assert_eq!(metadata(&place, "p").access_acl, ACCESS);
}

/// Such a file is made, without its data. Its mode alone would give the group what the mask allows.
#[test]
fn special_files_that_the_job_makes_without_their_data_get_theirs() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let mut device = Saved::new("/device", FileType::Raw, 0o060_664);
    device.stat.rdev = 0x7fe;
    let fifo = Saved::new("/fifo", FileType::Fifo, 0o010_664);
    for saved in [Some(fifo), is_root().then_some(device)].into_iter().flatten() {
        let mut volume = Volume::new();
        volume.put(&saved).record(Stream::FILE_DATA, b"lost").record(Stream::LINUX_ACCESS_ACL, ACCESS);
        if is_root() {
            volume.record(Stream::LINUX_XATTR, &xattr("trusted.a", b"1"));
        }
        let finished = place.job().run(&volume);
        if finished.told().iter().any(|(_, text)| text.contains("Operation not permitted")) {
            return skip::test("root may not make devices here");
        }
        assert!(finished.only().1.contains("which made it without its data"), "{:?}", finished.told());
        let found = metadata(&place, std::str::from_utf8(&saved.name[1..]).unwrap());
        assert_eq!((found.access_acl.as_slice(), !found.xattrs.is_empty()), (ACCESS, is_root()));
    }
}

#[test]
fn capabilities_survive_another_name_and_an_update_of_the_file() {
    let place = Place::new();
    if !works(&place) || !is_root() {
        return skip::test("needs root and extended attributes");
    }
    let mut saved = Saved::file("/f");
    saved.stat.uid = 1001;
    let record = xattr("security.capability", &CAPABILITY);
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::LINUX_XATTR, &record);
    let link = Saved { stat: saved.stat, ..Saved::hard_link("/h", "/f") };
    volume.put(&link);
    let mut update = saved.clone();
    update.stream = Stream::ATTRIBUTES_UPDATE;
    update.stat.mode = 0o100_600;
    place.job().run(&volume).assert_quiet();
    assert_eq!(metadata(&place, "f").xattrs, record);
    volume.put(&update);
    place.job().run(&volume).assert_quiet();
    assert_eq!((metadata(&place, "f").xattrs, place.stat("f").mode()), (record.clone(), 0o100_600));
    // The kernel takes it away with the owner, and what stands behind the update sets it again.
    update.stat.uid = 1002;
    volume.put(&update).record(Stream::LINUX_XATTR, &[record.clone(), xattr("user.new", b"n")].concat());
    place.job().run(&volume).assert_quiet();
    assert_eq!(metadata(&place, "f").xattrs.len(), record.len() + xattr("user.new", b"n").len());
    assert_eq!(place.stat("f").uid(), 1002);
}

const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The ACL of a backup would give rights again that were taken away since.
#[test]
fn what_is_kept_gets_no_metadata() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    fs::create_dir(place.path("d")).unwrap();
    fs::write(place.path("f"), b"").unwrap();
    symlink("elsewhere", place.path("l")).unwrap();
    let [acl, attribute] = [DEFAULT.to_vec(), xattr("trusted.foo", b"1")];
    for mode in [Replace::Never, Replace::IfNewer] {
        let mut volume = Volume::new();
        volume.directory("/d/").record(Stream::LINUX_ACCESS_ACL, &acl).record(Stream::LINUX_DEFAULT_ACL, &acl);
        volume.record(Stream::LINUX_XATTR, &attribute);
        volume.file("/f", b"x").record(Stream::LINUX_ACCESS_ACL, ACCESS).record(Stream::LINUX_XATTR, &attribute);
        volume.symlink("/l", "nowhere").record(Stream::LINUX_XATTR, &attribute);
        let finished = place.job_with(mode).run(&volume);
        assert_eq!(finished.told().len(), 3, "{mode:?}");
        for name in ["d", "f", "l"] {
            assert_eq!(metadata(&place, name), Found::default(), "{mode:?} {name}");
        }
    }
}

#[test]
fn attributes_behind_damage_are_missed_with_a_warning() {
    let place = Place::new();
    for damaged in [&xattr("user.two", b"22")[..10], &xattr("user.t\0wo", b"2"), &xattr("", b"2"), b"?"] {
        let left = damaged.len();
        let mut volume = Volume::new();
        volume.file("/f", b"x").record(Stream::LINUX_XATTR, damaged);
        let finished = place.job().run(&volume);
        let text = format!(
            "Extended attributes of file \"{}\" are damaged: the last {left} bytes of their record are left out\n",
            place.text("f")
        );
        let sum = "Encountered 1 xattr errors while doing restore\n";
        assert_eq!(finished.told(), [(MessageType::Warning, text.as_str()), (MessageType::Warning, sum)]);
    }
}

#[test]
fn links_get_attributes() {
    let place = Place::new();
    if !works(&place) || !is_root() {
        return skip::test("needs root and extended attributes");
    }
    let mut volume = Volume::new();
    volume.symlink("/l", "nowhere").record(Stream::LINUX_XATTR, &xattr("trusted.foo", b"1"));
    place.job().run(&volume).assert_quiet();
    assert_eq!(metadata(&place, "l").xattrs, xattr("trusted.foo", b"1"));
    // user attributes may not stand on a link.
    let mut volume = Volume::new();
    volume.symlink("/l", "nowhere").record(Stream::LINUX_XATTR, &xattr("user.foo", b"2"));
    let text = format!(
        "bxattr_linux.c:298 setxattr error on file \"{}\": attribute \"user.foo\": ERR=Operation not permitted\n",
        place.text("l")
    );
    let total = "Encountered 1 xattr errors while doing restore\n";
    let finished = place.job().run(&volume);
    assert_eq!(finished.told(), [(MessageType::Warning, text.as_str()), (MessageType::Warning, total)]);
}

#[test]
fn an_update_gets_acls_and_attributes() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    fs::write(place.path("f"), b"kept").unwrap();
    let mut update = Saved::file("/f");
    update.stream = Stream::ATTRIBUTES_UPDATE;
    let mut volume = Volume::new();
    volume.put(&update).record(Stream::LINUX_ACCESS_ACL, ACCESS).record(Stream::LINUX_XATTR, &xattr("user.a", b"1"));
    place.job().run(&volume).assert_quiet();
    let found = metadata(&place, "f");
    assert_eq!((found.access_acl.as_slice(), found.xattrs), (ACCESS, xattr("user.a", b"1")));
}

/// Directories with a default ACL give it to what is made in them.
#[test]
fn what_has_no_acl_on_the_volume_has_none_after_the_restore() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let mut above = Volume::new();
    above.directory("/d/").record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
    place.job().run(&above).assert_quiet();
    let mut volume = Volume::new();
    volume.file("/d/f", b"data").file("/d/made/f", b"data");
    volume.put(&Saved::file("/d/with-acl")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
    volume.put(&Saved::new("/d/fifo", FileType::Special, 0o010_640)).symlink("/d/link", "f");
    volume.directory("/d/sub/").directory("/d/with-default/").record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
    place.job().run(&volume).assert_quiet();
    let names = ["f", "made/f", "made", "fifo", "link", "sub"];
    for name in names.map(|name| format!("d/{name}")) {
        let found = metadata(&place, &name);
        let acls = (found.access_acl.as_slice(), found.default_acl.as_slice());
        assert_eq!(acls, (&b""[..], &b""[..]), "{name}");
    }
    let modes = ["d/f", "d/made/f", "d/fifo", "d/sub"].map(|name| place.mode(name) & 0o7777);
    assert_eq!(modes, [0o644, 0o644, 0o640, 0o750]);
    assert_eq!(metadata(&place, "d/with-acl").access_acl, ACCESS);
    assert_eq!(metadata(&place, "d/with-default").default_acl, DEFAULT);
    assert_eq!(metadata(&place, "d").default_acl, DEFAULT);
}

/// A directory that was there is one more object of the job, as far as the volume has ACLs.
/// Its ACLs may be what has not come.
#[test]
fn a_directory_and_a_file_at_which_the_records_end_too_early_lose_no_acl() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    for end in [Frame::Cancel, Frame::Lost] {
        let mut before = Volume::new();
        before.directory("/d/").record(Stream::LINUX_ACCESS_ACL, DEFAULT).record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
        place.job().run(&before).assert_quiet();
        let mut volume = Volume::new();
        volume.put(&Saved::file("/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
        let mut of_file = volume.clone();
        volume.directory("/d/").frames.push(end.clone());
        place.job().run(&volume);
        let found = metadata(&place, "d");
        assert!(!found.access_acl.is_empty() && !found.default_acl.is_empty(), "{end:?}");
        // Whole as far as its length tells.
        of_file.file("/d/g", b"data").frames.push(end.clone());
        let finished = place.job().run(&of_file);
        // Of a canceled job it may not be made at all.
        if place.exists("d/g") {
            assert_eq!(place.mode("d/g") & 0o7777, 0o1600, "{end:?}: {:?}", finished.messages);
            fs::remove_file(place.path("d/g")).unwrap();
        }
    }
}

/// Without its ACL the owning group has what only the mask allows.
#[test]
fn a_new_directory_whose_acl_has_not_come_stays_private_and_the_next_restore_gives_it_its_own() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    for (end, has_come) in [(Frame::Cancel, false), (Frame::Lost, false), (Frame::Lost, true)] {
        let mut saved = Saved::directory("/new/");
        saved.stat.mode = 0o040_770;
        if is_root() {
            saved.stat.uid = 1001;
        }
        let mut first = Volume::new();
        first.put(&Saved::file("/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
        let mut whole = first.clone();
        whole.put(&saved).record(Stream::LINUX_ACCESS_ACL, DEFAULT);
        if has_come {
            first = whole.clone();
        } else {
            first.put(&saved);
        }
        first.frames.push(end.clone());
        let finished = place.job().run(&first);
        // Where threads make it, a canceled job may not have begun it.
        if matches!(end, Frame::Cancel) && !place.path("new").exists() {
            continue;
        }
        let text = format!(
            "Directory {} is not complete: the restore ended after its attributes. The next restore applies its record.\n",
            place.text("new/")
        );
        let is_told = finished.told().contains(&(MessageType::Warning, &text));
        assert_eq!(is_told, !has_come, "{end:?}: {:?}", finished.told());
        let mode = if has_come { 0o775 } else { 0o1700 };
        assert_eq!(place.mode("new") & 0o7777, mode, "{end:?} {has_come}");
        place.job_with(Replace::IfNewer).run(&whole);
        assert_eq!(metadata(&place, "new").access_acl, DEFAULT, "{end:?} {has_come}");
        assert_eq!((place.stat("new").uid(), place.stat("new").mtime()), (saved.stat.uid, MTIME));
        fs::remove_dir(place.path("new")).unwrap();
    }
}

/// It keeps its own, and its time says that it is restored.
#[test]
fn a_directory_whose_acl_may_not_have_come_is_named() {
    let place = Place::new();
    fs::create_dir(place.path("d")).unwrap();
    let mut volume = Volume::new();
    volume.put(&Saved::file("/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS).directory("/d/");
    volume.frames.push(Frame::Lost);
    let finished = place.job().run(&volume);
    let text = format!(
        "Directory {} may lack its ACL: the restore ended after its attributes. Restore it with replace=always.\n",
        place.text("d/")
    );
    let about_it: Vec<_> = finished.told().into_iter().filter(|(_, text)| text.contains("/d/")).collect();
    assert_eq!(about_it, [(MessageType::Warning, text.as_str())]);
}

#[test]
fn a_directory_that_is_restored_over_one_has_the_acls_of_the_volume_only() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let names = ["bare", "access", "default"];
    let both = || {
        let mut volume = Volume::new();
        for name in names {
            let directory = format!("/{name}/");
            volume.directory(&directory).record(Stream::LINUX_ACCESS_ACL, DEFAULT);
            volume.record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
        }
        place.job().run(&volume).assert_quiet();
    };
    let has_acls = |name: &str| {
        let found = metadata(&place, name);
        [!found.access_acl.is_empty(), !found.default_acl.is_empty()]
    };
    let of_the_volume = [[false, false], [true, false], [false, true]];
    let as_they_were = [[true, true]; 3];
    for (replace, acl_before, after) in [
        (Replace::Always, true, of_the_volume),
        // It may be that the backup has saved none.
        (Replace::Always, false, as_they_were),
        (Replace::IfNewer, true, as_they_were),
        (Replace::Never, true, as_they_were),
    ] {
        both();
        let mut volume = Volume::new();
        volume.put(&Saved::file("/bare/f"));
        if acl_before {
            volume.record(Stream::LINUX_ACCESS_ACL, ACCESS);
        }
        volume.directory("/bare/");
        if acl_before {
            volume.directory("/access/").record(Stream::LINUX_ACCESS_ACL, DEFAULT);
            volume.directory("/default/").record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
        }
        let mut job = place.job();
        job.plan.replace = replace;
        let finished = job.run(&volume);
        assert_eq!(names.map(has_acls), after, "{replace:?}, {acl_before}");
        let told: Vec<&str> = finished.told().into_iter().map(|(_, text)| text).collect();
        let removed = |what, name: &str| {
            format!("Removed the {what} of directory \"{}/\", of which the backup has none\n", place.text(name))
        };
        if after == of_the_volume {
            let [first, second] = [removed("ACL", "bare"), removed("default ACL", "bare")];
            assert_eq!(told, [first, second, removed("default ACL", "access"), removed("ACL", "default")]);
            assert_eq!(place.mode("bare") & 0o7777, 0o750, "what the mask was is the group's bits of the record");
        }
        assert_eq!(told.iter().any(|text| text.contains("Removed")), after == of_the_volume, "{told:?}");
        for name in names {
            std::fs::remove_dir_all(place.path(name)).unwrap();
        }
    }
}

/// With `xattrsupport` and without `aclsupport` they are among the attributes.
#[test]
fn a_directory_keeps_the_acls_that_come_among_its_attributes() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let mut before = Volume::new();
    before.directory("/d/").record(Stream::LINUX_ACCESS_ACL, DEFAULT).record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
    place.job().run(&before).assert_quiet();
    // `DEFAULT` as the kernel has it: version, then tag, rights and number of each entry.
    let mut acl = 2_u32.to_le_bytes().to_vec();
    let nobody = u32::MAX;
    for (tag, rights, id) in
        [(1_u16, 7_u16, nobody), (2, 7, 12345), (4, 5, nobody), (0x10, 7, nobody), (0x20, 5, nobody)]
    {
        acl.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        acl.extend(id.to_le_bytes());
    }
    let both = [xattr("system.posix_acl_access", &acl), xattr("system.posix_acl_default", &acl)].concat();
    let mut volume = Volume::new();
    volume.put(&Saved::file("/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
    volume.directory("/d/").record(Stream::LINUX_XATTR, &both);
    place.job().run(&volume).assert_quiet();
    let found = metadata(&place, "d");
    assert!(!found.access_acl.is_empty() && !found.default_acl.is_empty());
}

#[test]
fn each_acl_that_a_directory_loses_is_named_and_many_are_counted() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let (mut before, mut volume) = (Volume::new(), Volume::new());
    volume.put(&Saved::file("/f")).record(Stream::LINUX_ACCESS_ACL, ACCESS);
    for number in 0..30 {
        let directory = format!("/{number}/");
        before.directory(&directory).record(Stream::LINUX_DEFAULT_ACL, DEFAULT);
        volume.directory(&directory);
    }
    place.job().run(&before).assert_quiet();
    let finished = place.job().run(&volume);
    let told = finished.told();
    let named =
        format!("Removed the default ACL of directory \"{}/\", of which the backup has none\n", place.text("24"));
    assert_eq!(told.len(), 26, "{told:?}");
    assert_eq!(told[24], (MessageType::Warning, named.as_str()));
    assert_eq!(told[25], (MessageType::Warning, "Removed 30 ACLs of directories of which the backup has none\n"));
}

#[test]
fn capabilities_survive_the_change_of_the_owner() {
    let place = Place::new();
    if !works(&place) || !is_root() {
        return skip::test("needs root and extended attributes");
    }
    let mut saved = Saved::file("/f");
    saved.stat.uid = 1001;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::LINUX_XATTR, &xattr("security.capability", &CAPABILITY));
    place.job().run(&volume).assert_quiet();
    assert_eq!(metadata(&place, "f").xattrs, xattr("security.capability", &CAPABILITY));
    assert_eq!(place.stat("f").uid(), 1001);
}

#[test]
fn a_flood_of_records_is_bounded() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/f", b"x");
    for _ in 0..100 {
        volume.record(Stream::LINUX_XATTR, &vec![0; 1000]);
    }
    let finished = place.job().run(&volume);
    let text = format!(
        "More ACL and extended attribute records than expected for {}; the rest is ignored.\n",
        place.text("f")
    );
    assert_eq!(finished.told()[0], (MessageType::Warning, text.as_str()));
}

/// What a restore keeps for one file at most, as docs/limits.md says.
const MOST: usize = 4_000_000;

#[test]
fn held_metadata_of_one_file_is_bounded_in_bytes() {
    let place = Place::new();
    if !works(&place) {
        return skip::test("no extended attributes here");
    }
    let text = |name: &str| {
        format!(
            "More ACL and extended attribute records than expected for {}; the rest is ignored.\n",
            place.text(name)
        )
    };
    let padded = |name: &str, length: usize| {
        let mut record = xattr(name, b"1");
        // Zeros behind the last attribute are ignored.
        record.resize(length, 0);
        record
    };
    let mut volume = Volume::new();
    volume.file("/most", b"x").record(Stream::LINUX_ACCESS_ACL, ACCESS);
    volume.record(Stream::LINUX_XATTR, &padded("user.a", MOST / 2));
    volume.record(Stream::LINUX_XATTR, &padded("user.b", MOST / 2));
    volume.file("/flood", b"x").record(Stream::LINUX_XATTR, &xattr("user.first", b"1"));
    let more = padded("user.more", MOST);
    for _ in 0..64 {
        volume.record(Stream::LINUX_XATTR, &more);
    }
    volume.record(Stream::LINUX_XATTR, &xattr("user.last", b"1"));
    volume.file("/next", b"x").record(Stream::LINUX_XATTR, &xattr("user.c", b"1"));
    let finished = place.job().run(&volume);
    assert_eq!(finished.told(), [(MessageType::Warning, text("flood").as_str())]);
    assert_eq!(metadata(&place, "most").xattrs, [xattr("user.a", b"1"), xattr("user.b", b"1")].concat());
    assert_eq!(metadata(&place, "flood").xattrs, xattr("user.first", b"1"));
    assert_eq!(metadata(&place, "next").xattrs, xattr("user.c", b"1"));
}

#[test]
fn records_of_other_systems_cause_a_warning() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume
        .file("/f", b"x")
        .record(Stream::new(1002), ACCESS)
        .record(Stream::new(1991), b"x")
        .record(Stream::PLUGIN_ACL, b"x");
    let finished = place.job().run(&volume);
    let f = place.text("f");
    assert_eq!(
        finished.told(),
        [
            (
                MessageType::Warning,
                format!("bacl.c:505 Can't restore ACLs of {f} - incompatible acl stream encountered - 1002\n").as_str()
            ),
            (
                MessageType::Warning,
                format!(
                    "bxattr.c:488 Can't restore Extended Attributes of {f} - incompatible xattr stream encountered - 1991\n"
                )
                .as_str()
            ),
        ]
    );
}
