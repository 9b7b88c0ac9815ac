//! What happens to what exists (reference 05 §6.1).

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fd_compress::Compressor;
use fd_messages::MessageType;
use fd_records::{Compression, FileType, Replace, Stream};
use fd_restore::{OutputNames, RegexWhere, Undecided};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;

use crate::volume::{Frame, MTIME, Place, Saved, Volume, is_root, let_it_be_old, regex_where};

const MODES: [Replace; 4] = [Replace::Always, Replace::IfNewer, Replace::IfOlder, Replace::Never];

fn set_mtime(path: &Path, seconds: i64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap());
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// Whether a mode restores over something that is older by `age`.
fn restores(mode: Replace, age: i64) -> bool {
    match mode {
        Replace::Always => true,
        Replace::IfNewer => age > 0,
        Replace::IfOlder => age < 0,
        Replace::Never => false,
    }
}

fn reason(mode: Replace) -> &'static str {
    match mode {
        Replace::Always => "none",
        Replace::IfNewer => "Not newer",
        Replace::IfOlder => "Not older",
        Replace::Never => "Already exists",
    }
}

#[test]
fn files_are_compared_in_whole_seconds() {
    for mode in MODES {
        for age in [-1, 0, 1] {
            let place = Place::new();
            fs::write(place.path("f"), b"old").unwrap();
            set_mtime(&place.path("f"), MTIME - age);
            let finished = place.job_with(mode).run(Volume::new().file("/f", b"restored"));
            if restores(mode, age) {
                finished.assert_quiet();
                assert_eq!(place.read("f"), b"restored", "{mode:?} {age}");
            } else {
                let text = format!("File skipped. {}: {}\n", reason(mode), place.text("f"));
                assert_eq!(finished.only(), (MessageType::Skipped, text.as_str()), "{mode:?} {age}");
                assert_eq!(place.read("f"), b"old");
                assert_eq!(finished.queued.len(), 1);
            }
            assert_eq!((finished.files, finished.read_bytes > 0), (1, restores(mode, age)));
        }
    }
}

#[test]
fn links_special_files_and_directories_follow_the_same_rule() {
    for mode in MODES {
        for age in [-1, 0, 1] {
            let place = Place::new();
            fs::create_dir(place.path("d")).unwrap();
            fs::write(place.path("l"), b"").unwrap();
            fs::write(place.path("p"), b"").unwrap();
            for name in ["d", "l", "p"] {
                set_mtime(&place.path(name), MTIME - age);
            }
            let mut volume = Volume::new();
            volume.directory("/d/").symlink("/l", "target").put(&Saved::new("/p", FileType::Special, 0o010_600));
            let finished = place.job_with(mode).run(&volume);
            let restored = restores(mode, age);
            assert_eq!(finished.told().len(), if restored { 0 } else { 3 }, "{mode:?} {age}");
            assert_eq!(place.stat("l").is_symlink(), restored);
            assert_eq!(!place.stat("p").is_file(), restored);
            let directory = place.stat("d");
            assert_eq!(directory.mode() == 0o040_750, restored);
            assert_eq!(directory.mtime(), if restored { MTIME } else { MTIME - age });
        }
    }
}

#[test]
fn directories_that_the_job_makes_get_their_attributes_anyway() {
    for mode in [Replace::Never, Replace::IfNewer, Replace::IfOlder] {
        let place = Place::new();
        let mut volume = Volume::new();
        volume.file("/d/sub/f", b"x").directory("/d/sub/").directory("/d/");
        let finished = place.job_with(mode).run(&volume);
        let kept = mode == Replace::IfOlder;
        assert_eq!(finished.told().len(), 0, "{mode:?}");
        assert_eq!(place.mode("d/sub"), 0o040_750);
        assert_eq!(place.stat("d/sub").mtime(), MTIME);
        assert_eq!(place.stat("d").mtime(), MTIME, "{kept}");
        // The file itself is not restored twice.
        let finished = place.job_with(mode).run(Volume::new().file("/d/sub/f", b"y"));
        assert_eq!(finished.only().0, MessageType::Skipped);
    }
}

#[test]
fn a_directory_made_by_the_job_is_not_skipped_when_recorded_twice() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/d/f", b"x").directory("/d/");
    let mut later = Saved::directory("/d/");
    later.stat.mode = 0o040_700;
    volume.file("/e/f", b"x").put(&later);
    let finished = place.job_with(Replace::Never).run(&volume);
    finished.assert_quiet();
    assert_eq!(place.mode("d"), 0o040_700);
}

