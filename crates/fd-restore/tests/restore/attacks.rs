//! Nothing on the volume and no other user leads a write out of the place that the operator chose.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::time::{Duration, SystemTime};

use fd_messages::MessageType;
use fd_records::{FileType, Replace, Stream};

use crate::volume::{Finished, Frame, MTIME, Place, Saved, Volume, is_root, job_below, let_it_be_old};

/// A place with a victim outside of the restore directory `w`.
pub(crate) fn scene() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("w")).unwrap();
    fs::create_dir(place.path("victim")).unwrap();
    fs::write(place.path("victim/f"), b"kept").unwrap();
    fs::set_permissions(place.path("victim/f"), fs::Permissions::from_mode(0o600)).unwrap();
    let_it_be_old();
    place
}

/// The state of the victim.
pub(crate) fn victim(place: &Place) -> Vec<(String, Vec<u8>, u32, u32, i64, i64)> {
    let mut seen = Vec::new();
    let mut look = |name: String, data: Vec<u8>| {
        let stat = place.stat(&name);
        seen.push((name, data, stat.mode(), stat.uid(), stat.mtime(), stat.ctime_nsec()));
    };
    look("victim".to_owned(), Vec::new());
    for entry in fs::read_dir(place.path("victim")).unwrap() {
        let name = format!("victim/{}", entry.unwrap().file_name().to_str().unwrap());
        // Nobody may ever write to a fifo.
        let data = if place.stat(&name).is_file() { fs::read(place.path(&name)).unwrap() } else { Vec::new() };
        look(name, data);
    }
    seen.sort();
    seen
}

#[test]
fn dots_do_not_lead_out() {
    let place = scene();
    let before = victim(&place);
    let escapes = ["/../victim/f", "/a/../../victim/f", "/./../victim/new", "/.."];
    for name in escapes {
        for file_type in [FileType::Regular, FileType::Symlink, FileType::Special, FileType::Directory, FileType::Raw] {
            let mut saved = Saved::new(name, file_type, 0o010_777);
            saved.link = b"x".to_vec();
            let mut volume = Volume::new();
            volume
                .put(&saved)
                .record(Stream::FILE_DATA, b"evil")
                .record(Stream::LINUX_ACCESS_ACL, b"u::rwx,g::rwx,o::rwx");
            let finished = job_below(&place.text("w")).run(&volume);
            let (kind, text) = finished.only();
            assert_eq!(kind, MessageType::Error);
            assert!(text.ends_with("not restored: the name leads out of the restore directory.\n"), "{text}");
        }
    }
    assert_eq!(victim(&place), before);
    // Dots that stay inside are harmless.
    job_below(&place.text("w")).run(Volume::new().file("/a/../b", b"x")).assert_quiet();
    assert_eq!(place.read("w/b"), b"x");
}

#[test]
fn a_link_of_the_volume_is_not_followed() {
    let place = scene();
    let before = victim(&place);
    for target in ["../victim".to_owned(), place.text("victim")] {
        let mut volume = Volume::new();
        volume.symlink("/d", &target);
        volume.file("/d/f", b"evil").file("/d/new", b"evil").symlink("/d/link", "evil").directory("/d/made/");
        volume.put(&Saved::new("/d/fifo", FileType::Special, 0o010_666));
        volume.put(&Saved::hard_link("/d/hard", "/d/f"));
        volume.put(&Saved::new("/d/f", FileType::Raw, 0o100_666)).record(Stream::FILE_DATA, b"evil");
        volume.patch(&Saved::file("/d/f")).record(Stream::FILE_DATA, b"evil").stop();
        let mut update = Saved::file("/d/f");
        update.stream = Stream::ATTRIBUTES_UPDATE;
        volume.put(&update);
        let finished = job_below(&place.text("w")).run(&volume);
        assert_eq!(victim(&place), before);
        assert!(finished.told().iter().all(|(kind, _)| *kind == MessageType::Error));
        let refused = format!(
            "File {} not restored: will not follow the symbolic link {}: it is newer than this job.\n",
            place.text("w/d/f"),
            place.text("w/d")
        );
        assert_eq!(finished.told()[0].1, refused);
        assert_eq!(finished.told().len(), 9);
    }
}

