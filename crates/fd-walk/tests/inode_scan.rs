//! Walks with an inode scan find what they find without one, whatever has changed.
//!
//! `SCAN_ROUNDS=500` does so many rounds of changes on each kind of file system.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that can't go on fails, like one that finds something wrong"
)]

#[path = "scan/mutation.rs"]
mod mutation;
#[path = "scan/volume.rs"]
mod volume;
#[path = "scan/walks.rs"]
mod walks;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fd_walk::{InodeScan, WalkEnd};

use mutation::{ALL, Mapper, Mutator, PLAIN, Random, populate};
use volume::{BTRFS, KINDS, Kind, Volume, run};
use walks::{Host, events, events_seen_by, fileset, next_second, now, seconds, settings};

/// The `FileSet`s that are walked.
const OPTIONS: [&[&str]; 5] =
    [&["I"], &["I", "O h"], &["I", "O m", "N"], &["I", "O e", "W *5", "N", "O f", "N"], &["I", "O d", "N"]];

/// So many rounds of changes on one kind of file system, whose files are older than `since`.
fn rounds_on(kind: Kind, volume: &Volume, since: i64, rounds: usize, seed: u64) {
    let top = volume.top();
    let other = volume.beside().join("other");
    fs::write(&other, "on another file system").expect("a file");
    let mut mapper = Mapper::new();
    let mut mutator = Mutator { random: Random(seed), top: &top, other, mapper: &mut mapper, mounts: Vec::new() };
    let mut not_looked_up = 0;
    for round in 0..rounds {
        let what = format!("{}, seed {seed}, round {round}", kind.name);
        let changes: Vec<String> = (0..=mutator.random.below(3)).map(|_| mutator.change(ALL)).collect();
        let lines = OPTIONS[mutator.random.below(OPTIONS.len())];
        let (fileset, has_scan) = (fileset(lines, &[&top]), volume.has_scan() && !lines.contains(&"O m"));
        // How many blocks a file has is settled when it is written out, which a scan has done. So
        // either that is done before, and the walk without a scan is the first one: what it looks
        // up is in memory then, and may be newer there. Or the scan has to do it, and nothing is
        // looked up ahead of it.
        let scan_writes_out = round % 2 == 1 && has_scan;
        let depth = if scan_writes_out { 1 } else { [1, 2, 8][mutator.random.below(3)] };
        let look_at_all = || events(&fileset, &settings(since, InodeScan::Off, depth), &Host::default()).0;
        let before = (!scan_writes_out).then(|| {
            rustix::fs::syncfs(fs::File::open(&top).expect("a directory")).expect("syncfs");
            look_at_all()
        });
        let host = Host::default();
        let with = events(&fileset, &settings(since, InodeScan::Always, depth), &host);
        let without = before.unwrap_or_else(look_at_all);
        let scans = host.scans.into_inner();
        assert_eq!(has_scan, matches!(scans[..], [Ok(1..), ..]), "{what}: {scans:?}");
        if without != with.0 {
            let differ = without.iter().zip(&with.0).find(|(one, other)| one != other);
            panic!("{what}: {differ:#?}, {} and {} events\n{changes:#?}", without.len(), with.0.len());
        }
        not_looked_up += with.1.not_looked_up;
        mutator.unmount();
        if round % 4 == 3 {
            beside_changes(&mut mutator, since, &what);
        }
    }
    // Not all rounds have options with which that can be spared.
    assert!(!volume.has_scan() || not_looked_up > 0 || rounds < 8, "{}: everything was looked up", kind.name);
    mutator.mapper.close();
}

/// A walk beside changes: what it leaves out of them is left for the next job.
fn beside_changes(mutator: &mut Mutator<'_>, since: i64, what: &str) {
    let fileset = fileset(OPTIONS[0], &[mutator.top]);
    // A file's time is that of the last tick.
    let begun = seconds(now().saturating_sub(Duration::from_millis(20)));
    let is_over = AtomicBool::new(false);
    let ready = std::sync::Barrier::new(2);
    let mut walked = Vec::new();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            ready.wait();
            walked = events(&fileset, &settings(since, InodeScan::Always, 2), &Host::default()).0;
            is_over.store(true, Ordering::Relaxed);
        });
        ready.wait();
        while !is_over.load(Ordering::Relaxed) {
            mutator.change(PLAIN);
        }
    });
    let saved: HashSet<&str> =
        walked.iter().filter_map(|event| event.split(' ').next().filter(|word| word.starts_with('/'))).collect();
    for directory in fs::read_dir(mutator.top).expect("a directory").flatten() {
        for entry in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let is_for_next = found.ctime() >= begun;
            let is_old = found.ctime() < since && found.mtime() < since;
            let is_saved = saved.contains(entry.path().to_str().expect("a plain name"));
            let is_socket = std::os::unix::fs::FileTypeExt::is_socket(&found.file_type());
            let is_lost = !found.is_dir() && !is_socket && !is_old && !is_for_next && !is_saved;
            assert!(!is_lost, "{what}: {} {found:?} is lost\n{walked:#?}", entry.path().display());
        }
    }
}

