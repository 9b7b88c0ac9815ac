//! Hard links whose records come before those of their first names.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};

use fd_messages::MessageType;
use fd_records::{DigestKind, FileType, Replace, Stream};
use fd_restore::SequenceError;

use crate::fake_plugin::Answers;
use crate::plugin_volumes::{COMMAND, plugin_file, restore};
use crate::volume::{Finished, Frame, MTIME, Place, Saved, Volume, is_root, let_it_be_old};

const MODES: [Replace; 4] = [Replace::Always, Replace::IfNewer, Replace::IfOlder, Replace::Never];

/// The data of the first name.
const DATA: &[u8] = b"saved";

fn link(name: &str) -> Saved {
    let mut link = Saved::hard_link(name, "/d/first");
    link.stat.size = 5;
    link
}

/// Puts the file, two links to it, and their directory on a volume, in this order.
fn volume(order: &str) -> Volume {
    let mut volume = Volume::new();
    for object in order.chars() {
        match object {
            'f' => volume.file("/d/first", DATA),
            'd' => volume.directory("/d/"),
            letter => volume.put(&link(&format!("/d/{letter}"))),
        };
    }
    volume
}

/// What is there before: names, each with whether it is older than what was saved. Those with the
/// same content are names of one file.
type There<'a> = &'a [(&'static str, i64, &'static str)];

fn furnish(place: &Place, there: There<'_>) {
    fs::create_dir(place.path("d")).unwrap();
    for (number, (name, age, content)) in there.iter().enumerate() {
        let path = place.path("d").join(name);
        if let Some((other, ..)) = there[..number].iter().find(|(.., other)| other == content) {
            fs::hard_link(place.path("d").join(other), &path).unwrap();
            continue;
        }
        fs::write(&path, content).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs((MTIME + age).unsigned_abs());
        fs::File::open(&path).unwrap().set_times(fs::FileTimes::new().set_modified(time)).unwrap();
    }
    let_it_be_old();
}

/// A name with its content, and the names of the same file.
type Found = (String, Vec<u8>, Vec<String>);

