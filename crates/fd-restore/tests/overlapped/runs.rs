//! Runs of small files leave what one file after the other leaves: the same tree, the same messages
//! and the same counters.

use core::num::NonZeroU16;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use fd_messages::MessageType;
use fd_records::{FileType, Replace, Stream};
use fd_restore::End;

use crate::encryption::{OWN, Sealed, keys};
use crate::volume::{Finished, Frame, Job, MTIME, Place, Saved, Volume, is_root, let_it_be_old};

/// How many volumes are made up.
const SCHEDULES: u64 = 60;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

const FOLDERS: [&str; 7] = ["", "/a", "/a/b", "/a/b/c", "/d", "/d/e", "/link"];
const NAMES: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "b", "e", "link"];

/// Mostly files, with everything else in between.
fn volume(dice: &mut Dice, sealed: &Sealed) -> Volume {
    let mut volume = Volume::new();
    let mut folder = dice.one_of(&FOLDERS);
    for _ in 0..dice.below(60) {
        if dice.below(6) == 0 {
            folder = dice.one_of(&FOLDERS);
        }
        let name = format!("{folder}/{}", dice.one_of(&NAMES));
        match dice.below(40) {
            0 => volume.symlink(&name, dice.one_of(&["a", "b", "../d", "0"])),
            1 => volume.put(&Saved::hard_link(&name, &format!("{}/{}", dice.one_of(&FOLDERS), dice.one_of(&NAMES)))),
            2 => volume.patch(&Saved::file(&name)).record(Stream::FILE_DATA, b"patch").stop(),
            39 => volume.put(&Saved { delta_seq: 1, ..Saved::file(&name) }).record(Stream::FILE_DATA, b"whole"),
            3 => volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..Saved::file(&name) }),
            4 => volume.put(&Saved::new(&name, FileType::Special, 0o010_640)),
            5..=9 => volume.directory(&format!("{folder}/")),
            // Often in place of a directory.
            kind @ 10..=15 => {
                sealed.put(&mut volume, if kind < 13 { dice.one_of(&FOLDERS[1..]) } else { &name });
                continue;
            }
            _ => file(&mut volume, dice, &name),
        };
    }
    volume
}

/// A regular file with this and that.
fn file<'v>(volume: &'v mut Volume, dice: &mut Dice, name: &str) -> &'v mut Volume {
    let data = vec![b'x'; usize::try_from(dice.below(5000)).unwrap()];
    let mut saved = Saved::file(name);
    saved.stat.mode = [0o100_644, 0o100_600, 0o104_755][usize::try_from(dice.below(3)).unwrap()];
    saved.stat.mtime = MTIME + i64::try_from(dice.below(3)).unwrap();
    saved.stat.size = i64::try_from(data.len()).unwrap() + i64::from(dice.below(15) == 0);
    volume.put(&saved);
    for part in data.chunks(3000) {
        volume.record(Stream::FILE_DATA, part);
    }
    match dice.below(12) {
        0 => {
            let mut record = Vec::new();
            fd_records::xattr::push(&mut record, b"user.color", b"blue");
            volume.record(Stream::LINUX_XATTR, &record);
        }
        1 => {
            volume.record(Stream::LINUX_ACCESS_ACL, b"u::rw-,g::r--,o::---\0");
        }
        2 => {
            volume.record(Stream::LINUX_ACCESS_ACL, b"nonsense\0");
        }
        _ => {}
    }
    match dice.below(6) {
        0 => volume.record(Stream::MD5, b"sixteen bytes!!!"),
        1 => volume.record(Stream::MD5, b"short"),
        2 => {
            let mut digester = fd_crypto::Digester::new(fd_records::DigestKind::Md5).unwrap();
            digester.update(&data);
            volume.record(Stream::MD5, digester.finish().unwrap().as_bytes())
        }
        _ => volume,
    }
}

/// What stands there before the job.
fn furnish(place: &Place, dice: &mut Dice) {
    fs::create_dir(place.path("w")).unwrap();
    match dice.below(4) {
        0 => {}
        1 => symlink("a", place.path("w/link")).unwrap(),
        kind => {
            fs::create_dir_all(place.path("w/a/b")).unwrap();
            if kind == 2 {
                symlink("../d", place.path("w/a/4")).unwrap();
                symlink("a/b", place.path("w/link")).unwrap();
            }
            for name in ["a/0", "a/b/1", "a/b/b", "7"] {
                fs::write(place.path("w").join(name), b"old").unwrap();
            }
        }
    }
}

/// A name with its mode, links, time and content. Times that no record sets are left out.
type Found = (String, u32, u64, Option<i64>, Vec<u8>);

/// What stands below a directory.
fn tree(root: &Path) -> Vec<Found> {
    let mut seen = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let content = if stat.is_file() {
                fs::read(&path).unwrap()
            } else if stat.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                Vec::new()
            };
            let time = Some(stat.mtime()).filter(|time| (MTIME..MTIME + 3).contains(time));
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let links = if stat.is_dir() { 0 } else { stat.nlink() };
            seen.push((name, stat.mode(), links, time, content));
            if stat.is_dir() {
                folders.push(path);
            }
        }
    }
    seen.sort();
    seen
}

