//! Every type of entry becomes what it was.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::time::{Duration, UNIX_EPOCH};

use fd_compress::Compressor;
use fd_messages::{CancelToken, MessageType};
use fd_records::{Compression, FileType, Replace, Stat, Stream};
use fd_restore::OutputNames;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;

use crate::volume::{ATIME, Job, MTIME, Place, Saved, Volume, is_root, job_below, let_it_be_old, regex_where};

#[test]
fn a_regular_file_has_its_data_and_attributes() {
    let place = Place::new();
    let mut saved = Saved::file("/a/f");
    saved.stat.mode = 0o106_751;
    saved.stat.size = 10;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"01234").record(Stream::FILE_DATA, b"56789");
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    let found = place.stat("a/f");
    assert_eq!(place.read("a/f"), b"0123456789");
    assert_eq!((found.mode(), found.atime(), found.mtime()), (0o106_751, ATIME, MTIME));
    assert_eq!((found.atime_nsec(), found.mtime_nsec()), (0, 0));
    assert_eq!((finished.files, finished.read_bytes, finished.job_bytes), (1, 10, 10));
}

#[test]
fn names_are_bytes() {
    let place = Place::new();
    let mut saved = Saved::file("");
    saved.name = b"/a \n\xff'\"/\x01".to_vec();
    place.job().run(Volume::new().put(&saved).record(Stream::FILE_DATA, b"x")).assert_quiet();
    assert_eq!(fs::read(place.root().join(OsStr::from_bytes(b"a \n\xff'\"/\x01"))).unwrap(), b"x");
}

#[test]
fn empty_files_of_both_types_are_made() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/e", FileType::EmptyFile, 0o100_444)).put(&Saved::new("/g", FileType::Regular, 0o100_600));
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    for (name, mode) in [("e", 0o100_444), ("g", 0o100_600)] {
        assert_eq!((place.read(name).len(), place.mode(name), place.stat(name).mtime()), (0, mode, MTIME));
    }
    assert_eq!((finished.files, finished.job_bytes), (2, 0));
}

#[test]
fn links_of_both_kinds_are_made() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/d/first", b"data");
    volume.put(&Saved::hard_link("/d/second", "/d/first"));
    volume.symlink("/d/rel", "first").symlink("/d/abs", "/d/first").symlink("/d/dangling", "nowhere");
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.read("d/second"), b"data");
    assert_eq!(place.stat("d/first").ino(), place.stat("d/second").ino());
    for (name, target) in [("rel", "first"), ("abs", "/d/first"), ("dangling", "nowhere")] {
        let found = place.stat(&format!("d/{name}"));
        assert_eq!((found.atime(), found.mtime()), (ATIME, MTIME), "{name}");
        let path = place.path("d").join(name);
        assert_eq!(fs::read_link(path).unwrap().to_str(), Some(target));
    }
}

#[test]
fn prelinks_change_absolute_targets() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.prelinks = true;
    job.run(Volume::new().symlink("/rel", "first").symlink("/abs", "/d/first")).assert_quiet();
    assert_eq!(fs::read_link(place.path("rel")).unwrap().to_str(), Some("first"));
    assert_eq!(fs::read_link(place.path("abs")).unwrap(), place.path("d/first"));
}

#[test]
fn a_link_without_its_first_name_is_an_error() {
    let place = Place::new();
    let finished = place.job().run(Volume::new().put(&Saved::hard_link("/x", "/gone")));
    let text = format!(
        "create_file.c:360 Could not hard link {} -> {}: ERR=No such file or directory\n",
        place.text("x"),
        place.text("gone")
    );
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    assert_eq!(finished.files, 1);
}

/// It may be the only copy: the first name was not chosen, or could not be restored.
#[test]
fn a_name_stays_when_its_hard_link_can_not_be_made() {
    let place = Place::new();
    fs::write(place.path("x"), b"the only copy").unwrap();
    let finished = place.job().run(Volume::new().put(&Saved::hard_link("/x", "/gone")));
    assert!(finished.only().1.contains("Could not hard link"), "{:?}", finished.told());
    assert_eq!(place.read("x"), b"the only copy");
}

#[test]
fn a_name_stays_when_there_can_be_no_such_hard_link() {
    let place = Place::new();
    fs::create_dir(place.path("directory")).unwrap();
    let stays = |first: &str, why: &str| {
        fs::write(place.path("x"), b"the only copy").unwrap();
        let link = Saved::hard_link(&place.text("x"), first);
        let finished = job_below("").run(Volume::new().put(&link));
        assert!(finished.only().1.contains(why), "{:?}", finished.told());
        assert_eq!(place.read("x"), b"the only copy");
    };
    stays(&place.text("directory"), "Operation not permitted");
    fs::create_dir(place.path("taken")).unwrap();
    let link = Saved::hard_link(&place.text("taken"), &place.text("directory"));
    let finished = job_below("").run(Volume::new().put(&link));
    assert!(finished.only().1.contains("Could not hard link"), "{:?}", finished.told());
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return skip::part("there is no /dev/shm") };
    if fs::metadata(other.path()).unwrap().dev() == place.stat("directory").dev() {
        return skip::part("/dev/shm is the same file system");
    }
    let first = other.path().join("first");
    fs::write(&first, b"another").unwrap();
    let_it_be_old();
    stays(first.to_str().unwrap(), "Invalid cross-device link");
}