/// The names; then whether the directory has the time of its record.
fn tree(place: &Place) -> (Vec<Found>, bool) {
    let mut names: Vec<String> =
        fs::read_dir(place.path("d")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let inode = |name: &str| place.stat(&format!("d/{name}")).ino();
    let same = |name: &str| names.iter().filter(|other| inode(other) == inode(name)).cloned().collect();
    let found = names.iter().map(|name| (name.clone(), place.read(&format!("d/{name}")), same(name))).collect();
    (found, place.stat("d").mtime() == MTIME)
}

/// The messages in another order, with names below the place.
fn told(place: &Place, finished: &Finished) -> Vec<(MessageType, String)> {
    let root = place.root().to_str().unwrap();
    let mut told: Vec<_> = finished.told().into_iter().map(|(kind, text)| (kind, text.replace(root, ""))).collect();
    told.sort_by(|one, other| one.1.cmp(&other.1));
    told
}

#[test]
fn a_link_before_its_first_name_is_made_as_one_behind_it() {
    let there: [There<'_>; 9] = [
        &[],
        &[("first", -1, "old")],
        &[("first", 1, "old")],
        &[("first", 0, "saved")],
        &[("x", -1, "old")],
        &[("x", 1, "old")],
        &[("first", -1, "old"), ("x", -1, "old"), ("y", -1, "other")],
        &[("first", 1, "old"), ("x", -1, "other"), ("y", 1, "another")],
        &[("first", -1, "old"), ("x", 1, "other"), ("y", -1, "another")],
    ];
    for (mode, there) in MODES.into_iter().flat_map(|mode| there.map(|there| (mode, there))) {
        let run = |order: &str| {
            let place = Place::new();
            furnish(&place, there);
            let finished = place.job_with(mode).run(&volume(order));
            (tree(&place), told(&place, &finished), finished.files, finished.job_bytes)
        };
        let expected = run("fxyd");
        for order in ["xfyd", "xyfd", "xydf", "dxyf"] {
            assert_eq!(run(order), expected, "{order} with {mode:?} where {there:?} is");
        }
        if mode == Replace::Always {
            assert!(expected.0.0.iter().all(|(.., same)| same.len() == 3) && expected.1.is_empty(), "{expected:?}");
        }
    }
}

/// The first name that comes later is of the file as it was at another time, at which the link may
/// have been gone: it must not get what that name never had.
#[test]
fn a_link_waits_for_a_first_name_of_another_time_and_is_not_made() {
    for (mode, sign) in MODES.into_iter().flat_map(|mode| [1, -1].map(|sign| (mode, sign))) {
        let mut first = Saved::file("/d/first");
        (first.stat.size, first.stat.mtime) = (5, MTIME + 100 * sign);
        let run = |order: &str| {
            let place = Place::new();
            furnish(&place, &[("first", 50 * sign, "old")]);
            let mut volume = Volume::new();
            for object in order.chars() {
                if object == 'f' {
                    volume.put(&first).record(Stream::FILE_DATA, DATA);
                } else {
                    volume.put(&link("/d/x"));
                }
            }
            let finished = place.job_with(mode).run(volume.directory("/d/"));
            (tree(&place), told(&place, &finished))
        };
        let is_replaced = match mode {
            Replace::Always => true,
            Replace::IfNewer => sign > 0,
            Replace::IfOlder => sign < 0,
            Replace::Never => false,
        };
        if is_replaced {
            let text = "File /d/x not restored: /d/first has changed since it was a name of it.\n".to_owned();
            let first = ("first".to_owned(), DATA.to_vec(), vec!["first".to_owned()]);
            let ((names, _), told) = run("xf");
            assert_eq!(names, [first], "{mode:?} {sign}");
            assert!(told.contains(&(MessageType::Error, text)), "{told:?}");
        } else {
            let ((names, _), _) = run("xf");
            assert!(names.iter().all(|(_, content, same)| content == b"old" && same.len() == 2), "{names:?}");
            assert_eq!(run("xf"), run("fx"), "{mode:?} {sign}");
        }
    }
}

/// What comes behind it finds the directory as the link has left it.
#[test]
fn a_link_to_a_first_name_that_was_kept_does_not_wait() {
    for (mode, age) in [(Replace::IfNewer, 50), (Replace::IfOlder, -50)] {
        let place = Place::new();
        furnish(&place, &[("first", age, "old")]);
        let mut first = Saved::file("/d/first");
        (first.stat.size, first.stat.nlink) = (5, 2);
        let mut volume = Volume::new();
        volume.put(&first).record(Stream::FILE_DATA, DATA).put(&link("/d/x")).record(Stream::new(999), b"?");
        let finished = place.job_with(mode).run(&volume);
        let told = finished.told();
        assert!(told.len() == 3 && told[1].1.contains("is a name of"), "{told:?}");
    }
}

/// The first name of a link may itself be a link that waits: the job was resumed twice.
#[test]
fn a_link_that_waits_for_another_one_is_made_behind_it() {
    for names in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        for there in [&[][..], &[("first", -1, "old"), ("a", -1, "one"), ("b", -1, "two"), ("c", -1, "three")]] {
            let place = Place::new();
            furnish(&place, there);
            let mut volume = Volume::new();
            for (name, first) in names.iter().zip([names[1], names[2], "first"]) {
                volume.put(&Saved { link: format!("/d/{first}").into_bytes(), ..link(&format!("/d/{name}")) });
            }
            place.job().run(volume.file("/d/first", DATA).directory("/d/")).assert_quiet();
            let (found, _) = tree(&place);
            assert!(found.iter().all(|(_, content, same)| content == DATA && same.len() == 4), "{names:?}: {found:?}");
        }
    }
}