/// Restores volumes one after the other, each by a job of its own that finds what the ones before
/// made old.
fn jobs_in_a_row(place: &Place, volumes: &[Volume]) -> Vec<Finished> {
    let run = |volume| {
        let finished = job_below(&place.text("w")).run(volume);
        let_it_be_old();
        finished
    };
    volumes.iter().map(run).collect()
}

/// Each attack falls into two jobs at every place: what the first one made is as old as anything
/// else to the second one.
#[test]
fn links_made_by_an_earlier_job_do_not_lead_out() {
    type Put = for<'v> fn(&'v mut Volume, &str) -> &'v mut Volume;
    let attacks: [&[Put]; 6] = [
        &[
            |volume, out| volume.symlink("/d", out),
            |volume, _| volume.file("/d/f", b"evil"),
            |volume, _| {
                let mut program = Saved::file("/d/new");
                program.stat.mode = 0o104_755;
                volume.put(&program).record(Stream::FILE_DATA, b"evil")
            },
            |volume, _| volume.symlink("/d/link", "evil"),
            |volume, _| {
                let mut open = Saved::directory("/d/");
                open.stat.mode = 0o040_777;
                volume.put(&open).record(Stream::LINUX_ACCESS_ACL, b"u::rwx,g::rwx,o::rwx\0")
            },
            |volume, _| volume.directory("/d/made/"),
            |volume, _| volume.put(&Saved::new("/d/fifo", FileType::Special, 0o010_666)),
            |volume, _| volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..Saved::file("/d/f") }),
            |volume, _| volume.patch(&Saved::file("/d/f")).record(Stream::FILE_DATA, b"evil").stop(),
        ],
        // A name of the victim itself, then its owner and mode.
        &[
            |volume, out| volume.symlink("/d", out),
            |volume, _| {
                let mut greedy = Saved::hard_link("/mine", "/d/f");
                greedy.stat.mode = 0o104_777;
                volume.put(&greedy)
            },
            |volume, _| volume.file("/mine", b"evil"),
        ],
        // Links to links, and a link below another one.
        &[
            |volume, _| volume.symlink("/one", "two"),
            |volume, out| volume.symlink("/two", out),
            |volume, _| volume.file("/one/f", b"evil"),
        ],
        &[
            |volume, _| volume.directory("/a/b/"),
            |volume, _| volume.symlink("/up", "a/b"),
            |volume, _| volume.symlink("/a/b/out", "../../../victim"),
            |volume, _| volume.file("/up/out/f", b"evil"),
        ],
        // A directory that becomes a link.
        &[
            |volume, _| volume.file("/d/f", b"good"),
            |volume, out| volume.symlink("/d/sub", out),
            |volume, _| volume.file("/d/sub/f", b"evil"),
        ],
        &[
            |volume, out| volume.symlink("/f", &format!("{out}/f")),
            |volume, _| volume.file("/f", b"evil"),
            |volume, _| volume.put(&Saved::hard_link("/g", "/f")),
        ],
    ];
    for attack in attacks {
        for cut in 0..=attack.len() {
            for relative in [true, false] {
                let place = scene();
                let before = victim(&place);
                let out = if relative { "../victim".to_owned() } else { place.text("victim") };
                let volumes = [&attack[..cut], &attack[cut..]].map(|part| {
                    let mut volume = Volume::new();
                    for put in part {
                        put(&mut volume, &out);
                    }
                    volume
                });
                let finished = jobs_in_a_row(&place, &volumes);
                assert_eq!(victim(&place), before, "cut at {cut}: {:?}", finished[1].told());
            }
        }
    }
}

/// The link in the way is reported, and a second run of the same job gets no further.
#[test]
fn a_link_that_leads_out_is_refused_at_any_age() {
    let place = scene();
    let before = victim(&place);
    let mut evil = Volume::new();
    evil.file("/l/x", b"evil");
    let volumes = [Volume::new().symlink("/l", &place.text("victim")).clone(), evil.clone(), evil];
    for finished in &jobs_in_a_row(&place, &volumes)[1..] {
        let text = format!(
            "File {} not restored: will not follow the symbolic link {}: it leads out of the restore directory.\n",
            place.text("w/l/x"),
            place.text("w/l")
        );
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    }
    // A hard link to a file below it is refused in the same words.
    let finished = job_below(&place.text("w")).run(Volume::new().put(&Saved::hard_link("/h", "/l/f")));
    let text = finished.only().1.to_owned();
    assert!(text.ends_with(&format!("{}: it leads out of the restore directory.\n", place.text("w/l"))), "{text}");
    assert_eq!(victim(&place), before);
}