/// That both are of one device does not say that one can be a name of the other.
#[test]
fn a_name_stays_when_the_file_system_refuses_its_hard_link() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    fs::write(place.path("c/g"), b"the only copy").unwrap();
    let (from, at) = (place.path("c"), place.path("b"));
    if let Err(errno) = nix::mount::mount(Some(&from), &at, None::<&str>, nix::mount::MsFlags::MS_BIND, None::<&str>) {
        return skip::test(&format!("no directory can be mounted: {errno}"));
    }
    let mut link = Saved::hard_link("/b/g", "/a/f");
    link.stat.size = 4;
    let finished = place.job().run(Volume::new().file("/a/f", b"data").put(&link));
    let there = fs::read(place.path("b/g"));
    nix::mount::umount(&at).unwrap();
    assert!(finished.only().1.contains("Could not hard link"), "{:?}", finished.told());
    assert!(finished.only().1.ends_with("Invalid cross-device link\n"), "{:?}", finished.told());
    assert_eq!(there.ok(), Some(b"the only copy".to_vec()));
    assert_eq!(fs::read_dir(place.path("c")).unwrap().count(), 1, "nothing is left beside it");
}

/// A link is made beside what it replaces. What can't be replaced leaves no trace of that.
#[test]
fn a_hard_link_that_can_not_replace_what_is_there_changes_nothing() {
    let place = Place::new();
    let mut link = Saved::hard_link("/d/taken", "/first");
    link.stat.size = 4;
    let mut volume = Volume::new();
    volume.file("/first", b"data").put(&link);
    let restore = |why: &str| {
        let_it_be_old();
        let before = place.stat("d");
        let finished = place.job().run(&volume);
        let text = format!("/d/taken already exists and could not be replaced. ERR={why}.\n");
        assert!(finished.only().1.ends_with(&text), "{:?}", finished.told());
        let after = place.stat("d");
        assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()), "{why}");
        assert_eq!(fs::read_dir(place.path("d")).unwrap().count(), 1, "{why}");
    };
    fs::create_dir_all(place.path("d/taken")).unwrap();
    restore("Is a directory");
    fs::remove_dir(place.path("d/taken")).unwrap();
    fs::write(place.path("d/taken"), b"kept").unwrap();
    let chattr = |flag: &str| {
        let done = std::process::Command::new("chattr").arg(flag).arg(place.path("d/taken")).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !chattr("+i") {
        return skip::part("no file can be made immutable here");
    }
    let restored = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| restore("Operation not permitted")));
    assert!(chattr("-i"));
    restored.unwrap();
    assert_eq!(place.read("d/taken"), b"kept");
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.stat("d/taken").ino(), place.stat("first").ino());
}

/// The two names may mean files of their own by now, and only this one was chosen.
#[test]
fn a_name_stays_when_its_hard_link_would_be_to_another_file() {
    let place = Place::new();
    let mut link = Saved::hard_link("/x", "/first");
    link.stat.size = 5;
    let restore = || place.job().run(Volume::new().put(&link));
    fs::write(place.path("first"), b"edited since").unwrap();
    fs::write(place.path("x"), b"the only copy").unwrap();
    let_it_be_old();
    let text = format!(
        "File {} is kept as it is. It was saved as a hard link to {}, which was there before this job and is not the \
         file that was saved.\n",
        place.text("x"),
        place.text("first")
    );
    assert_eq!(restore().only(), (MessageType::Error, text.as_str()));
    assert_eq!(place.read("x"), b"the only copy");
    // It is replaced by a link to the file that was saved.
    fs::write(place.path("first"), b"saved").unwrap();
    let_it_be_old();
    let time = fs::FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(MTIME.unsigned_abs()));
    fs::File::open(place.path("first")).unwrap().set_times(time).unwrap();
    restore().assert_quiet();
    assert_eq!((place.read("x"), place.stat("x").ino()), (b"saved".to_vec(), place.stat("first").ino()));
}

/// `regexwhere` can do so, and a bind mount within a file system.
#[test]
fn a_hard_link_whose_name_is_that_of_its_file_keeps_it() {
    let place = Place::new();
    fs::create_dir(place.path("d")).unwrap();
    let_it_be_old();
    let mut volume = Volume::new();
    volume.file("/d/first", b"data").put(&Saved::hard_link("/d/first", "/d/first"));
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.read("d/first"), b"data");
}

/// As a FileSet with relative names has them.
#[test]
fn a_hard_link_to_a_relative_name_follows_it_below_where() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("relative/first", b"data").put(&Saved::hard_link("relative/second", "relative/first"));
    let finished = place.job().run(&volume);
    assert_eq!((finished.told(), finished.files), (Vec::new(), 2));
    assert_eq!(place.stat("relative/first").ino(), place.stat("relative/second").ino());
}

#[test]
fn fifos_devices_and_sockets() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/fifo", FileType::Special, 0o010_640));
    volume.put(&Saved::new("/socket", FileType::Special, 0o140_755));
    // A special file with the mode of a regular one is made by mknod too.
    volume.put(&Saved::new("/odd", FileType::Special, 0o100_640));
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    assert_eq!(finished.files, 3);
    let fifo = place.stat("fifo");
    assert!(fifo.file_type().is_fifo());
    assert_eq!((fifo.mode() & 0o7777, fifo.mtime()), (0o640, MTIME));
    assert!(!place.exists("socket"));
    assert!(place.stat("odd").is_file());

    if !is_root() {
        return skip::test("needs root");
    }
    let mut volume = Volume::new();
    for (name, mode, rdev) in [("/null", 0o020_666, 0x103), ("/blk", 0o060_600, 0x7c8)] {
        let mut saved = Saved::new(name, FileType::Special, mode);
        saved.stat.rdev = rdev;
        volume.put(&saved);
    }
    let finished = place.job().run(&volume);
    if finished.told().iter().any(|(_, text)| text.contains("Operation not permitted")) {
        return skip::test("root may not make devices here");
    }
    finished.assert_quiet();
    assert!(place.stat("null").file_type().is_char_device());
    assert!(place.stat("blk").file_type().is_block_device());
    assert_eq!((place.stat("null").rdev(), place.stat("blk").rdev()), (0x103, 0x7c8));
}