#[test]
fn links_that_wait_for_each_other_are_errors() {
    let place = Place::new();
    let mut volume = Volume::new();
    for (name, first) in [("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")] {
        volume.put(&Saved::hard_link(&format!("/{name}"), &format!("/{first}")));
    }
    let finished = place.job().run(&volume);
    let told = finished.told();
    assert!(told.len() == 4 && told.iter().all(|(_, text)| text.contains("Could not hard link")), "{told:?}");
}

/// The record of the first name may be among those that are lost: what is there may be old.
#[test]
fn no_late_link_is_made_where_records_are_lost() {
    let text = "2 hard links were not restored: records are missing, among which their first names may be.\n";
    let end = |frame: Frame| {
        let mut volume = volume("xy");
        volume.frames.push(frame);
        volume
    };
    let ends = [Frame::Lost, Frame::Data(b"no header".to_vec())].map(end);
    let there: [There<'_>; 2] = [&[], &[("first", -1, "old"), ("x", -1, "only copy")]];
    for (volume, there) in ends.iter().flat_map(|volume| there.map(|there| (volume, there))) {
        let place = Place::new();
        furnish(&place, there);
        let before = tree(&place);
        let finished = place.job().run(volume);
        let told = finished.told();
        assert_eq!((told.len(), told.last()), (2, Some(&(MessageType::Error, text))), "{told:?}");
        assert_eq!(tree(&place), before);
    }
    // A plugin ends the restore.
    let mut volume = volume("xyf");
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).start("tp:other");
    let finished = restore(Answers::default(), &volume).finished;
    assert_eq!(finished.outcome, Err(SequenceError::Plugin));
    assert_eq!(finished.messages.last(), Some(&(MessageType::Error, text.to_owned())));
}

/// In the place of the link's record the error would count, as another message comes behind it.
#[test]
fn a_first_name_that_never_comes_is_an_error_of_the_job() {
    let place = Place::new();
    let finished = place.job().run(&volume("xd"));
    let text = format!(
        "create_file.c:360 Could not hard link {} -> {}: ERR=No such file or directory\n",
        place.text("d/x"),
        place.text("d/first")
    );
    assert_eq!(finished.messages, [(MessageType::Error, text)]);
    assert_eq!((finished.queued.len(), finished.files), (0, 2));
}

