//! Parents that have to be made, directories that exist, and their attributes at the end
//! (reference 05 §6.4, §8.2).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use fd_messages::MessageType;
use fd_records::{FileType, Replace, Stream};

use crate::volume::{Frame, MTIME, Place, Saved, Volume, is_root, job_below, let_it_be_old, my_ids};

/// The mode that a new directory gets from the system.
fn plain_mode(place: &Place) -> u32 {
    fs::create_dir(place.path("plain")).unwrap();
    place.mode("plain")
}

#[test]
fn parents_of_a_file_are_made() {
    let place = Place::new();
    let mut saved = Saved::file("/a/b/c.txt");
    if is_root() {
        (saved.stat.uid, saved.stat.gid) = (1001, 1002);
    } else {
        skip::part("needs root for another owner");
    }
    job_below(&place.text("w")).run(Volume::new().put(&saved)).assert_quiet();
    let plain = plain_mode(&place);
    assert_eq!((place.mode("w"), place.mode("w/a")), (plain, plain));
    assert_eq!(place.stat("w/a").uid(), place.stat("plain").uid());
    // The last one takes after the file.
    assert_eq!(place.mode("w/a/b"), 0o040_744);
    assert_eq!((place.stat("w/a/b").uid(), place.stat("w/a/b").gid()), (saved.stat.uid, saved.stat.gid));
}

#[test]
fn new_parents_of_other_objects_get_their_owner_and_mode_but_others_cannot_write_there() {
    let place = Place::new();
    let mut setuid = Saved::file("/s/f");
    setuid.stat.mode = 0o104_750;
    let mut shared = Saved::file("/g/f");
    shared.stat.mode = 0o102_664;
    let mut volume = Volume::new();
    volume.put(&setuid).put(&shared).symlink("/l/l", "x");
    place.job().run(&volume).assert_quiet();
    assert_eq!(["s", "g", "l"].map(|name| place.mode(name) & 0o7777), [0o750, 0o744, 0o755]);
}

/// Who owns a directory while it is filled can put names and ACLs there that stay; and what is in
/// it may be private by the directory's mode only.
#[test]
fn a_new_parent_belongs_to_the_job_until_it_is_left() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    let mut mail = Saved::file("/mail/alice");
    (mail.stat.uid, mail.stat.mode) = (12345, 0o100_600);
    let new = |place: &Place| Frame::Owned(place.path("mail"), (0, 0o1700));
    let mut volume = Volume::new();
    volume.put(&mail).frames.push(new(&place));
    volume.symlink("/mail/link", "x").frames.push(new(&place));
    volume.directory("/mail/");
    place.job().run(&volume).assert_quiet();
    assert_eq!((place.stat("mail").uid(), place.mode("mail")), (my_ids().0, 0o040_750), "its record");
    let place = Place::new();
    let mut alone = Volume::new();
    alone.put(&mail).frames.push(new(&place));
    place.job().run(&alone).assert_quiet();
    assert_eq!((place.stat("mail").uid(), place.mode("mail")), (12345, 0o040_700), "no record");
}

/// The files in it are replaced by the next restore, but nobody could reach them.
#[test]
fn a_directory_that_a_killed_restore_has_left_is_restored_in_every_replace_mode() {
    let leave = |place: &Place, mode: u32| {
        fs::create_dir(place.path("d")).unwrap();
        fs::set_permissions(place.path("d"), fs::Permissions::from_mode(mode)).unwrap();
        let_it_be_old();
    };
    let mut volume = Volume::new();
    volume.file("/d/f", b"x").directory("/d/");
    for replace in [Replace::Always, Replace::Never, Replace::IfNewer, Replace::IfOlder] {
        // The second one is in a directory that gives its group to what is made there.
        for left in [0o1700, 0o3700] {
            let place = Place::new();
            leave(&place, left);
            place.job_with(replace).run(&volume).assert_quiet();
            assert_eq!((place.mode("d"), place.stat("d").mtime()), (0o040_750, MTIME), "{replace:?}");
        }
    }
    // One that has its attributes is kept with this mode, too, and so is one with another mode.
    let mut marked = Saved::directory("/d/");
    marked.stat.mode = 0o041_700;
    for (mode, saved) in [(0o1700, &marked), (0o700, &Saved::directory("/d/"))] {
        let place = Place::new();
        leave(&place, mode);
        let mut job = place.job();
        if mode == 0o1700 {
            job.run(Volume::new().put(saved)).assert_quiet();
            let_it_be_old();
        }
        job.plan.replace = Replace::Never;
        let finished = job.run(Volume::new().put(saved));
        assert_eq!(finished.only().0, MessageType::Skipped);
        assert_eq!(place.mode("d") & 0o7777, mode);
    }
}