/// A job that restores to where things were saved, and the name of something in this place as it
/// was saved then.
fn in_place(place: &Place) -> (Job, impl Fn(&str) -> String) {
    let mut job = place.job();
    job.plan.output = OutputNames::Original;
    let below = place.root().to_str().unwrap().to_owned();
    (job, move |name| format!("{below}/{name}"))
}

#[test]
fn a_fifo_with_data_needs_its_reader() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let_it_be_old();
    let path = place.path("fifo");
    let reader = std::thread::spawn(move || {
        let mut data = Vec::new();
        fs::File::open(path).unwrap().read_to_end(&mut data).unwrap();
        data
    });
    let (job, name) = in_place(&place);
    let mut volume = Volume::new();
    volume.put(&Saved::new(&name("fifo"), FileType::Fifo, 0o010_600)).record(Stream::FILE_DATA, b"from the volume");
    job.run(&volume).assert_quiet();
    assert_eq!(reader.join().unwrap(), b"from the volume");
}

/// Who reads a fifo may stop in the middle.
#[test]
fn a_job_that_writes_to_a_full_fifo_can_be_canceled() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let_it_be_old();
    let (job, name) = in_place(&place);
    let reader = fs::OpenOptions::new().read(true).write(true).open(place.path("fifo")).unwrap();
    let mut volume = Volume::new();
    // More than a fifo holds.
    volume.put(&Saved::new(&name("fifo"), FileType::Fifo, 0o010_600)).record(Stream::FILE_DATA, &vec![7; 4 << 20]);
    let cancel = CancelToken::new();
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::NONE).unwrap();
            cancel.cancel();
        });
        job.run_with(&cancel, &volume)
    });
    assert_eq!(finished.outcome, Ok(fd_restore::End::Canceled));
    assert!(finished.job_bytes < 4 << 20);
}

/// Makes a block device backed by a file; `None` where that is impossible, as where the folder of
/// temporary files is mounted with `nodev`.
fn loop_device(place: &Place, name: &str, content: &[u8]) -> Option<LoopDevice> {
    let losetup = |words: &[&OsStr]| std::process::Command::new("losetup").args(words).output();
    if !is_root() {
        return None;
    }
    let file = place.path("behind-it");
    fs::write(&file, content).unwrap();
    let found = losetup(&["--find".as_ref(), "--show".as_ref(), file.as_os_str()]).ok()?;
    let device = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    let open = fs::File::open(&device);
    // It goes when it is closed, also if this process is killed.
    losetup(&["--detach".as_ref(), device.as_ref()]).ok()?;
    let open = open.ok()?;
    let number = open.metadata().unwrap().rdev();
    let node = place.path(name);
    nix::sys::stat::mknod(&node, nix::sys::stat::SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, number).unwrap();
    fs::File::open(&node).is_ok().then_some(LoopDevice(open, number))
}

/// An open one, and its number.
struct LoopDevice(fs::File, u64);

fn beginning(device: &LoopDevice) -> Vec<u8> {
    let mut found = vec![0; 4096];
    device.0.read_exact_at(&mut found, 0).unwrap();
    found
}

#[test]
fn a_raw_device_is_overwritten_and_not_truncated() {
    let place = Place::new();
    let Some(device) = loop_device(&place, "raw", &[b'-'; 4096]) else { return skip::test("no loop device") };
    let_it_be_old();
    let (job, name) = in_place(&place);
    let mut volume = Volume::new();
    let mut saved = Saved::new(&name("raw"), FileType::Raw, 0o060_600);
    // A device may have another number than when it was saved.
    saved.stat.rdev = 0x7ff;
    volume.put(&saved).record(Stream::FILE_DATA, &[b'+'; 512]);
    job.run(&volume).assert_quiet();
    assert_eq!(beginning(&device), [vec![b'+'; 512], vec![b'-'; 3584]].concat());
    assert_eq!(place.stat("raw").mtime(), MTIME);
}

/// A record of sparse data.
fn sparse(address: usize, data: &[u8]) -> Vec<u8> {
    [&(address as u64).to_be_bytes()[..], data].concat()
}

