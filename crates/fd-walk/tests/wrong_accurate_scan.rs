//! A scan that does not tell what lookups find is thrown away in accurate jobs, too. A program of
//! its own: the file system is not scanned again in its process.

#![expect(clippy::expect_used, reason = "a test that can't go on fails")]
#![expect(dead_code, reason = "not all that helps the other programs is needed here")]

#[path = "scan/disk.rs"]
mod disk;
#[path = "scan/lists.rs"]
mod lists;
#[path = "scan/volume.rs"]
mod volume;
#[path = "scan/walks.rs"]
mod walks;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;

use fd_walk::InodeScan;

use disk::make_look_old;
use lists::{Accurate, LETTERS, full};
use volume::{KINDS, Volume};
use walks::{events, fileset, next_second, settings};

/// 2020.
const OLD: i64 = 1_577_836_800;

/// The disk has what the list has, and lookups find something else that is old as well.
#[test]
fn a_scan_that_is_wrong_about_what_a_list_compares_is_thrown_away() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    let top = volume.top().join("top");
    fs::create_dir(&top).expect("a directory");
    let files: Vec<_> = (0..400).map(|number| top.join(number.to_string())).collect();
    for file in &files {
        fs::write(file, "x").expect("a file");
    }
    // While they are open, the kernel has their inodes in memory.
    let _open: Vec<File> = files.iter().map(|file| File::open(file).expect("a file")).collect();
    rustix::fs::syncfs(File::open(&top).expect("a directory")).expect("syncfs");
    // What has changed within a second before a scan is not said to be wrong.
    let (since, _later) = (next_second(), next_second());
    let _later = next_second();
    let mut list = full(&top);
    // All but the first, which is looked up, and is right.
    let names = fs::read_dir(&top).expect("a directory").flatten();
    let wrong: Vec<_> = names.skip(1).map(|entry| entry.path()).collect();
    for file in &wrong {
        let stat = list.get_mut(file.as_os_str().as_encoded_bytes()).expect("a name");
        (stat.mtime, stat.ctime) = (OLD, OLD);
        assert!(fs::metadata(file).expect("a file").ctime() < since);
    }
    if !make_look_old(&volume.device(), &wrong) {
        return skip::test("the kernel guards disks that are mounted");
    }
    let fileset = fileset(&["I"], &[&top]);
    let walked = |scan, depth| {
        let host = Accurate::new(&list, LETTERS[0]);
        let (mut events, summary) = events(&fileset, &settings(since, scan, depth), &host);
        // What is left out is said to be unchanged before the scan is found to be wrong.
        events.retain(|event| !event.starts_with("Skipped "));
        events.sort();
        (events, host.seen.into_inner().len(), summary.not_looked_up, host.scans.get())
    };
    let without = walked(InodeScan::Off, 1);
    assert_eq!((without.0.len(), without.1), (399, 401), "{without:#?}");
    // The next walk has no scan.
    for (depth, left_out, scans) in [(8, 255, 1), (8, 0, 0)] {
        let mut with = walked(InodeScan::Always, depth);
        let warnings = with.0.extract_if(.., |event| event.starts_with("Warning ")).count();
        assert_eq!(with, (without.0.clone(), without.1, left_out, scans));
        assert_eq!(u64::try_from(warnings), Ok(scans));
    }
}