#[test]
fn links_below_the_restore_directory_are_followed_as_before() {
    let place = scene();
    // The operator's own name for the place may be a link.
    symlink("w", place.path("named")).unwrap();
    fs::create_dir_all(place.path("w/real/deep")).unwrap();
    let absolute = place.text("w/real/deep");
    let links = [
        ("near", "real"),
        ("far", "real/deep"),
        ("self", "."),
        ("out-and-in", "../w/real"),
        ("whole", absolute.as_str()),
    ];
    for (name, target) in links {
        symlink(target, place.path("w").join(name)).unwrap();
    }
    symlink("../near", place.path("w/real/back")).unwrap();
    let_it_be_old();
    let mut volume = Volume::new();
    for (name, _) in links {
        volume.file(&format!("/{name}/by-{name}"), b"x");
    }
    volume.file("/real/back/by-back", b"x").put(&Saved::hard_link("/hard", "/near/by-near"));
    job_below(&place.text("named")).run(&volume).assert_quiet();
    for file in [
        "real/by-near",
        "real/deep/by-far",
        "by-self",
        "real/by-out-and-in",
        "real/deep/by-whole",
        "real/by-back",
        "hard",
    ] {
        assert!(place.exists(&format!("w/{file}")), "{file}");
    }
    // Without a restore directory no link leads out of it.
    symlink("../victim", place.path("w/out")).unwrap();
    let_it_be_old();
    let mut in_place = job_below("");
    in_place.plan.output = fd_restore::OutputNames::Original;
    in_place.run(Volume::new().file(&place.text("w/out/in-place"), b"x")).assert_quiet();
    assert_eq!(place.read("victim/in-place"), b"x");
}

#[test]
fn a_directory_record_is_not_applied_through_a_link_of_the_volume() {
    let place = scene();
    let before = victim(&place);
    let mut volume = Volume::new();
    let mut saved = Saved::directory("/d/");
    saved.stat.mode = 0o040_777;
    volume.symlink("/d", "../victim").put(&saved).record(Stream::LINUX_ACCESS_ACL, b"u::rwx,g::rwx,o::rwx\0");
    let mut record = Vec::new();
    fd_records::xattr::push(&mut record, b"user.evil", b"1");
    volume.record(Stream::LINUX_XATTR, &record);
    let finished = job_below(&place.text("w")).run(&volume);
    assert_eq!(finished.told().len(), 1);
    assert_eq!(victim(&place), before);
}

#[test]
fn a_final_link_is_never_written_through() {
    let place = scene();
    let before = victim(&place);
    for name in ["f", "new"] {
        let mut volume = Volume::new();
        let target = format!("../victim/{name}");
        volume.symlink("/l", &target).patch(&Saved::new("/l", FileType::Regular, 0o100_666));
        volume.record(Stream::FILE_DATA, b"evil").stop();
        for file_type in [FileType::Raw, FileType::Fifo] {
            let saved = Saved::new("/l", file_type, 0o100_666);
            volume.symlink("/l", &target).put(&saved).record(Stream::FILE_DATA, b"evil");
        }
        let mut update = Saved::file("/l");
        update.stream = Stream::ATTRIBUTES_UPDATE;
        update.stat.mode = 0o100_666;
        volume.put(&update).record(Stream::LINUX_ACCESS_ACL, b"u::rwx,u:0:rwx,g::rwx,m::rwx,o::rwx\0");
        job_below(&place.text("w")).run(&volume);
        assert_eq!(victim(&place), before, "{name}");
    }
}