/// Its zeros were left out when it was saved, and what is restored to holds other bytes.
#[test]
fn a_sparse_raw_device_gets_its_zeros_too() {
    let place = Place::new();
    let Some(device) = loop_device(&place, "raw", &[b'-'; 4096]) else { return skip::test("no loop device") };
    let_it_be_old();
    let (job, name) = in_place(&place);
    let saved = Saved { data_stream: Stream::SPARSE_DATA, ..Saved::new(&name("raw"), FileType::Raw, 0o060_600) };
    let put = |addresses: &[usize]| {
        let mut volume = Volume::new();
        volume.put(&saved);
        for address in addresses {
            volume.record(Stream::SPARSE_DATA, &sparse(*address, &[b'+'; 512]));
        }
        job.run(&volume)
    };
    // Up to its end: nothing can be missing.
    put(&[1024, 3584]).assert_quiet();
    let (plus, zeros) = (vec![b'+'; 512], |count| vec![0; count]);
    let whole = [zeros(1024), plus.clone(), zeros(2048), plus.clone()].concat();
    assert_eq!(beginning(&device), whole);
    // What lies behind the last block is not known to be zero.
    let finished = put(&[512]);
    let text = format!(
        "{} was saved with Sparse = yes: zeros behind its last data are not on the volume. Nothing is written there, \
         from byte 1024 on.\n",
        name("raw")
    );
    assert_eq!(finished.only(), (MessageType::Warning, text.as_str()));
    assert_eq!(beginning(&device), [&zeros(512)[..], &plus, &whole[1024..]].concat());
    // As no backup does, and zeros would overwrite data.
    let finished = put(&[1024, 0, 3584]);
    assert!(finished.only().1.contains("address 0 is before byte 1536"), "{:?}", finished.told());
    // The gaps of a patch keep what is there.
    let mut volume = Volume::new();
    let patches = Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number());
    volume.patch(&Saved { data_stream: Stream::FILE_DATA, ..saved.clone() });
    volume.record(patches, &sparse(2048, &[b'p'; 512])).record(patches, &sparse(3072, &[b'p'; 512])).stop();
    let before = beginning(&device);
    job.run(&volume).assert_quiet();
    let p = vec![b'p'; 512];
    assert_eq!(beginning(&device), [&before[..2048], &p, &before[2560..3072], &p, &before[3584..]].concat());
}

#[test]
fn a_sparse_fifo_gives_its_reader_the_zeros_too() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let_it_be_old();
    let path = place.path("fifo");
    let reader = std::thread::spawn(move || fs::read(path).unwrap());
    let (job, name) = in_place(&place);
    let mut volume = Volume::new();
    volume.put(&Saved { data_stream: Stream::SPARSE_DATA, ..Saved::new(&name("fifo"), FileType::Fifo, 0o010_600) });
    volume.record(Stream::SPARSE_DATA, &sparse(200_000, b"data"));
    let finished = job.run(&volume);
    assert_eq!(reader.join().unwrap(), [vec![0; 200_000], b"data".to_vec()].concat());
    assert!(finished.only().1.ends_with("from byte 200004 on.\n"), "{:?}", finished.told());
}

/// The address of a damaged or evil volume may be any.
#[test]
fn a_job_that_writes_zeros_can_be_canceled() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let_it_be_old();
    let (job, name) = in_place(&place);
    let mut volume = Volume::new();
    volume.put(&Saved { data_stream: Stream::SPARSE_DATA, ..Saved::new(&name("fifo"), FileType::Fifo, 0o010_600) });
    volume.record(Stream::SPARSE_DATA, &sparse(1 << 60, b"data"));
    let cancel = CancelToken::new();
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(place.path("fifo")).unwrap();
    let finished = std::thread::scope(|scope| {
        let job = scope.spawn(|| job.run_with(&cancel, &volume));
        // It goes on reading, so that the job never waits for it.
        let mut block = vec![0; 65_536];
        for _ in 0..100 {
            reader.read_exact(&mut block).unwrap();
        }
        cancel.cancel();
        while !job.is_finished() {
            let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
            if poll(&mut polled, PollTimeout::from(10_u8)).unwrap() > 0 {
                assert!(reader.read(&mut block).unwrap() > 0);
            }
        }
        job.join().unwrap()
    });
    assert_eq!((finished.outcome, finished.job_bytes), (Ok(fd_restore::End::Canceled), 0));
}

/// The messages about data for a special file, cut to what follows the name.
fn told_of_data(job: &Job, saved: &Saved) -> Vec<String> {
    let mut volume = Volume::new();
    volume.put(saved).record(Stream::FILE_DATA, b"evil").file("/tmp/never/made", b"").frames.truncate(4);
    let finished = job.run(&volume);
    assert_eq!((finished.files, finished.job_bytes), (1, 0), "{:?}", finished.told());
    let told = finished.told().into_iter().map(|(kind, text)| {
        assert_eq!(kind, MessageType::Error);
        let (_, reason) = text.split_once(" not restored: ").unwrap_or(("", text));
        reason.trim_end().to_owned()
    });
    told.collect()
}

#[test]
fn data_goes_only_to_a_special_file_of_its_type() {
    let place = Place::new();
    let (job, name) = in_place(&place);
    fs::write(place.path("file"), b"kept").unwrap();
    fs::create_dir(place.path("directory")).unwrap();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let before = place.stat("file");
    let_it_be_old();
    for file_type in [FileType::Fifo, FileType::Raw] {
        for mode in [0o010_666, 0o060_666] {
            let what = if mode == 0o010_666 { "a FIFO" } else { "a block device" };
            for (there, is) in [("file", "a regular file"), ("directory", "a directory"), ("fifo", "a FIFO")] {
                if is == what {
                    continue;
                }
                let said = told_of_data(&job, &Saved::new(&name(there), file_type, mode));
                assert_eq!(said, [format!("it is {is}, the data is that of {what}.")]);
            }
        }
        // The mode of such a record is that of no special file.
        let said = told_of_data(&job, &Saved::new(&name("file"), file_type, 0o100_666));
        assert_eq!(said, ["the record is of a special file, but its mode is that of a regular file."]);
    }
    let after = place.stat("file");
    assert_eq!(
        (after.ino(), after.ctime_nsec(), place.read("file")),
        (before.ino(), before.ctime_nsec(), b"kept".to_vec())
    );
}