#[test]
fn contents_of_a_skipped_directory_are_restored_where_absent() {
    let place = Place::new();
    fs::create_dir(place.path("d")).unwrap();
    fs::write(place.path("d/old"), b"old").unwrap();
    let mut volume = Volume::new();
    volume.file("/d/old", b"new").file("/d/new", b"new").directory("/d/");
    let finished = place.job_with(Replace::Never).run(&volume);
    assert_eq!(finished.told().len(), 2);
    assert_eq!((place.read("d/old"), place.read("d/new")), (b"old".to_vec(), b"new".to_vec()));
}

#[test]
fn a_file_does_not_replace_a_directory() {
    let place = Place::new();
    fs::create_dir(place.path("d")).unwrap();
    for saved in [Saved::file("/d"), Saved::symlink("/d", "x"), Saved::new("/d", FileType::Special, 0o010_600)] {
        let mut volume = Volume::new();
        volume.put(&saved).record(Stream::FILE_DATA, b"x");
        let finished = place.job().run(&volume);
        let text = format!("File {} already exists and could not be replaced. ERR=Is a directory.\n", place.text("d"));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
        assert!(place.stat("d").is_dir());
    }
}

#[test]
fn a_directory_does_not_replace_a_file_or_a_dangling_link() {
    let place = Place::new();
    fs::write(place.path("f"), b"kept").unwrap();
    symlink("nowhere", place.path("l")).unwrap();
    crate::volume::let_it_be_old();
    for name in ["f", "l"] {
        let finished = place.job().run(Volume::new().directory(&format!("/{name}/")));
        let text = format!("mkpath.c:144 {} exists but is not a directory.\n", place.text(name));
        assert_eq!(finished.told(), [(MessageType::Error, text.as_str())]);
    }
    // A `regexwhere` may give it a name without a slash at its end.
    let mut job = place.job();
    job.plan.output = regex_where(&format!("!^.*$!{}!", place.text("f")));
    let finished = job.run(Volume::new().directory("/d/"));
    let text = format!("mkpath.c:198 {} exists but is not a directory.\n", place.text("f"));
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    assert_eq!(place.read("f"), b"kept");
}

#[test]
fn an_existing_link_is_replaced_and_not_followed() {
    let place = Place::new();
    fs::write(place.path("victim"), b"kept").unwrap();
    for saved in [Saved::file("/l"), Saved::symlink("/l", "elsewhere"), Saved::new("/l", FileType::Special, 0o010_600)]
    {
        let _old = fs::remove_file(place.path("l"));
        symlink("victim", place.path("l")).unwrap();
        place.job().run(Volume::new().put(&saved)).assert_quiet();
        assert_eq!(place.read("victim"), b"kept");
        assert_ne!(fs::read_link(place.path("l")).ok(), Some("victim".into()));
    }
}

/// Else a file that someone has put there could become a set-user-ID program of root.
#[test]
fn a_kept_file_gets_nothing_of_another_one_through_a_hard_link() {
    let place = Place::new();
    fs::write(place.path("f"), b"kept").unwrap();
    // Only its type differs.
    mkfifo(&place.path("fifo"), Mode::S_IRUSR).unwrap();
    let time = TimeSpec::new(MTIME, 0);
    utimensat(AT_FDCWD, &place.path("fifo"), &time, &time, UtimensatFlags::NoFollowSymlink).unwrap();
    let before = place.stat("f");
    let mut volume = Volume::new();
    let (mut first, mut later) = (Saved::file("/f"), Saved::hard_link("/h", "/f"));
    for saved in [&mut first, &mut later] {
        (saved.stat.mode, saved.stat.size) = (0o104_755, 3);
    }
    volume.put(&first).record(Stream::FILE_DATA, b"new").put(&later);
    let mut beside = volume.clone();
    beside.put(&Saved::file("/fifo")).put(&Saved::hard_link("/i", "/fifo"));
    let_it_be_old();
    let finished = place.job_with(Replace::Never).run(&beside);
    assert!(finished.told().iter().any(|(_, text)| text.contains("/i is a name of ")), "{:?}", finished.told());
    let text = format!(
        "File {} is a name of {} now, which was there before this job and is not the file that was saved.\n",
        place.text("h"),
        place.text("f")
    );
    assert!(finished.told().contains(&(MessageType::Warning, text.as_str())), "{:?}", finished.told());
    let after = place.stat("f");
    assert_eq!((after.mode(), after.mtime()), (before.mode(), before.mtime()));
    assert_eq!((place.read("h"), place.stat("h").ino()), (b"kept".to_vec(), before.ino()));
    // A link to the file itself is as its record says.
    let place = Place::new();
    place.job().run(&volume).assert_quiet();
    assert_eq!((place.read("h"), place.mode("h"), place.stat("h").mtime()), (b"new".to_vec(), 0o104_755, MTIME));
}