#[test]
fn acls_of_a_link_are_not_set_on_its_target() {
    let place = scene();
    let before = victim(&place);
    let mut volume = Volume::new();
    volume.symlink("/l", "../victim/f").record(Stream::LINUX_ACCESS_ACL, b"u::rwx,u:0:rwx,g::rwx,m::rwx,o::rwx\0");
    job_below(&place.text("w")).run(&volume).assert_quiet();
    assert_eq!(victim(&place), before);
}

#[test]
fn a_replaced_link_is_not_followed_by_its_old_handle() {
    let place = scene();
    fs::create_dir(place.path("w/old")).unwrap();
    symlink("old", place.path("w/d")).unwrap();
    let_it_be_old();
    let before = victim(&place);
    let mut volume = Volume::new();
    volume.file("/d/first", b"x").symlink("/d", "../victim").file("/d/second", b"evil");
    let finished = job_below(&place.text("w")).run(&volume);
    assert!(place.exists("w/old/first"));
    assert!(!place.exists("w/old/second"));
    assert_eq!(victim(&place), before);
    assert_eq!(finished.told().len(), 1);
}

#[test]
fn links_of_other_users_are_not_followed() {
    if !is_root() {
        return skip::test("needs root");
    }
    // Somebody may write in `w` and makes a link to what is not theirs.
    let place = scene();
    let before = victim(&place);
    chown(place.path("w"), Some(4711), Some(4711)).unwrap();
    symlink("../victim", place.path("w/d")).unwrap();
    lchown(place.path("w/d"), Some(4711), Some(4711)).unwrap();
    let_it_be_old();
    let mut volume = Volume::new();
    volume.file("/w/d/f", b"evil").directory("/w/d/");
    let finished = place.job().run(&volume);
    assert_eq!(victim(&place), before);
    let text = finished.told()[0].1.to_owned();
    assert!(text.ends_with("it belongs to user 4711, and its target to another user.\n"), "{text}");
    assert_eq!(finished.told().len(), 2);

    // A link to what is theirs, too, is followed: they could have written there themselves.
    chown(place.path("victim"), Some(4711), Some(4711)).unwrap();
    place.job().run(Volume::new().file("/w/d/new", b"x")).assert_quiet();
    assert_eq!(place.read("victim/new"), b"x");
}

#[test]
fn our_own_link_is_followed_only_where_others_cannot_create_it() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = scene();
    symlink("../victim", place.path("w/d")).unwrap();
    // The link belongs to root, but any user could have moved it here.
    chown(place.path("victim"), Some(4711), Some(4711)).unwrap();
    fs::set_permissions(place.path("w"), fs::Permissions::from_mode(0o777)).unwrap();
    let_it_be_old();
    let job = place.job();
    let finished = job.run(Volume::new().file("/w/d/new", b"evil"));
    assert_eq!(finished.told().len(), 1);
    assert!(!place.exists("victim/new"));
    // In a sticky directory they could not.
    fs::set_permissions(place.path("w"), fs::Permissions::from_mode(0o1777)).unwrap();
    job.run(Volume::new().file("/w/d/new", b"x")).assert_quiet();
    assert!(place.exists("victim/new"));
}