#[test]
fn data_goes_to_no_special_file_that_the_job_made() {
    let place = Place::new();
    let (job, name) = in_place(&place);
    // Whoever would read it finds it empty.
    let new = "it did not exist before this job, which made it without its data.";
    assert_eq!(told_of_data(&job, &Saved::new(&name("new"), FileType::Fifo, 0o010_640)), [new]);
    let made = place.stat("new");
    assert!(made.file_type().is_fifo() && made.mtime() == MTIME && made.mode() & 0o777 == 0o640);
    // Made by a record of its own first; and under another name.
    let reason = "it is newer than this job, and data is written to special files that are older only.";
    for second in ["made", "linked"] {
        let mut volume = Volume::new();
        volume.put(&Saved::new(&name("made"), FileType::Special, 0o010_666));
        volume.put(&Saved::hard_link(&name("linked"), &name("made")));
        volume.put(&Saved::new(&name(second), FileType::Fifo, 0o010_666)).record(Stream::FILE_DATA, b"evil");
        let finished = job.run(&volume);
        let text = format!("Data of {} not restored: {reason}\n", name(second));
        assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    }
    let Some(device) = loop_device(&place, "there", &[b'-'; 4096]) else { return skip::part("no loop device") };
    let mut special = Saved::new(&name("mine"), FileType::Special, 0o060_666);
    special.stat.rdev = device.1;
    let mut volume = Volume::new();
    let data = Saved { file_type: FileType::Raw, ..special.clone() };
    volume.put(&special).put(&data).record(Stream::FILE_DATA, &[b'+'; 512]);
    assert_eq!(job.run(&volume).told().len(), 1);
    assert_eq!(beginning(&device), [b'-'; 4096]);
}

#[test]
fn data_goes_to_no_special_file_below_where() {
    let place = Place::new();
    fs::create_dir(place.path("w")).unwrap();
    nix::unistd::mkfifo(&place.path("w/fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let device = loop_device(&place, "w/raw", &[b'-'; 4096]);
    let_it_be_old();
    let reason = "data is written to special files only at their original path, without where.";
    let job = crate::volume::job_below(&place.text("w"));
    assert_eq!(told_of_data(&job, &Saved::new("/fifo", FileType::Fifo, 0o010_666)), [reason]);
    if let Some(device) = device {
        assert_eq!(told_of_data(&job, &Saved::new("/raw", FileType::Raw, 0o060_666)), [reason]);
        assert_eq!(beginning(&device), [b'-'; 4096]);
    }
}

#[test]
fn types_that_are_not_files_are_reported() {
    let place = Place::new();
    let cases = [
        (FileType::Deleted, MessageType::Info, "create_file.c:436 Original file /x have been deleted: type=23\n"),
        (FileType::NoAccess, MessageType::Error, "create_file.c:448 Original file /x not saved: type=7\n"),
        (FileType::NoOpen, MessageType::Error, "create_file.c:448 Original file /x not saved: type=15\n"),
        (FileType::Base, MessageType::Error, "create_file.c:451 Unknown file type 24; not restored: /x\n"),
        (FileType::InvalidFileSystem, MessageType::Error, "create_file.c:451 Unknown file type 19; not restored: /x\n"),
        (FileType::SecurityObject, MessageType::Error, "create_file.c:451 Unknown file type 30; not restored: /x\n"),
    ];
    for (file_type, kind, text) in cases {
        let mut volume = Volume::new();
        volume.put(&Saved::new("/x", file_type, 0o100_644)).record(Stream::FILE_DATA, b"ignored");
        let finished = place.job().run(&volume);
        assert_eq!(finished.only(), (kind, text));
        assert!(!place.exists("x"));
        assert_eq!((finished.files, finished.job_bytes), (1, 0));
    }
    let mut volume = Volume::new();
    volume.record(Stream::ATTRIBUTES, b"1 99 /x\0A A A A A A A A A A A A A A A C\0\0\x000\0");
    assert_eq!(place.job().run(&volume).only().1, "create_file.c:451 Unknown file type 99; not restored: /x\n");
}

fn update(saved: Saved) -> Saved {
    Saved { stream: Stream::ATTRIBUTES_UPDATE, ..saved }
}

#[test]
fn an_attribute_update_changes_what_exists_and_its_data_is_needed() {
    let place = Place::new();
    fs::write(place.path("f"), b"kept").unwrap();
    let mut volume = Volume::new();
    for (name, delta_seq) in [("/f", 1), ("/f", 0), ("/missing", 0), ("/missing", 1)] {
        let mut saved = update(Saved::file(name));
        saved.delta_seq = delta_seq;
        saved.stat.mode = 0o100_640;
        saved.stat.size = 4;
        volume.put(&saved);
        // Never accepted after an update.
        volume.record(Stream::FILE_DATA, b"x");
    }
    let finished = place.job().run(&volume);
    let text = format!("File skipped. File must exists to apply a patch: {}\n", place.text("missing"));
    assert_eq!(finished.told(), [(MessageType::Skipped, text.as_str()); 2]);
    assert_eq!(place.read("f"), b"kept");
    assert_eq!((place.mode("f"), place.stat("f").mtime()), (0o100_640, MTIME));
    assert!(!place.exists("missing"));
    assert_eq!(finished.files, 4);
}

/// In a chain of backups the newest record of something may be such an update, and the only one
/// that is restored.
#[test]
fn an_attribute_update_makes_what_its_record_alone_can_make() {
    for delta_seq in [0, 1] {
        let place = Place::new();
        let mut volume = Volume::new();
        let mut attribute = Vec::new();
        fd_records::xattr::push(&mut attribute, b"user.a", b"1");
        volume.file("/first", b"data");
        for saved in [
            Saved::new("/a/empty", FileType::EmptyFile, 0o100_640),
            Saved::new("/a/size-0", FileType::Regular, 0o100_640),
            Saved::symlink("/a/link", "target"),
            Saved::hard_link("/a/second", "/first"),
            Saved::new("/a/fifo", FileType::Special, 0o010_640),
            Saved::new("/a/read-fifo", FileType::Fifo, 0o010_640),
            Saved::directory("/d/"),
        ] {
            volume.put(&Saved { delta_seq, ..update(saved) });
            volume.record(Stream::FILE_DATA, b"never accepted behind an update");
        }
        // Once more, when all of it is there, with another mode.
        let again = volume.clone();
        let mut job = place.job();
        job.restored_lines = true;
        let finished = job.run(&volume);
        assert_eq!(finished.told(), []);
        assert_eq!((finished.files, finished.messages.len()), (8, 8));
        for (name, mode) in [
            ("a/empty", 0o100_640),
            ("a/size-0", 0o100_640),
            ("a/link", 0o120_777),
            ("a/second", 0o100_644),
            ("a/fifo", 0o010_640),
            ("a/read-fifo", 0o010_640),
            ("d", 0o040_750),
        ] {
            assert_eq!((place.mode(name), place.stat(name).mtime()), (mode, MTIME), "{name}");
        }
        assert!(place.read("a/empty").is_empty() && place.read("a/size-0").is_empty());
        assert_eq!(place.stat("first").ino(), place.stat("a/second").ino());
        fs::write(place.path("a/empty"), b"grown").unwrap();
        let numbers = ["a/empty", "a/link", "a/fifo", "a/read-fifo", "d"].map(|name| place.stat(name).ino());
        assert_eq!(job.run(&again).told(), []);
        assert_eq!(["a/empty", "a/link", "a/fifo", "a/read-fifo", "d"].map(|name| place.stat(name).ino()), numbers);
        assert_eq!((place.read("a/empty"), place.stat("a/empty").mtime()), (b"grown".to_vec(), MTIME));
    }
}

/// There are devices that do something as soon as they are opened; a fifo remembers that it was.
#[test]
fn a_patch_opens_nothing_but_a_regular_file() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let reader = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(place.path("fifo"))
        .unwrap();
    let mut volume = Volume::new();
    volume.patch(&Saved::file("/fifo")).record(Stream::FILE_DATA, b"evil");
    let finished = place.job().run(&volume);
    let text = format!("create_file.c:254 Could not create {}: ERR=Invalid argument\n", place.text("fifo"));
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    let mut polled = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).unwrap();
    assert_eq!(polled[0].revents(), Some(PollFlags::empty()), "it was opened for writing");
}