/// Else it would become a mixture of two files, or somebody else's.
#[test]
fn a_kept_file_gets_no_patch_and_no_update_of_the_file_that_was_not_restored() {
    for mode in MODES {
        for is_update in [false, true] {
            let place = Place::new();
            fs::write(place.path("f"), b"kept by hand").unwrap();
            set_mtime(&place.path("f"), MTIME);
            crate::volume::let_it_be_old();
            let before = place.stat("f");
            let mut volume = Volume::new();
            volume.file("/f", b"saved");
            let mut later = Saved { delta_seq: 1, ..Saved::file("/f") };
            (later.stat.mode, later.stat.mtime, later.stat.size) = (0o104_711, MTIME + 9, 5);
            if is_update {
                volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..later });
            } else {
                volume.patch(&later).record(Stream::FILE_DATA, b"SAVE");
            }
            let finished = place.job_with(mode).run(&volume);
            let after = place.stat("f");
            if mode == Replace::Always {
                finished.assert_quiet();
                assert_eq!(place.read("f"), if is_update { b"saved" } else { b"SAVEd" });
                assert_eq!((after.mode(), after.mtime()), (0o104_711, MTIME + 9));
                continue;
            }
            let text = format!("File skipped. {}: {}\n", reason(mode), place.text("f"));
            assert_eq!(finished.told(), [(MessageType::Skipped, text.as_str()); 2], "{mode:?} {is_update}");
            assert_eq!(place.read("f"), b"kept by hand");
            assert_eq!((after.mode(), after.mtime(), after.ctime()), (before.mode(), before.mtime(), before.ctime()));
        }
    }
}

#[test]
fn what_the_job_has_made_gets_its_patches_and_updates_in_every_mode() {
    for mode in MODES {
        for delta_seq in [0, 1] {
            let place = Place::new();
            let mut volume = Volume::new();
            volume.file("/f", b"saved").file("/g", b"saved");
            let mut patch = Saved::file("/g");
            let mut update = Saved { stream: Stream::ATTRIBUTES_UPDATE, delta_seq, ..Saved::file("/f") };
            for later in [&mut patch, &mut update] {
                (later.stat.mode, later.stat.size) = (0o100_600, 5);
            }
            volume.put(&update).patch(&patch).record(Stream::FILE_DATA, b"SAVE");
            place.job_with(mode).run(&volume).assert_quiet();
            assert_eq!((place.read("f"), place.mode("f")), (b"saved".to_vec(), 0o100_600), "{mode:?} {delta_seq}");
            assert_eq!((place.read("g"), place.mode("g")), (b"SAVEd".to_vec(), 0o100_600), "{mode:?}");
        }
    }
}

/// Nothing is known of the place that an expression would have given the file, so what stands under
/// its saved name is not touched.
#[test]
fn a_name_that_cannot_be_decided_is_restored_nowhere() {
    let place = Place::new();
    fs::write(place.path("f"), "the live file").unwrap();
    let mut volume = Volume::new();
    volume.file(&place.text("f"), b"saved").file(&place.text("g"), b"saved").directory(&place.text("d/"));
    let mut job = place.job();
    let expressions = RegexWhere::parse(b"!^!/elsewhere!", &mut |_, _| Ok(Some(Box::new(|_| Err(Undecided)))));
    job.plan.output = OutputNames::Regex(expressions.unwrap().unwrap());
    job.run(&volume);
    assert_eq!(place.read("f"), b"the live file");
    assert!(!place.exists("g") && !place.exists("d"));
}

/// A name with a slash at its end is none that a file can have.
#[test]
fn what_can_not_be_made_for_its_name_replaces_nothing() {
    let place = Place::new();
    for name in ["file", "link"] {
        fs::write(place.path(name), b"old").unwrap();
    }
    let mut volume = Volume::new();
    volume.file("/file/", b"new").symlink("/link/", "target");
    let finished = place.job_with(Replace::Always).run(&volume);
    assert_eq!(finished.told().iter().filter(|(kind, _)| *kind == MessageType::Error).count(), 2);
    assert_eq!(["file", "link"].map(|name| place.read(name)), [b"old", b"old"]);
}