/// The link and what it leads to belong to one user, and another one has moved it to where a
/// directory of theirs was.
#[test]
fn a_link_that_another_user_may_have_moved_is_not_followed() {
    if !is_root() {
        return skip::test("needs root");
    }
    for (owner, mode, is_followed) in
        [(4711, 0o755, false), (0, 0o777, false), (4712, 0o777, false), (4712, 0o755, true), (0, 0o1777, true)]
    {
        let place = scene();
        symlink("../victim", place.path("w/d")).unwrap();
        lchown(place.path("w/d"), Some(4712), Some(4712)).unwrap();
        chown(place.path("victim"), Some(4712), Some(4712)).unwrap();
        chown(place.path("w"), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(place.path("w"), fs::Permissions::from_mode(mode)).unwrap();
        let_it_be_old();
        let finished = place.job().run(Volume::new().file("/w/d/new", b"x"));
        let why = "another user than the owner of its target may have moved it here.\n";
        let refused = finished.told().iter().filter(|(_, text)| text.ends_with(why)).count();
        let expected = (is_followed, usize::from(!is_followed));
        assert_eq!((place.exists("victim/new"), refused), expected, "{owner} {mode:o}");
    }
}

#[test]
fn hard_links_stay_below_the_restore_directory() {
    let place = scene();
    let before = victim(&place);
    let mut volume = Volume::new();
    for (name, first) in [("/a", "/../victim/f"), ("/b", "../victim/f"), ("/c", "victim/f"), ("/d", "/l/f")] {
        volume.put(&Saved::hard_link(name, first));
    }
    volume.symlink("/l", "../victim").put(&Saved::hard_link("/h", "/l/f"));
    volume.symlink("/m", "../victim/f").put(&Saved::hard_link("/h", "/m"));
    let finished = job_below(&place.text("w")).run(&volume);
    assert_eq!(finished.told().len(), 5);
    assert_eq!(victim(&place), before);
    // The last one is a name of the link itself.
    assert!(place.stat("w/h").is_symlink());
}

#[test]
fn replacing_a_file_does_not_lead_out() {
    for replace in [Replace::Always, Replace::IfNewer, Replace::IfOlder, Replace::Never] {
        let place = scene();
        let before = victim(&place);
        let mut volume = Volume::new();
        volume.symlink("/d", "../victim").file("/d/f", b"evil").put(&Saved::new("/d/f", FileType::Deleted, 0));
        let mut job = place.job_with(replace);
        job.plan.output = fd_restore::OutputNames::below(place.text("w").into_bytes());
        job.run(&volume);
        assert_eq!(victim(&place), before);
    }
}

#[test]
fn set_id_bits_come_last_and_data_is_private_until_then() {
    let place = scene();
    let mut saved = Saved::file("/s");
    saved.stat.mode = 0o104_755;
    saved.stat.size = 8;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"half");
    volume.frames.push(Frame::Lost);
    // A header without data is fatal: the file is left as it is.
    volume.frames.insert(4, Frame::Data(b"rechdr 1 1 1 2 4".to_vec()));
    let finished = job_below(&place.text("w")).run(&volume);
    assert!(finished.outcome.is_err());
    assert_eq!(place.mode("w/s"), 0o101_600);
    assert_eq!(fs::read(place.path("w/s")).unwrap(), b"half");
    assert!(File::open(place.path("w/s")).is_ok());
}

#[test]
fn an_object_that_others_can_replace_is_checked_before_its_attributes_are_set() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = scene();
    fs::set_permissions(place.path("w"), fs::Permissions::from_mode(0o777)).unwrap();
    let mut volume = Volume::new();
    let mut fifo = Saved::new("/fifo", FileType::Special, 0o010_640);
    (fifo.stat.uid, fifo.stat.gid) = (1001, 1002);
    let mut link = Saved::symlink("/l", "x");
    (link.stat.uid, link.stat.gid) = (1001, 1002);
    volume.put(&fifo).put(&link).file("/first", b"x").put(&Saved::hard_link("/hard", "/first"));
    // A first name that is not what was saved keeps its owner and mode.
    fs::write(place.path("w/other"), b"").unwrap();
    fs::set_permissions(place.path("w/other"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut greedy = Saved::hard_link("/greedy", "/other");
    greedy.stat.uid = 4711;
    greedy.stat.mode = 0o104_777;
    volume.put(&greedy);
    let_it_be_old();
    let finished = job_below(&place.text("w")).run(&volume);
    let (kind, text) = finished.only();
    assert!(kind == MessageType::Warning && text.contains("w/other now, which was there before this job"), "{text}");
    for (name, mode) in [("w/fifo", 0o010_640), ("w/l", 0o120_777)] {
        let found = place.stat(name);
        assert_eq!((found.uid(), found.gid(), found.mode(), found.mtime()), (1001, 1002, mode, MTIME), "{name}");
    }
    assert_eq!(place.stat("w/hard").mtime(), MTIME);
    assert_eq!((place.stat("w/greedy").uid(), place.mode("w/greedy")), (0, 0o100_600));
}

/// Swaps two names of a directory until it is stopped; returns the number of swaps.
fn swap_until(stop: &std::sync::atomic::AtomicBool, one: &std::path::Path, other: &std::path::Path) -> u64 {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let mut swaps = 0;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
        swaps += 1;
    }
    swaps
}