/// The stock daemon repeats the number of an update of attributes when it sends a file whole.
#[test]
fn what_is_saved_whole_behind_an_update_is_no_patch() {
    let long = vec![b'x'; 196_584];
    let end = 131_072;
    for mode in [Replace::Always, Replace::IfNewer] {
        let place = Place::new();
        let mut volume = Volume::new();
        volume.file("/f", &long).file("/short", &long).file("/empty", &long);
        let whole = |name: &str, size: usize| {
            let mut saved = Saved { delta_seq: 1, ..Saved::file(name) };
            (saved.stat.size, saved.stat.mtime) = (i64::try_from(size).unwrap(), MTIME + 20);
            saved
        };
        volume.put(&Saved { data_stream: Stream::SPARSE_DATA, ..whole("/f", long.len()) });
        volume.record(Stream::SPARSE_DATA, &sparse(0, &b"y".repeat(65_536)));
        volume.record(Stream::SPARSE_DATA, &sparse(end, &b"y".repeat(65_512)));
        volume.put(&whole("/short", 3)).record(Stream::FILE_DATA, b"new");
        volume.put(&Saved { file_type: FileType::EmptyFile, ..whole("/empty", 0) });
        volume.put(&Saved { delta_seq: 1, ..Saved::symlink("/link", "f") });
        if mode == Replace::IfNewer {
            // As if the first of them had been kept: what is there is between the two in age.
            fs::write(place.path("f"), &long).unwrap();
            fs::File::open(place.path("f"))
                .unwrap()
                .set_modified(UNIX_EPOCH + Duration::from_secs((MTIME + 10).unsigned_abs()))
                .unwrap();
            let_it_be_old();
        }
        let finished = place.job_with(mode).run(&volume);
        assert!(finished.told().iter().all(|(_, text)| text.contains("Not newer")), "{:?}", finished.told());
        assert_eq!(finished.told().len(), usize::from(mode == Replace::IfNewer));
        let found = place.read("f");
        assert_eq!((found.len(), found[0], found[end]), (long.len(), b'y', b'y'));
        assert!(found[65_536..end].iter().all(|byte| *byte == 0), "{mode:?}");
        assert_eq!((place.read("short"), place.read("empty")), (b"new".to_vec(), Vec::new()));
        assert!(place.stat("link").is_symlink());
    }
}

#[test]
fn a_patch_needs_an_existing_file() {
    let place = Place::new();
    fs::write(place.path("f"), b"0123456789").unwrap();
    let mut volume = Volume::new();
    for name in ["/f", "/missing"] {
        let mut saved = Saved::file(name);
        saved.stat.size = 10;
        volume.patch(&saved);
        let record = [&5_u64.to_be_bytes()[..], b"abc"].concat();
        volume.record(Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number()), &record);
    }
    let finished = place.job().run(&volume);
    let text = format!("File skipped. File must exists to apply a patch: {}\n", place.text("missing"));
    assert_eq!(finished.only(), (MessageType::Skipped, text.as_str()));
    assert_eq!(place.read("f"), b"01234abc89");
}

