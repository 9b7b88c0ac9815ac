//! Tests of the plain attributes.

use super::*;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn folder() -> (tempfile::TempDir, File) {
    let folder = tempfile::tempdir().unwrap();
    let handle = File::open(folder.path()).unwrap();
    (folder, handle)
}

fn record() -> Stat {
    let me = nix::unistd::geteuid().as_raw();
    let group = nix::unistd::getegid().as_raw();
    Stat { mode: 0o106_751, uid: me, gid: group, atime: 1_000_000, mtime: 600_000_000, ..Stat::default() }
}

#[test]
fn attributes_are_set_by_descriptor_and_by_name() {
    let (folder, directory) = folder();
    let path = folder.path().join("f");
    for turn in 0..3 {
        let file = File::create(&path).unwrap();
        let pinned = pin(directory.as_fd(), b"f").unwrap();
        let target = match turn {
            0 => Target::Named { directory: directory.as_fd(), name: b"f" },
            1 => Target::Pinned { object: pinned.as_fd(), directory: directory.as_fd(), name: b"f" },
            _ => Target::Open(file.as_fd()),
        };
        assert_eq!(target.set_attributes(&record()), AttributeFailures::default());
        let found = fs::metadata(&path).unwrap();
        assert_eq!(found.mode(), 0o106_751);
        assert_eq!((found.atime(), found.atime_nsec()), (1_000_000, 0));
        assert_eq!((found.mtime(), found.mtime_nsec()), (600_000_000, 0));
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn only_missing_attributes_of_a_new_file_are_set() {
    let (folder, _directory) = folder();
    let mut usual = UsualOwner::default();
    let root = nix::unistd::geteuid().is_root();
    for turn in 0..200 {
        let path = folder.path().join(turn.to_string());
        let file = File::create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let mut wanted = Stat { mode: [0o100_600, 0o104_755, 0o100_644][turn % 3], ..record() };
        if root && turn % 5 == 1 {
            (wanted.uid, wanted.gid) = (61001, 61002);
        }
        if root && turn == 70 {
            // As if the directory gave its group.
            std::os::unix::fs::chown(&path, None, Some(61003)).unwrap();
        }
        let target = Target::Open(file.as_fd());
        assert_eq!(target.set_attributes_of_new(&wanted, &mut usual), AttributeFailures::default());
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode()), (wanted.uid, wanted.gid, wanted.mode), "{turn}");
        assert_eq!((found.atime(), found.mtime()), (wanted.atime, wanted.mtime));
        assert!(turn != 70 || !root || usual.doubt > 0);
    }
    assert_eq!(usual, UsualOwner::default(), "it is looked at again");
}

#[test]
fn a_symbolic_link_is_its_own_target() {
    let (folder, directory) = folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, b"").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::metadata(&victim).unwrap();
    symlink("victim", folder.path().join("link")).unwrap();
    let pinned = pin(directory.as_fd(), b"link").unwrap();
    let (directory, name) = (directory.as_fd(), b"link".as_slice());
    for target in [Target::Named { directory, name }, Target::Pinned { object: pinned.as_fd(), directory, name }] {
        let failures = target.set_attributes(&Stat { mode: 0o120_777, ..record() });
        assert_eq!(failures, AttributeFailures::default());
        let _refused = target.set_mode(0o777);
        assert_eq!(target.set_xattr(b"user.x", b"1"), Err(Errno::EPERM));
    }
    let after = fs::metadata(&victim).unwrap();
    assert_eq!((after.mode(), after.mtime(), after.uid()), (before.mode(), before.mtime(), before.uid()));
    assert_eq!(fs::symlink_metadata(folder.path().join("link")).unwrap().mtime(), 600_000_000);
}

/// Whether or not the owner could be set: there are file systems that take any and keep their own.
#[test]
fn set_id_bits_never_stand_for_the_wrong_owner() {
    let (_folder, directory) = folder();
    let target = Target::Open(directory.as_fd());
    let now = target.stat().unwrap();
    let (user, group) = (now.st_uid, now.st_gid);
    for (uid, gid, misplaced) in [
        (user, group, 0),
        (user + 1, group, SET_USER),
        (user, group + 1, SET_GROUP),
        (user + 1, group + 1, SET_USER | SET_GROUP),
    ] {
        assert_eq!(target.misplaced_bits(&Stat { mode: 0o6755, uid, gid, ..Stat::default() }), Ok(misplaced));
    }
}

#[test]
fn special_files_are_made() {
    let (folder, directory) = folder();
    make_special(directory.as_fd(), b"fifo", 0o010_640, 0).unwrap();
    assert_eq!(fs::metadata(folder.path().join("fifo")).unwrap().mode() & 0o170_000, 0o010_000);
    assert_eq!(make_special(directory.as_fd(), b"fifo", 0o010_640, 0), Err(Errno::EEXIST));
    match make_special(directory.as_fd(), b"null", 0o020_600, 0x103) {
        Ok(()) => assert_eq!(fs::metadata(folder.path().join("null")).unwrap().rdev(), 0x103),
        Err(Errno::EPERM) => skip::part("this user may not make devices"),
        Err(other) => panic!("{other}"),
    }
    make_special(directory.as_fd(), b"file", 0o100_600, 0).unwrap();
    assert!(fs::metadata(folder.path().join("file")).unwrap().is_file());
}