#[test]
fn directories_swapped_for_links_all_the_time_redirect_nothing() {
    const ROUNDS: usize = 50;
    const FILES: usize = 200;
    if !is_root() {
        return skip::test("needs root");
    }
    let place = scene();
    let before = victim(&place);
    // The attacker owns a link to a file of another user, in a directory whose names the attacker
    // may change.
    fs::create_dir(place.path("w/d")).unwrap();
    symlink(place.path("victim"), place.path("w/trap")).unwrap();
    lchown(place.path("w/trap"), Some(4711), Some(4711)).unwrap();
    fs::set_permissions(place.path("w"), fs::Permissions::from_mode(0o777)).unwrap();
    let mut volume = Volume::new();
    for number in 0..FILES {
        // Every kind of object, each after having left the directory, so that each has to find it
        // again.
        let name = format!("/d/{number}");
        match number % 5 {
            0 => volume.file(&name, b"data"),
            1 => volume.symlink(&name, "x"),
            2 => volume.put(&Saved::new(&name, FileType::Special, 0o010_666)),
            3 => volume.directory(&format!("{name}/")),
            _ => volume.put(&Saved {
                stat: fd_records::Stat { mode: 0o106_777, ..Saved::file(&name).stat },
                ..Saved::file(&name)
            }),
        };
        volume.file(&format!("/e/{number}"), b"elsewhere");
    }
    volume.directory("/d/");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (one, other) = (place.path("w/d"), place.path("w/trap"));
    let swaps = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap_until(&stop, &one, &other));
        for _ in 0..ROUNDS {
            let job = job_below(&place.text("w"));
            let finished = job.run(&volume);
            assert_eq!(finished.outcome, Ok(fd_restore::End::EndOfData));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        swapper.join().unwrap()
    });
    println!("{} objects, {swaps} swaps", ROUNDS * FILES);
    assert!(swaps > 1000);
    assert_eq!(victim(&place), before);
}

/// Whoever owns a directory can put another user's file in the place of one of his own between its
/// record and the update of its attributes.
#[test]
fn an_update_is_only_for_the_object_that_the_job_has_made() {
    if !is_root() {
        return skip::test("needs root");
    }
    change_what_alice_may_have_swapped(false);
}

#[test]
fn a_patch_is_only_for_the_object_that_the_job_has_made() {
    if !is_root() {
        return skip::test("needs root");
    }
    change_what_alice_may_have_swapped(true);
}

fn change_what_alice_may_have_swapped(is_patch: bool) {
    // In a sticky directory of root's, too, alice can give her own file's name to another one.
    let sticky = (0, 0o041_777);
    for (is_swapped, (uid, mode)) in
        [false, true].into_iter().flat_map(|is_swapped| [(12345, 0o040_755), sticky].map(|home| (is_swapped, home)))
    {
        let place = Place::new();
        let mut home = Saved::directory("/home/");
        (home.stat.uid, home.stat.mode) = (uid, mode);
        place.job().run(Volume::new().put(&home)).assert_quiet();
        let mut later = Saved::file("/home/f");
        (later.stat.uid, later.stat.size) = (12345, 1);
        let mut secret = Saved::file("/home/secret");
        secret.stat.mode = 0o100_600;
        let mut volume = Volume::new();
        // A link is made when all files before it are.
        volume.put(&secret).file("/home/f", b"f").symlink("/home/link", "f");
        if is_swapped {
            volume.frames.push(Frame::Rename(place.path("home/secret"), place.path("home/f")));
        }
        if is_patch {
            volume.patch(&later).record(Stream::FILE_DATA, b"p");
        } else {
            volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..later });
        }
        volume.record(Stream::LINUX_ACCESS_ACL, b"u::rw-,u:12345:rw-,g::r--,m::rw-,o::r--\0");
        let finished = place.job().run(&volume);
        let (owner, mode) = (place.stat("home/f").uid(), place.mode("home/f") & 0o7777);
        if is_swapped {
            let why = "another object has its name now. Restore it together with the job that has its data.\n";
            let refused = if is_patch {
                format!("File {} not patched: {why}", place.text("home/f"))
            } else {
                format!("Attributes of {} not updated: {why}", place.text("home/f"))
            };
            assert_eq!(finished.only(), (MessageType::Error, refused.as_str()));
            assert_eq!((owner, mode, place.read("home/f")), (0, 0o600, Vec::new()));
        } else {
            finished.assert_quiet();
            let data = if is_patch { b"p" } else { b"f" };
            assert_eq!((owner, mode, place.read("home/f")), (12345, 0o664, data.to_vec()));
        }
    }
}