#[test]
fn sparse_and_compressed_data_comes_out_as_it_was() {
    let data: Vec<u8> = (0..60_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    let address = |at: u64, record: &[u8]| [&at.to_be_bytes()[..], record].concat();
    let pack = |mut compressor: Compressor, block: &[u8]| {
        let mut out = Vec::new();
        compressor.compress(block, &mut out).unwrap();
        out
    };
    let gzip = |block: &[u8]| pack(Compressor::new(Compression::Gzip(6)).unwrap(), block);
    let lzo = |block: &[u8]| pack(Compressor::new(Compression::Lzo).unwrap(), block);
    let zstd = |block: &[u8]| pack(Compressor::new(Compression::Zstd(3)).unwrap(), block);
    let (first, second) = data.split_at(65_536);
    let cases: Vec<(Stream, Vec<Vec<u8>>)> = vec![
        (Stream::FILE_DATA, vec![first.to_vec(), second.to_vec()]),
        (Stream::GZIP_DATA, vec![gzip(first), gzip(second)]),
        (Stream::COMPRESSED_DATA, vec![lzo(first), lzo(second)]),
        (Stream::COMPRESSED_DATA, vec![zstd(first), zstd(second)]),
        (Stream::SPARSE_DATA, vec![address(0, first), address(65_536, second)]),
        (Stream::SPARSE_GZIP_DATA, vec![address(0, &gzip(first)), address(65_536, &gzip(second))]),
        (Stream::SPARSE_COMPRESSED_DATA, vec![address(0, &lzo(first)), address(65_536, &lzo(second))]),
        (
            Stream::new(Stream::BIT_OFFSETS | Stream::FILE_DATA.number()),
            vec![address(0, first), address(65_536, second)],
        ),
    ];
    for (stream, records) in cases {
        let place = Place::new();
        let mut saved = Saved::file("/f");
        saved.stat.size = 240_000;
        saved.data_stream = stream.kind();
        let mut volume = Volume::new();
        volume.put(&saved);
        let received: usize = records.iter().map(Vec::len).sum();
        for record in records {
            volume.record(stream, &record);
        }
        let finished = place.job().run(&volume);
        finished.assert_quiet();
        assert!(place.read("f") == data, "stream {stream}");
        assert_eq!((finished.read_bytes, finished.job_bytes), (received as u64, 240_000), "stream {stream}");
    }
}

#[test]
fn holes_stay_holes() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.stat.size = 10_000_003;
    saved.data_stream = Stream::SPARSE_DATA;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::SPARSE_DATA, &[&10_000_000_u64.to_be_bytes()[..], b"end"].concat());
    place.job().run(&volume).assert_quiet();
    let found = place.stat("f");
    assert_eq!(found.len(), 10_000_003);
    assert!(found.blocks() * 512 < 1_000_000);
}

#[test]
fn windows_data_is_taken_out_of_its_parts() {
    let mut stream = 1_i32.to_le_bytes().to_vec();
    stream.extend_from_slice(&[0; 4]);
    stream.extend_from_slice(&11_i64.to_le_bytes());
    stream.extend_from_slice(&0_i32.to_le_bytes());
    stream.extend_from_slice(b"hello world");
    let pack = |compressor: Option<Compressor>, record: &[u8]| {
        let mut out = record.to_vec();
        if let Some(mut compressor) = compressor {
            out.clear();
            compressor.compress(record, &mut out).unwrap();
        }
        out
    };
    for (kind, compressor) in [
        (Stream::WIN32_DATA, (|| None) as fn() -> Option<Compressor>),
        (Stream::WIN32_GZIP_DATA, || Compressor::new(Compression::Gzip(6)).ok()),
        (Stream::WIN32_COMPRESSED_DATA, || Some(Compressor::new(Compression::Lzo).unwrap())),
    ] {
        let place = Place::new();
        let mut saved = Saved::file("C:/f");
        saved.data_stream = kind;
        let mut volume = Volume::new();
        volume.put(&saved);
        for record in stream.chunks(13) {
            volume.record(kind, &pack(compressor(), record));
        }
        let finished = place.job().run(&volume);
        finished.assert_quiet();
        assert_eq!(place.read("C:/f"), b"hello world", "stream {kind}");
        assert_eq!(finished.job_bytes, 31);
    }
}

/// Attributes of stream 5; without `LinkFI`, flags and data stream, which were not always recorded;
/// with data stream 0.
#[test]
fn attributes_of_older_versions_are_read() {
    let mode = "IGk"; // 0100644
    for (stream, rest) in [
        (Stream::ATTRIBUTES, " A A C"),
        (Stream::ATTRIBUTES, " A A A"),
        (Stream::ATTRIBUTES, " A"),
        (Stream::ATTRIBUTES, ""),
        (Stream::ATTRIBUTES_EX, " A A C"),
        (Stream::ATTRIBUTES_EX, ""),
    ] {
        let place = Place::new();
        let mut record = b"1 3 /f\0".to_vec();
        record.extend_from_slice(format!("A A {mode} B A A A D A A A ProA A{rest}").as_bytes());
        record.extend_from_slice(b"\0\0\0");
        let mut volume = Volume::new();
        volume.record(stream, &record).record(Stream::FILE_DATA, b"old");
        place.job().run(&volume).assert_quiet();
        assert_eq!(place.read("f"), b"old", "stream {stream} {rest:?}");
        assert_eq!((place.mode("f"), place.stat("f").mtime()), (0o100_644, 4_110_848), "stream {stream} {rest:?}");
    }
}