#[test]
fn new_parents_of_a_directory_get_its_owner_and_mode() {
    let place = Place::new();
    let mut saved = Saved::directory("/data/emptydir/");
    saved.stat.mode = 0o041_770;
    job_below(&place.text("w")).run(Volume::new().put(&saved)).assert_quiet();
    for (name, mode) in [("w", 0o040_750), ("w/data", 0o040_750), ("w/data/emptydir", 0o041_770)] {
        assert_eq!(place.mode(name), mode, "{name}");
    }
    assert_eq!(place.stat("w/data/emptydir").mtime(), MTIME);
}

#[test]
fn records_that_come_later_correct_the_parents() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/a/b/f", b"x");
    volume.frames.extend(["a", "a/b"].map(|name| Frame::Owned(place.path(name), (my_ids().0, 0o1700))));
    volume.directory("/a/b/").directory("/a/");
    place.job().run(&volume).assert_quiet();
    for name in ["a", "a/b"] {
        assert_eq!((place.mode(name), place.stat(name).mtime()), (0o040_750, MTIME), "{name}");
    }
}

#[test]
fn directories_get_their_times_in_any_order() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.directory("/a/").directory("/a/b/").directory("/a/b/c/");
    volume.file("/a/b/c/f", b"x").file("/a/b/g", b"y").symlink("/a/l", "x").file("/z", b"");
    // Replaces what was restored before.
    volume.file("/a/b/g", b"again").directory("/a/new/");
    place.job().run(&volume).assert_quiet();
    for name in ["a", "a/b", "a/b/c", "a/new"] {
        assert_eq!((place.mode(name), place.stat(name).mtime()), (0o040_750, MTIME), "{name}");
    }
    assert_eq!(place.read("a/b/g"), b"again");
}

#[test]
fn a_later_record_of_a_directory_wins() {
    let place = Place::new();
    let mut later = Saved::directory("/a/");
    later.stat.mtime = MTIME + 500;
    let mut volume = Volume::new();
    volume.file("/a/f", b"x").directory("/a/").file("/a/g", b"x").put(&later).file("/a/h", b"x");
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.stat("a").mtime(), MTIME + 500);
}

#[test]
fn a_directory_without_a_record_gets_new_times() {
    let place = Place::new();
    fs::create_dir(place.path("a")).unwrap();
    let mut volume = Volume::new();
    volume.directory("/other/").file("/a/f", b"x");
    place.job().run(&volume).assert_quiet();
    assert!(place.stat("a").mtime() > MTIME);
}

#[test]
fn an_existing_directory_gets_its_attributes() {
    let place = Place::new();
    fs::create_dir(place.path("a")).unwrap();
    fs::write(place.path("a/f"), b"kept").unwrap();
    place.job().run(Volume::new().directory("/a/")).assert_quiet();
    assert_eq!((place.mode("a"), place.stat("a").mtime()), (0o040_750, MTIME));
    assert_eq!(place.read("a/f"), b"kept");
}