/// Everything that a job tells, without the name of its place.
fn told(place: &Place, finished: &Finished) -> Vec<(MessageType, String)> {
    let all = finished.messages.iter().chain(&finished.queued);
    all.map(|(kind, text)| (*kind, text.replace(&place.text("w"), "W"))).collect()
}

#[test]
fn any_volume_leaves_the_same_tree_messages_and_counters_at_any_depth() {
    let replaces = [Replace::Always, Replace::Never, Replace::IfNewer, Replace::IfOlder];
    let sealed = Sealed::new(&keys(OWN));
    for seed in 0..SCHEDULES {
        let replace = replaces[usize::try_from(seed % 4).unwrap()];
        let places: Vec<Place> = [1, 8, 256].iter().map(|_| Place::new()).collect();
        for place in &places {
            furnish(place, &mut Dice(seed));
        }
        let_it_be_old();
        let volume = volume(&mut Dice(seed ^ 0x9e37_79b9_7f4a_7c15), &sealed);
        let mut outcomes = Vec::new();
        for (place, depth) in places.iter().zip([1, 8, 256]) {
            let mut job = crate::volume::job_below(&place.text("w"));
            job.plan.replace = replace;
            job.plan.writing_depth = NonZeroU16::new(depth);
            job.plan.keys = (seed % 8 < 4).then(|| Arc::new(keys(OWN)));
            job.restored_lines = true;
            let finished = job.run(&volume);
            let counters = (finished.files, finished.read_bytes, finished.job_bytes, finished.outcome.clone());
            outcomes.push((told(place, &finished), counters, tree(&place.path("w"))));
        }
        let (first, others) = outcomes.split_first().unwrap();
        for other in others {
            assert_eq!(other, first, "schedule {seed}");
        }
    }
}

/// A run of many files in many directories.
fn many(folders: u32, files: u32) -> Volume {
    let mut volume = Volume::new();
    for folder in 0..folders {
        for file in 0..files {
            volume.file(&format!("/{folder}/{file}"), format!("{folder}/{file}").as_bytes());
        }
        volume.directory(&format!("/{folder}/"));
    }
    volume
}

fn job(place: &Place, depth: u16) -> Job {
    let mut job = place.job();
    job.plan.writing_depth = NonZeroU16::new(depth);
    job
}

#[test]
fn runs_over_many_directories_are_whole_with_the_directories_own_times() {
    let place = Place::new();
    let finished = job(&place, 64).run(&many(90, 40));
    finished.assert_quiet();
    assert_eq!(finished.files, 90 * 41);
    for folder in 0..90 {
        let stat = place.stat(&folder.to_string());
        assert_eq!((stat.mtime(), stat.mode()), (MTIME, 0o040_750));
        for file in 0..40 {
            let name = format!("{folder}/{file}");
            assert_eq!((place.read(&name), place.mode(&name)), (name.clone().into_bytes(), 0o100_644));
            assert_eq!(place.stat(&name).mtime(), MTIME);
        }
    }
}

/// Two paths of the same directory: what a file system that ignores case does with names.
#[test]
fn the_later_one_of_two_names_of_one_file_wins_as_in_turn() {
    if !is_root() {
        return skip::test("needs root");
    }
    for replace in [Replace::Always, Replace::Never] {
        let place = Place::new();
        fs::create_dir(place.path("one")).unwrap();
        fs::create_dir(place.path("two")).unwrap();
        let bind = nix::mount::MsFlags::MS_BIND;
        nix::mount::mount(Some(&place.path("one")), &place.path("two"), None::<&str>, bind, None::<&str>).unwrap();
        let mut volume = Volume::new();
        for file in 0..300 {
            volume.file(&format!("/one/{file}"), b"first");
        }
        for file in 0..300 {
            volume.file(&format!("/two/{file}"), b"second");
        }
        let mut job = job(&place, 256);
        job.plan.replace = replace;
        let finished = job.run(&volume);
        nix::mount::umount(&place.path("two")).unwrap();
        assert_eq!((finished.files, finished.outcome), (600, Ok(End::EndOfData)));
        let wanted = if replace == Replace::Always { &b"second"[..] } else { b"first" };
        for file in 0..300 {
            assert_eq!(place.read(&format!("one/{file}")), wanted, "{file}");
        }
    }
}

/// Else the owner of its first file could put names there that stay.
#[test]
fn a_directory_stays_private_until_the_turn_of_its_record() {
    if !is_root() {
        return skip::test("needs root");
    }
    for is_canceled in [false, true] {
        let place = Place::new();
        let mut first = Saved::new("/d/run", FileType::Regular, 0o100_755);
        first.stat.uid = 12345;
        let mut volume = Volume::new();
        volume.put(&first).directory("/d/").file("/e/g", b"g").file("/e/h", b"h");
        volume.frames.push(Frame::Owned(place.path("d"), (0, 0o1700)));
        volume.file("/e/i", b"i");
        if is_canceled {
            volume.frames.push(Frame::Cancel);
        }
        let finished = job(&place, 16).run(&volume);
        assert_eq!(finished.told(), []);
        let found = place.stat("d");
        assert_eq!((found.uid(), found.mode() & 0o7777), (0, if is_canceled { 0o1700 } else { 0o750 }));
    }
}