#[test]
fn encrypted_files_are_a_clear_error() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.data_stream = Stream::ENCRYPTED_FILE_DATA;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::ENCRYPTED_SESSION_DATA, b"?").record(Stream::ENCRYPTED_FILE_DATA, &[0; 16]);
    volume.file("/g", b"plain");
    let finished = place.job().run(&volume);
    let text = "No private decryption keys have been defined to decrypt encrypted backup data.\n";
    assert_eq!(finished.only(), (MessageType::Error, text));
    assert_eq!(place.mode("f"), 0o101_600);
    assert_eq!(place.read("g"), b"plain");

    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::ENCRYPTED_FILE_DATA, &[0; 16]);
    let text = format!("restore.c:785 Missing encryption session data stream for {}\n", place.text("f"));
    assert_eq!(place.job().run(&volume).only(), (MessageType::Error, text.as_str()));
}

#[test]
fn a_windows_directory_without_permissions_becomes_accessible() {
    let place = Place::new();
    let mut saved = Saved::directory("/d");
    saved.stat.mode = 0o041_700;
    saved.stat.rdev = 5;
    saved.data_stream = Stream::WIN32_DATA;
    place.job().run(Volume::new().put(&saved)).assert_quiet();
    assert_eq!(place.mode("d"), 0o040_707);
    assert_eq!(place.mode("d") & Stat::MODE_TYPE, Stat::MODE_DIRECTORY);
}

#[test]
fn a_hard_link_does_not_lead_out_of_regexwhere() {
    let place = Place::new();
    fs::create_dir(place.path("live")).unwrap();
    fs::write(place.path("live/f"), b"kept").unwrap();
    fs::set_permissions(place.path("live/f"), fs::Permissions::from_mode(0o600)).unwrap();
    let live = place.text("live/f");
    let before = place.stat("live/f");
    let mut job = place.job();
    let expressions = format!("!^/src!{}!,!live!live!", place.text("to"));
    job.plan.output = regex_where(&expressions);
    let mut greedy = Saved::hard_link("/src/mine", &live);
    greedy.stat.mode = 0o104_777;
    fs::create_dir(place.path("to")).unwrap();
    fs::write(place.path("to/mine"), b"kept, too").unwrap();
    let finished = job.run(Volume::new().put(&greedy).file("/src/next", b"x"));
    let text = format!(
        "File {} not restored: regexwhere gives it another name, but not the file that it is a hard link to, {live}.\n",
        place.text("to/mine")
    );
    assert_eq!((finished.only(), finished.files), ((MessageType::Error, text.as_str()), 2));
    let after = place.stat("live/f");
    assert_eq!((after.mode(), after.nlink(), after.ctime_nsec()), (before.mode(), 1, before.ctime_nsec()));
    assert_eq!((place.read("to/mine"), place.read("to/next")), (b"kept, too".to_vec(), b"x".to_vec()));
    // Where neither name changes it is a restore in place, like any other.
    let mut second = Saved::hard_link(&place.text("live/second"), &live);
    (second.stat.size, second.stat.mtime) = (4, before.mtime());
    job.run(Volume::new().put(&second)).assert_quiet();
    assert_eq!(place.stat("live/f").nlink(), 2);
}

#[test]
fn names_and_hard_links_follow_regexwhere() {
    let place = Place::new();
    let expressions = format!("!^/src!{}/x!,!File!Renamed!", place.root().display());
    let mut job = place.job();
    job.plan.output = regex_where(&expressions);
    let mut volume = Volume::new();
    volume.file("/src/File.txt", b"data").put(&Saved::hard_link("/src/hard", "/src/File.txt"));
    volume.symlink("/src/soft", "/src/File.txt").directory("/src/");
    job.run(&volume).assert_quiet();
    assert_eq!((place.read("x/Renamed.txt"), place.read("x/hard")), (b"data".to_vec(), b"data".to_vec()));
    assert_eq!(fs::read_link(place.path("x/soft")).unwrap().to_str(), Some("/src/File.txt"));
    job.plan.prelinks = true;
    job.run(Volume::new().symlink("/src/soft", "/src/File.txt")).assert_quiet();
    assert_eq!(fs::read_link(place.path("x/soft")).unwrap(), place.path("x/Renamed.txt"));
}

#[test]
fn a_name_without_a_directory_is_reported() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.output = regex_where("!^.*/!!");
    let finished = job.run(Volume::new().file("/src/bare-name", b"x"));
    let text = "File bare-name not restored: the name has no directory.\n";
    assert_eq!(finished.only(), (MessageType::Warning, text));
    assert_eq!(finished.files, 1);
}

#[test]
fn a_name_that_regexwhere_leaves_nothing_of_is_an_error_and_not_the_daemon_s_directory() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.output = regex_where("!^.*$!!");
    let here = || fs::metadata(".").map(|here| (here.mode(), here.uid(), here.gid(), here.mtime() == MTIME)).unwrap();
    let before = here();
    for replace in [Replace::Always, Replace::Never] {
        job.plan.replace = replace;
        // What can't be read would be told if it were applied to anything.
        let directory = job.run(Volume::new().directory("/src/").record(Stream::LINUX_XATTR, b"?"));
        let text = "mkpath.c:140 Cannot create directory : ERR=No such file or directory\n";
        assert_eq!((directory.only(), here()), ((MessageType::Error, text), before));
        let text = "create_file.c:496 Zero length filename: /src/f\n";
        assert_eq!(job.run(Volume::new().file("/src/f", b"x")).only(), (MessageType::Error, text));
        assert_eq!(job.run(Volume::new().symlink("/src/f", "/x")).only(), (MessageType::Error, text));
    }
}