/// Between the records of two backups, whoever owns the directory above can give the name to
/// another user's directory.
#[test]
fn a_directory_record_is_not_for_what_another_user_has_put_there() {
    if !is_root() {
        return skip::test("needs root");
    }
    for is_swapped in [false, true] {
        let place = Place::new();
        let directory = |name: &str, uid, mode| {
            let mut saved = Saved::directory(name);
            (saved.stat.uid, saved.stat.mode) = (uid, mode);
            saved
        };
        place.job().run(Volume::new().put(&directory("/home/", 12345, 0o040_755))).assert_quiet();
        let hers = directory("/home/d/", 12345, 0o040_755);
        let mut volume = Volume::new();
        volume.put(&directory("/home/secret/", 0, 0o040_700)).put(&hers).symlink("/home/link", "d");
        if is_swapped {
            volume.frames.push(Frame::Rename(place.path("home/secret"), place.path("home/d")));
        }
        volume.put(&hers).record(Stream::LINUX_ACCESS_ACL, b"u::rwx,u:12345:rwx,g::r-x,m::rwx,o::r-x\0");
        let finished = place.job().run(&volume);
        let found = (place.stat("home/d").uid(), place.mode("home/d") & 0o7777);
        if is_swapped {
            let text = format!(
                "Attributes of {} not restored: it belongs to 0:0 and not to 12345:{}, and another user may have put it \
                 there. If it is the right one, chown it and restore it again.\n",
                place.text("home/d/"),
                hers.stat.gid
            );
            assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
            assert_eq!(found, (0, 0o700));
        } else {
            finished.assert_quiet();
            assert_eq!(found, (12345, 0o775));
        }
    }
}

/// In a system that is restored in place, directories may have other owners than before.
#[test]
fn a_directory_gets_its_owner_where_nobody_else_can_change_its_name() {
    if !is_root() {
        return skip::test("needs root");
    }
    for (above, mode, there, is_restored) in [
        (0, 0o755, 0, true),
        (0, 0o755, 12345, true),
        (0, 0o1777, 0, true),
        (12345, 0o755, 12345, true),
        (777, 0o755, 777, true),
        // It belongs to whom the record says.
        (777, 0o777, 1001, true),
        (12345, 0o755, 0, false),
        (12345, 0o755, 777, false),
        (12345, 0o1777, 0, false),
        (0, 0o775, 0, false),
        (777, 0o775, 777, false),
    ] {
        for stream in [Stream::ATTRIBUTES, Stream::ATTRIBUTES_UPDATE] {
            let place = Place::new();
            fs::create_dir_all(place.path("above/d")).unwrap();
            for (name, uid, mode) in [("above", above, mode), ("above/d", there, 0o700)] {
                chown(place.path(name), Some(uid), Some(uid)).unwrap();
                fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            let mut saved = Saved { stream, ..Saved::directory("/above/d/") };
            (saved.stat.uid, saved.stat.gid) = (1001, 1001);
            let finished = place.job().run(Volume::new().put(&saved));
            let told = usize::from(!is_restored);
            assert_eq!(finished.told().len(), told, "{above} {mode:o} {there}: {:?}", finished.told());
            let expected = if is_restored { (1001, 0o750) } else { (there, 0o700) };
            let found = place.stat("above/d");
            assert_eq!((found.uid(), found.mode() & 0o7777), expected, "{above} {mode:o} {there}");
        }
    }
}

/// A restore that was killed leaves private directories of its own, and one that brought something
/// in a directory leaves it as it made it.
#[test]
fn a_directory_that_an_earlier_restore_has_made_gets_its_owner_wherever_it_is() {
    if !is_root() {
        return skip::test("needs root");
    }
    for mode in [0o1700, 0o755] {
        let place = Place::new();
        fs::create_dir_all(place.path("home/d")).unwrap();
        chown(place.path("home"), Some(12345), Some(12345)).unwrap();
        fs::set_permissions(place.path("home/d"), fs::Permissions::from_mode(mode)).unwrap();
        let mut saved = Saved::directory("/home/d/");
        (saved.stat.uid, saved.stat.gid) = (12345, 12345);
        place.job().run(Volume::new().put(&saved)).assert_quiet();
        assert_eq!(place.stat("home/d").uid(), 12345, "{mode:o}");
    }
}

/// What the job itself has made belongs to root until its record comes, also where it has left it
/// meanwhile.
#[test]
fn a_directory_that_the_job_has_made_gets_its_owner_wherever_it_is() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    let hers = |mut saved: Saved| {
        saved.stat.uid = 12345;
        saved
    };
    place.job().run(Volume::new().put(&hers(Saved::directory("/home/")))).assert_quiet();
    let mut volume = Volume::new();
    for name in ["/home/new/deep/f", "/home/else/f"] {
        volume.put(&hers(Saved::file(name)));
    }
    for name in ["/home/new/deep/", "/home/new/", "/home/else/"] {
        volume.put(&hers(Saved::directory(name)));
    }
    place.job().run(&volume).assert_quiet();
    let owners = ["home/new/deep", "home/new", "home/else"].map(|name| place.stat(name).uid());
    assert_eq!(owners, [12345; 3]);
}