/// All files of a `FileSet` with `Sparse = yes` have addresses.
#[test]
fn files_with_addresses_belong_to_a_run_unless_they_have_holes() {
    let at = |address: u64, data: &[u8]| [&address.to_be_bytes()[..], data].concat();
    for has_hole in [false, true] {
        let place = Place::new();
        let mut volume = Volume::new();
        for name in ["/0", "/1", "/2", "/3"] {
            let second = if has_hole { 5 } else { 4 };
            let mut saved = Saved::file(name);
            (saved.data_stream, saved.stat.size) = (Stream::SPARSE_DATA, second + 4);
            volume.put(&saved).record(Stream::SPARSE_DATA, &at(0, b"data"));
            volume.record(Stream::SPARSE_DATA, &at(second.unsigned_abs(), b"more"));
        }
        // In a run no file is made before all are known. Nothing has that owner.
        volume.frames.push(if has_hole {
            Frame::Rename(place.path("0"), place.path("made"))
        } else {
            Frame::Owned(place.path("0"), (u32::MAX, 0))
        });
        volume.file("/last", b"x");
        job(&place, 16).run(&volume).assert_quiet();
        for name in [if has_hole { "made" } else { "0" }, "1", "2", "3"] {
            assert_eq!(place.read(name), if has_hole { &b"data\0more"[..] } else { b"datamore" });
        }
    }
}

#[test]
fn a_full_disk_during_a_run_is_reported_for_each_file_that_is_not_whole() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    let target = place.path("small");
    fs::create_dir(&target).unwrap();
    nix::mount::mount(Some("tmpfs"), &target, Some("tmpfs"), nix::mount::MsFlags::empty(), Some("size=65536")).unwrap();
    let mut volume = Volume::new();
    for file in 0..60 {
        volume.file(&format!("/small/{file}"), &[7; 3000]);
    }
    let finished = job(&place, 64).run(&volume);
    let whole = fs::read_dir(&target).unwrap().filter(|file| file.as_ref().unwrap().metadata().unwrap().len() == 3000);
    let whole = whole.count();
    nix::mount::umount(&target).unwrap();
    assert_eq!(finished.outcome, Ok(End::EndOfData));
    assert!((1..20).contains(&whole), "{whole}");
    assert_eq!(finished.told().len(), 60 - whole, "{:?}", finished.told());
    assert!(finished.told().iter().all(|(kind, text)| *kind == MessageType::Error && text.contains("No space left")));
}

#[test]
fn a_canceled_run_counts_what_is_whole() {
    for seen in [0, 30, 300] {
        let place = Place::new();
        let mut volume = many(40, 50);
        volume.frames.push(Frame::Cancel);
        let cancel = fd_messages::CancelToken::new();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let finished = std::thread::scope(|scope| {
            let canceler = scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) && tree(place.root()).len() < seen {
                    std::thread::yield_now();
                }
                cancel.cancel();
            });
            let finished = job(&place, 16).run_with(&cancel, &volume);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            canceler.join().unwrap();
            finished
        });
        let found = tree(place.root());
        let files = found.iter().filter(|(_, mode, ..)| mode & 0o170_000 == 0o100_000);
        let mut whole = 0;
        for (name, mode, links, time, content) in files {
            assert_eq!((*mode, *links, *time), (0o100_644, 1, Some(MTIME)), "{name}");
            assert_eq!(content, name.as_bytes());
            whole += 1;
        }
        assert!(finished.files >= whole && finished.files <= whole + 40, "{} {whole}", finished.files);
        assert_eq!(finished.told(), []);
    }
}

/// A job without digests soon prepares for none, and its first one may come in the middle of a run.
#[test]
fn the_first_digest_of_a_job_is_compared_in_a_run_too() {
    for depth in [1, 16] {
        let place = Place::new();
        let mut volume = Volume::new();
        for number in 0..40 {
            volume.file(&format!("/{number}"), b"data");
        }
        let digest = |data: &[u8]| {
            let mut digester = fd_crypto::Digester::new(fd_records::DigestKind::Sha1).unwrap();
            digester.update(data);
            digester.finish().unwrap()
        };
        volume.file("/good", b"data").record(Stream::SHA1, digest(b"data").as_bytes());
        volume.file("/bad", b"data").record(Stream::SHA1, digest(b"other").as_bytes());
        let mut job = place.job();
        job.plan.writing_depth = NonZeroU16::new(depth);
        let finished = job.run(&volume);
        let (kind, text) = finished.only();
        assert_eq!(kind, MessageType::Error, "{text}");
        assert!(text.contains("/bad") && text.contains("digest"), "{text}");
    }
}