#[test]
fn very_deep_trees_are_restored() {
    let place = Place::new();
    let deep = "/d".repeat(300);
    let mut volume = Volume::new();
    volume.file(&format!("{deep}/f"), b"x");
    for depth in (1..=300).rev() {
        volume.directory(&format!("{}/", "/d".repeat(depth)));
    }
    volume.file(&format!("{deep}/g"), b"y");
    place.job().run(&volume).assert_quiet();
    for depth in [1, 31, 32, 33, 63, 64, 65, 299, 300] {
        let name = "d/".repeat(depth);
        assert_eq!((place.mode(&name), place.stat(&name).mtime()), (0o040_750, MTIME), "depth {depth}");
    }
    assert_eq!(place.read(&format!("{}/g", deep.trim_start_matches('/'))), b"y");
}

#[test]
fn a_parent_that_is_a_file_fails_twice_as_in_the_reference() {
    let place = Place::new();
    fs::write(place.path("p"), b"kept").unwrap();
    let mut volume = Volume::new();
    volume.file("/p/f", b"x").file("/p/g", b"x").file("/p/q/h", b"x").file("/ok", b"x");
    let finished = place.job().run(&volume);
    let p = place.text("p");
    assert_eq!(
        finished.told(),
        [
            (MessageType::Error, format!("mkpath.c:198 {p} exists but is not a directory.\n").as_str()),
            (MessageType::Error, format!("create_file.c:254 Could not create {p}/g: ERR=Not a directory\n").as_str()),
            (MessageType::Error, format!("mkpath.c:144 {p} exists but is not a directory.\n").as_str()),
        ]
    );
    assert_eq!(place.read("ok"), b"x");
    assert_eq!(finished.files, 4);
}

#[test]
fn an_existing_link_is_followed_but_nothing_is_made_below_it() {
    let place = Place::new();
    fs::create_dir_all(place.path("w/elsewhere/have")).unwrap();
    symlink("elsewhere", place.path("w/out")).unwrap();
    let_it_be_old();
    let mut volume = Volume::new();
    volume.file("/out/a", b"a").file("/out/have/b", b"b").file("/out/new/c", b"c").directory("/out/have/");
    let finished = job_below(&place.text("w")).run(&volume);
    let text = format!("mkpath.c:144 {} exists but is not a directory.\n", place.text("w/out"));
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    assert_eq!(place.read("w/elsewhere/a"), b"a");
    assert_eq!(place.read("w/elsewhere/have/b"), b"b");
    assert!(!place.exists("w/elsewhere/new"));
    assert_eq!(place.mode("w/elsewhere/have"), 0o040_750);
    assert!(place.stat("w/out").is_symlink());
}

#[test]
fn messages_show_names_as_they_were_given() {
    let place = Place::new();
    fs::write(place.path("p"), b"").unwrap();
    let below = format!("{}/", place.root().display());
    let finished = job_below(&below).run(Volume::new().file("/p/q/f", b"x"));
    assert_eq!(finished.only().1, format!("mkpath.c:144 {below}/p exists but is not a directory.\n"));
}

#[test]
fn invalid_names_are_reported() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/x/", FileType::Regular, 0o100_644)).record(Stream::FILE_DATA, b"x");
    let finished = place.job().run(&volume);
    assert_eq!(finished.only(), (MessageType::Error, "create_file.c:496 Zero length filename: /x/\n"));
}

#[test]
fn two_rounds_share_the_state_of_the_job() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.replace = Replace::Never;
    let mut state = fd_restore::RestoreState::new(&job.plan, fd_restore::LinkRule::from_now());
    job.run_round(&mut state, Volume::new().file("/a/f", b"x").directory("/a/")).assert_quiet();
    let mut later = Saved::directory("/a/");
    later.stat.mode = 0o040_711;
    job.run_round(&mut state, Volume::new().put(&later)).assert_quiet();
    assert_eq!(place.mode("a"), 0o040_711);
    job.run_round(&mut state, Volume::new().file("/a/g", b"x")).assert_quiet();
    assert_eq!(place.stat("a").mtime(), MTIME);
}