/// A file that could not be read when it was saved has a record and no data: an empty one in the
/// place of what is there would be all that is left of it.
#[test]
fn what_is_there_stays_until_data_comes() {
    let mut without = Saved::file("/kept");
    without.stat.size = 3;
    let mut with = Saved::file("/new");
    with.stat.size = 3;
    for comes_last in [true, false] {
        let place = Place::new();
        for name in ["kept", "new", "empty"] {
            fs::write(place.path(name), b"old").unwrap();
        }
        let mut volume = Volume::new();
        volume.put(&with).record(Stream::FILE_DATA, b"new");
        volume.file("/empty", b"");
        volume.put(&without);
        if !comes_last {
            volume.file("/next", b"next");
        }
        let finished = place.job_with(Replace::Always).run(&volume);
        let text = format!("File {} is kept as it is. There is no data to replace it with.\n", place.text("kept"));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
        assert_eq!(["new", "empty", "kept"].map(|name| place.read(name)), [&b"new"[..], b"", b"old"]);
        assert_eq!((finished.files, place.exists("next")), (if comes_last { 3 } else { 4 }, !comes_last));
    }
}

#[test]
fn data_that_can_not_be_unpacked_replaces_nothing() {
    for (stream, record) in [
        (Stream::GZIP_DATA, &b"no zlib"[..]),
        (Stream::COMPRESSED_DATA, b"what no daemon has compressed"),
        (Stream::SPARSE_DATA, b"7 bytes"),
    ] {
        let place = Place::new();
        fs::write(place.path("f"), b"old").unwrap();
        let mut saved = Saved { data_stream: stream, ..Saved::file("/f") };
        saved.stat.size = 300_000;
        let mut volume = Volume::new();
        volume.put(&saved).record(stream, record).record(stream, record).file("/next", b"next");
        let finished = place.job().run(&volume);
        let kept = format!("File {} is kept as it is. There is no data to replace it with.\n", place.text("f"));
        assert!(finished.told().contains(&(MessageType::Error, kept.as_str())), "{:?}", finished.told());
        assert_eq!(finished.told().len(), 2, "{:?}", finished.told());
        assert_eq!((place.read("f"), place.read("next")), (b"old".to_vec(), b"next".to_vec()), "{stream:?}");
    }
}

/// Its first record is unpacked before that is known.
#[test]
fn a_compressed_file_that_can_not_be_replaced_gives_the_next_one_none_of_its_data() {
    let place = Place::new();
    fs::create_dir(place.path("directory")).unwrap();
    fs::write(place.path("old"), b"old").unwrap();
    let mut compressor = Compressor::new(Compression::Gzip(6)).unwrap();
    let mut volume = Volume::new();
    for (name, data) in [("/directory", b"of another"), ("/new", b"of its own"), ("/old", b"for theold")] {
        let mut saved = Saved { data_stream: Stream::GZIP_DATA, ..Saved::file(name) };
        saved.stat.size = 20;
        let mut record = Vec::new();
        compressor.compress(data, &mut record).unwrap();
        volume.put(&saved).record(Stream::GZIP_DATA, &record).record(Stream::GZIP_DATA, &record);
    }
    let finished = place.job().run(&volume);
    assert!(finished.only().1.contains("already exists and could not be replaced"), "{:?}", finished.told());
    assert_eq!(["new", "old"].map(|name| place.read(name)), [b"of its ownof its own", b"for theoldfor theold"]);
}