/// It stays, gets owner and mode of the record, and data is written to it.
#[test]
fn a_fifo_that_another_user_may_have_put_there_stays_as_it_is() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).unwrap();
    chown(place.root(), Some(12345), Some(12345)).unwrap();
    let_it_be_old();
    // Who reads it, so that no job waits for one.
    let reader = File::options().read(true).write(true).open(place.path("fifo")).unwrap();
    let mut saved = Saved::new(&place.text("fifo"), FileType::Fifo, 0o010_666);
    saved.stat.uid = 12345;
    let mut job = place.job();
    job.plan.output = fd_restore::OutputNames::Original;
    let finished = job.run(Volume::new().put(&saved).record(Stream::FILE_DATA, b"evil"));
    let text = format!(
        "Data of {} not restored: its owner and group are not those of the record, and a user who can change its name may \
         have put it there.\n",
        place.text("fifo")
    );
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    assert_eq!((place.stat("fifo").uid(), place.mode("fifo")), (0, 0o010_600));
    drop(reader);
}

/// The other name would be that of a program of hers. Size and time may be as they were saved.
#[test]
fn a_hard_link_is_not_made_to_what_another_user_has_put_there() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    fs::create_dir(place.path("alice")).unwrap();
    fs::write(place.path("alice/old"), b"evil").unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(MTIME.unsigned_abs());
    File::options().append(true).open(place.path("alice/old")).unwrap().set_modified(time).unwrap();
    for name in ["alice", "alice/old"] {
        chown(place.path(name), Some(1001), Some(1001)).unwrap();
    }
    let_it_be_old();
    let mut hers = Saved::file("/alice/new");
    (hers.stat.uid, hers.stat.gid) = (1001, 1001);
    let mut link = Saved::hard_link("/tool", "/alice/tool");
    link.stat.size = 4;
    let run = |what_replaces: Option<&str>| {
        fs::write(place.path("tool"), b"the only copy").unwrap();
        let mut volume = Volume::new();
        volume.file("/alice/tool", b"good").put(&hers).record(Stream::FILE_DATA, b"evil").symlink("/between", "x");
        if let Some(name) = what_replaces {
            volume.frames.push(Frame::Rename(place.path(name), place.path("alice/tool")));
        }
        volume.put(&link);
        place.job().run(&volume)
    };
    run(None).assert_quiet();
    assert_eq!(place.read("tool"), b"good");
    fs::remove_file(place.path("tool")).unwrap();
    for name in ["alice/new", "alice/old"] {
        let finished = run(Some(name));
        assert!(finished.only().1.contains("another user could put it there"), "{name}: {:?}", finished.told());
        assert_eq!(place.read("tool"), b"the only copy", "{name}");
    }
}