/// As of one that has failed before the link came.
#[test]
fn a_first_name_that_fails_means_the_same_to_a_late_link() {
    let mut refused = Saved { data_stream: Stream::ENCRYPTED_FILE_DATA, ..Saved::file("/d/first") };
    refused.stat.size = 5;
    let torn = Saved { data_stream: Stream::FILE_DATA, ..refused.clone() };
    let there: [There<'_>; 3] = [&[], &[("x", -1, "only copy")], &[("first", -1, "old"), ("x", -1, "only copy")]];
    for (first, there) in [refused, torn].iter().flat_map(|first| there.map(|there| (first, there))) {
        let run = |is_late: bool| {
            let place = Place::new();
            furnish(&place, there);
            let mut volume = Volume::new();
            for is_link in [is_late, !is_late] {
                if is_link {
                    volume.put(&link("/d/x"));
                } else {
                    volume.put(first).record(first.data_stream, b"sav");
                    if first.data_stream == Stream::FILE_DATA {
                        // It breaks off here.
                        volume.record(Stream::GZIP_DATA, b"of another");
                    }
                }
            }
            let finished = place.job().run(volume.directory("/d/"));
            let root = place.root().to_str().unwrap();
            let told: Vec<_> = finished.told().into_iter().map(|(_, text)| text.replace(root, "")).collect();
            (tree(&place), told)
        };
        let (found, told) = run(false);
        assert!(!told.is_empty(), "{told:?}");
        assert_eq!(run(true), (found, told), "{there:?}");
    }
}

/// Only so many bytes of names may wait.
#[test]
fn links_that_wait_are_bounded() {
    let place = Place::new();
    let long = |name: &str| format!("/{}{name}", "./".repeat(30_000));
    let mut volume = Volume::new();
    for number in 0..400 {
        let mut link = Saved::hard_link(&long(&number.to_string()), &long("first"));
        link.stat.size = 5;
        volume.put(&link);
    }
    let finished = place.job().run(volume.file("/first", DATA));
    let made = usize::try_from(place.stat("first").nlink()).unwrap() - 1;
    assert!((300..400).contains(&made), "{made}");
    let told = finished.told();
    assert!(told.iter().all(|(_, text)| text.contains("Could not hard link")));
    assert_eq!((made + told.len(), finished.files), (400, 401));
}

/// The name is what its last record says.
#[test]
fn a_later_record_of_the_same_name_takes_the_place_of_a_link() {
    let place = Place::new();
    let mut volume = volume("xy");
    volume.file("/d/x", b"newer").file("/d/first", DATA).directory("/d/y/");
    place.job().run(&volume).assert_quiet();
    assert_eq!((place.read("d/x"), place.read("d/first")), (b"newer".to_vec(), DATA.to_vec()));
    assert!(place.stat("d/y").is_dir());
}

#[test]
fn an_update_of_a_late_link_finds_it() {
    let place = Place::new();
    let mut update = Saved { stream: Stream::ATTRIBUTES_UPDATE, ..link("/d/x") };
    update.stat.mode = 0o100_600;
    place.job().run(volume("xf").put(&update)).assert_quiet();
    assert_eq!((place.stat("d/x").ino(), place.mode("d/first")), (place.stat("d/first").ino(), 0o100_600));
}

#[test]
fn a_canceled_job_makes_no_late_links() {
    let place = Place::new();
    let mut volume = volume("xf");
    volume.frames.push(Frame::Cancel);
    let finished = place.job().run(&volume);
    assert_eq!(finished.told(), []);
    assert!(place.exists("d/first") && !place.exists("d/x"));
}

/// Another name changes the file's time of change.
#[test]
fn a_long_file_has_its_digest_before_it_gets_another_name() {
    let (place, mut volume) = (Place::new(), Volume::new());
    let mut late = link("/d/x");
    late.stat.size = 600 << 10;
    volume.put(&late);
    for name in ["/d/first", "/d/other"] {
        let data = vec![b'x'; 600 << 10];
        let mut digester = fd_crypto::Digester::new(DigestKind::Md5).unwrap();
        digester.update(&data);
        volume.file(name, &data).record(Stream::MD5, digester.finish().unwrap().as_bytes());
    }
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.stat("d/x").ino(), place.stat("d/first").ino());
}

/// She may put another file in the place of the first name until the link is made.
#[test]
fn a_late_link_is_not_made_to_what_another_user_has_put_there() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    fs::create_dir(place.path("alice")).unwrap();
    fs::write(place.path("alice/evil"), b"evil").unwrap();
    fs::write(place.path("tool"), b"the only copy").unwrap();
    for name in ["alice", "alice/evil"] {
        chown(place.path(name), Some(1001), Some(1001)).unwrap();
    }
    let mut link = Saved::hard_link("/tool", "/alice/tool");
    link.stat.size = 4;
    let run = |is_swapped: bool| {
        let_it_be_old();
        let mut volume = Volume::new();
        volume.put(&link).file("/alice/tool", b"good").put(&Saved::new("/e", FileType::EmptyFile, 0o100_600));
        if is_swapped {
            volume.frames.push(Frame::Rename(place.path("alice/evil"), place.path("alice/tool")));
        }
        place.job().run(&volume)
    };
    let finished = run(true);
    assert!(finished.only().1.contains("another user could put it there"), "{:?}", finished.told());
    assert_eq!(place.read("tool"), b"the only copy");
    // What she has put there before is replaced first.
    run(false).assert_quiet();
    assert_eq!((place.read("tool"), place.stat("tool").ino()), (b"good".to_vec(), place.stat("alice/tool").ino()));
}