#[test]
fn walks_with_a_scan_find_what_walks_without_one_find() {
    let rounds: usize = std::env::var("SCAN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
    let first = std::env::var("SCAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    if !Mapper::new().works() {
        skip::part("python3 is not installed");
    }
    // Each image has so many rounds: then little is left that has not changed.
    let (parts, rounds) = (rounds.div_ceil(60), rounds.min(60));
    for part in (0..).take(parts) {
        let mut volumes = Vec::new();
        for (kind, seed) in KINDS.into_iter().zip(first..) {
            match Volume::make(kind) {
                Ok(volume) => {
                    populate(&volume.top());
                    volumes.push((kind, volume, seed * 1_000_003 + part * 7919));
                }
                Err("the file system can't be made" | "the file system can't be mounted") => {
                    skip::part(&format!("no {}", kind.name));
                }
                Err(why) => return skip::test(why),
            }
        }
        assert!(!volumes.is_empty(), "no kind of file system could be made");
        let since = next_second();
        for (kind, volume, seed) in volumes {
            rounds_on(kind, &volume, since, rounds, seed);
        }
    }
}

fn subvolume(words: &[&str], paths: &[&Path]) {
    let words = ["btrfs", "subvolume"].iter().chain(words).map(OsStr::new);
    assert!(run(&words.chain(paths.iter().map(|path| path.as_os_str())).collect::<Vec<_>>()), "{paths:?}");
}

/// A snapshot that was walked is deleted, and a newer one of the same subvolume gets its device and
/// has the same inodes.
#[test]
fn a_snapshot_that_gets_the_device_of_a_deleted_one_is_not_taken_for_it() {
    let volume = match Volume::make(BTRFS) {
        Ok(volume) => volume,
        Err("the file system can't be made" | "the file system can't be mounted") => return skip::test("no btrfs"),
        Err(why) => return skip::test(why),
    };
    let [origin, old, new] = ["origin", "old", "new"].map(|name| volume.top().join(name));
    subvolume(&["create"], &[&origin]);
    populate(&origin);
    subvolume(&["snapshot"], &[&origin, &old]);
    // A file's time is that of the last tick, so just before the second that has begun.
    let (since, _later) = (next_second(), next_second());
    fs::write(origin.join("d1/f1"), "changed").expect("a file");
    // What has changed within a second before a scan may have done so after it.
    let _later = (next_second(), next_second());
    let of_old = events(&fileset(OPTIONS[0], &[&old]), &settings(since, InodeScan::Off, 1), &Host::default()).0.len();
    let device = fs::metadata(&old).expect("a directory").dev();
    let mut exchange = |events: &[String]| {
        if events.len() == of_old {
            subvolume(&["delete"], &[&old]);
            // The least number that is free is given; somebody else may have got the one of the
            // deleted one. Then this shows less.
            let mut snapshots = (0..64).map(|number| volume.top().join(format!("new{number}")));
            let snapshot = snapshots.find(|snapshot| {
                subvolume(&["snapshot"], &[&origin, snapshot]);
                fs::metadata(snapshot).expect("a directory").dev() == device
            });
            let snapshot = snapshot.unwrap_or_else(|| volume.top().join("new0"));
            fs::rename(snapshot, &new).expect("another name");
        }
    };
    let (fileset, settings) = (fileset(OPTIONS[0], &[&old, &new]), settings(since, InodeScan::Always, 1));
    let (events, summary) = events_seen_by(&fileset, &settings, &Host::default(), &mut exchange);
    let changed = new.join("d1/f1").display().to_string();
    assert!(events.iter().any(|event| event.starts_with(&format!("{changed} Regular"))), "{events:#?}");
    assert!(!events.iter().any(|event| event.contains("is not used")), "{events:#?}");
    assert!(summary.not_looked_up > 100, "{summary:?}");
}

/// A snapshot has the inode numbers of its origin, and both are on one file system.
#[test]
fn a_subvolume_and_its_snapshot_are_scanned_each_by_itself() {
    let volume = match Volume::make(BTRFS) {
        Ok(volume) => volume,
        Err("the file system can't be made" | "the file system can't be mounted") => return skip::test("no btrfs"),
        Err(why) => return skip::test(why),
    };
    let [origin, snapshot] = ["origin", "snapshot"].map(|name| volume.top().join(name));
    subvolume(&["create"], &[&origin]);
    populate(&origin);
    let (since, _later) = (next_second(), next_second());
    subvolume(&["snapshot"], &[&origin, &snapshot]);
    fs::write(origin.join("d1/f1"), "changed here").expect("a file");
    fs::write(snapshot.join("d2/f2"), "changed there").expect("a file");
    let fileset = fileset(OPTIONS[0], &[&origin, &snapshot]);
    let host = Host::default();
    let (with, summary) = events(&fileset, &settings(since, InodeScan::Always, 1), &host);
    let (without, _) = events(&fileset, &settings(since, InodeScan::Off, 1), &Host::default());
    assert_eq!(with, without);
    assert!(summary.not_looked_up > 300, "{summary:?}");
    let scans = host.scans.into_inner();
    assert!(matches!(scans[..], [Ok(200..), Ok(200..)]), "{scans:?}");
}

/// No thread of this process scans. One that has just been started is still called as its parent.
fn no_scan_runs() -> bool {
    let own = fs::read_to_string("/proc/thread-self/comm").expect("a name");
    let threads = fs::read_dir("/proc/self/task").expect("the threads").flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    let (own, scans) =
        names.filter(|name| *name == own || name == "inode scan\n").partition::<Vec<_>, _>(|name| *name == own);
    own.len() == 1 && scans.is_empty()
}

#[test]
fn a_scan_begins_by_itself_where_many_files_are_left_and_not_for_a_few_of_them() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    let directories: Vec<PathBuf> = (0..25).map(|number| volume.top().join(number.to_string())).collect();
    for directory in &directories {
        fs::create_dir(directory).expect("a directory");
        (0..120).for_each(|number| fs::write(directory.join(number.to_string()), "old").expect("a file"));
    }
    let (since, _later) = (next_second(), next_second());
    // With a depth of 2, lookups are taken for dear.
    let settings = settings(since, InodeScan::Auto, 2);
    for (top, scans) in [(&volume.top(), 1), (&directories[0], 0)] {
        let host = Host::default();
        let mut wait = |_: &[String]| {
            while !no_scan_runs() {
                std::thread::yield_now();
            }
        };
        let summary = events_seen_by(&fileset(OPTIONS[0], &[top]), &settings, &host, &mut wait).1;
        let found = host.scans.into_inner();
        assert_eq!((found.len(), summary.not_looked_up > 2000), (scans, scans == 1), "{summary:?} {found:?}");
        assert!(found.iter().all(|found| matches!(found, Ok(3000..))), "{found:?}");
    }
}