/// An update or a patch of the next backup is for the file that was not restored, whatever the
/// reason. Once that is restored from a later backup, it gets them.
#[test]
fn what_stays_for_another_gets_no_patch_and_no_update_of_that() {
    for (is_update, is_encrypted, comes_later) in
        [(false, false, false), (true, false, false), (true, true, false), (true, false, true)]
    {
        let place = Place::new();
        fs::write(place.path("f"), b"old").unwrap();
        let_it_be_old();
        let before = place.stat("f");
        let mut first = Saved::file("/f");
        first.stat.size = 3;
        if is_encrypted {
            first.data_stream = Stream::ENCRYPTED_FILE_DATA;
        }
        let mut volume = Volume::new();
        volume.put(&first);
        if comes_later {
            volume.file("/f", b"new");
        }
        let mut later = first.clone();
        (later.stat.mode, later.stat.mtime) = (0o104_711, MTIME + 9);
        if is_update {
            volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..later });
        } else {
            volume.patch(&later).record(Stream::FILE_DATA, b"NEW");
        }
        let finished = place.job().run(&volume);
        let after = place.stat("f");
        if comes_later {
            assert_eq!(finished.told().len(), 1, "{:?}", finished.told());
            assert_eq!((place.read("f"), after.mode(), after.mtime()), (b"new".to_vec(), 0o104_711, MTIME + 9));
            continue;
        }
        let text = format!("File {} not restored: what it belongs to is not complete.\n", place.text("f"));
        assert_eq!(finished.told().len(), 2, "{:?}", finished.told());
        assert_eq!(finished.told()[1], (MessageType::Error, text.as_str()));
        assert_eq!(place.read("f"), b"old");
        assert_eq!((after.mode(), after.mtime(), after.ctime()), (before.mode(), before.mtime(), before.ctime()));
    }
}

/// As where the file system takes its name for that of another file of the job.
#[test]
fn a_hard_link_to_a_file_in_whose_place_another_stays_is_told_of() {
    let place = Place::new();
    let mut refused = Saved { data_stream: Stream::ENCRYPTED_FILE_DATA, ..Saved::file("/f") };
    refused.stat.size = 5;
    let mut link = Saved::hard_link("/h", "/f");
    link.stat.size = 5;
    let mut volume = Volume::new();
    volume.file("/f", b"one").put(&refused).put(&link);
    let finished = place.job().run(&volume);
    let told = finished.told();
    assert!(told.len() == 2 && told[1].1.contains("/h is a name of "), "{told:?}");
    assert_eq!((told[1].0, place.read("h")), (MessageType::Warning, b"one".to_vec()));
}

/// There the device of a file is that of its layer.
#[test]
fn a_hard_link_replaces_a_name_of_another_layer_of_an_overlay() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    let [lower, upper, merged] = ["lower", "upper", "merged"].map(|name| place.path(name));
    for directory in [&lower, &upper, &merged] {
        fs::create_dir(directory).unwrap();
    }
    let mount = |kind: &str, at: &Path, how: &str| {
        nix::mount::mount(Some(kind), at, Some(kind), nix::mount::MsFlags::empty(), Some(how))
    };
    if let Err(errno) = mount("tmpfs", &upper, "size=1m") {
        return skip::test(&format!("no tmpfs can be mounted: {errno}"));
    }
    for name in ["data", "work"] {
        fs::create_dir(upper.join(name)).unwrap();
    }
    for name in ["f", "h"] {
        fs::write(lower.join(name), b"old").unwrap();
    }
    let layers = |name: &str| upper.join(name).display().to_string();
    let how = format!("lowerdir={},upperdir={},workdir={},xino=off", lower.display(), layers("data"), layers("work"));
    if let Err(errno) = mount("overlay", &merged, &how) {
        nix::mount::umount(&upper).unwrap();
        return skip::test(&format!("no overlay can be mounted: {errno}"));
    }
    let mut link = Saved::hard_link("/merged/h", "/merged/f");
    link.stat.size = 3;
    let mut volume = Volume::new();
    volume.file("/merged/f", b"new").put(&link);
    let finished = place.job().run(&volume);
    let [first, second] = ["merged/f", "merged/h"].map(|name| (place.read(name), place.stat(name).ino()));
    nix::mount::umount(&merged).unwrap();
    nix::mount::umount(&upper).unwrap();
    finished.assert_quiet();
    assert_eq!((first.0.as_slice(), &first), (&b"new"[..], &second));
}

/// The data is on the volume all the same, and the job says why it ends.
#[test]
fn a_job_that_ends_before_data_comes_does_not_say_that_there_is_none() {
    for (end, told) in [(Frame::Cancel, 0), (Frame::Lost, 1)] {
        let place = Place::new();
        fs::write(place.path("f"), b"old").unwrap();
        let mut volume = Volume::new();
        volume.file("/f", b"new");
        volume.frames.truncate(2);
        volume.frames.push(end);
        let finished = place.job().run(&volume);
        assert_eq!(finished.told().len(), told, "{:?}", finished.told());
        assert!(!finished.told().iter().any(|(_, text)| text.contains("no data")), "{:?}", finished.told());
        assert_eq!(place.read("f"), b"old");
    }
}