#[test]
fn options_that_ask_for_less_or_more_than_both_times_have_no_scan() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    populate(&volume.top());
    let since = next_second();
    let all: [(&[&str], usize); 5] = [
        (&["I", "O d", "N"], 1),
        (&["I", "O m", "N"], 0),
        (&["I", "O N", "N"], 0),
        (&["I", "O d", "W *5", "N", "O m", "W *6", "N"], 0),
        (&["I", "O N", "W *5", "N", "O d", "N"], 0),
    ];
    for (lines, scans) in all {
        let host = Host::default();
        let summary = events(&fileset(lines, &[&volume.top()]), &settings(since, InodeScan::Always, 8), &host).1;
        assert_eq!((host.scans.into_inner().len(), summary.not_looked_up > 0), (scans, scans > 0), "{lines:?}");
    }
}

#[test]
fn a_canceled_walk_does_not_wait_for_its_scan() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    populate(&volume.top());
    // Once before each entry that is looked at, the top directory and one in it, and then while the
    // scan is waited for.
    let host = Host { is_canceled_after: Some(2), ..Host::default() };
    let fileset = fileset(OPTIONS[0], &[&volume.top()]);
    let summary = events(&fileset, &settings(seconds(now()), InodeScan::Always, 1), &host).1;
    assert_eq!((summary.end, host.scans.into_inner().len()), (WalkEnd::Canceled, 0));
}
