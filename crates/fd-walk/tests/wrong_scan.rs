//! A scan that does not tell what lookups find is thrown away, and nothing is lost by it. A program
//! of its own: the file system is not scanned again in its process.

#![expect(clippy::expect_used, reason = "a test that can't go on fails")]
#![expect(dead_code, reason = "not all that helps the other program is needed here")]

#[path = "scan/disk.rs"]
mod disk;
#[path = "scan/volume.rs"]
mod volume;
#[path = "scan/walks.rs"]
mod walks;

use std::fs::{self, File};
use std::io::Write as _;

use fd_walk::InodeScan;

use disk::make_look_old;
use volume::{KINDS, Volume};
use walks::{Host, events, fileset, next_second, settings};

#[test]
fn a_wrong_scan_is_thrown_away_and_what_it_has_left_out_is_saved() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    let [old, new] = ["old", "new"].map(|name| volume.top().join(name));
    for (directory, files) in [(&old, 99), (&new, 400)] {
        fs::create_dir(directory).expect("a directory");
        (0..files).for_each(|number| fs::write(directory.join(number.to_string()), "x").expect("a file"));
    }
    // A name of a file that has one more behind it.
    fs::hard_link(new.join("300"), old.join("link")).expect("a hard link");
    // A file's time is that of the last tick, so just before the second that has begun.
    let (since, _later) = (next_second(), next_second());
    // While they are open, the kernel has their inodes in memory.
    let _open: Vec<File> = (0..400)
        .map(|number| {
            let mut file = File::options().append(true).open(new.join(number.to_string())).expect("a file");
            file.write_all(b"more").expect("a file");
            file
        })
        .collect();
    rustix::fs::syncfs(File::open(volume.top()).expect("a directory")).expect("syncfs");
    // What has changed within a second before a scan is not said to be wrong.
    let _later = (next_second(), next_second());
    let changed: Vec<_> = fs::read_dir(&new).expect("a directory").flatten().map(|entry| entry.path()).collect();
    let is_done = make_look_old(&volume.device(), &changed);
    if !is_done {
        return skip::test("the kernel guards disks that are mounted");
    }
    let fileset = fileset(&["I"], &[&old, &new]);
    // What is left out is said to be unchanged before the scan is found to be wrong.
    let walked = |scan, depth| {
        let host = Host::default();
        let (mut events, summary) = events(&fileset, &settings(since, scan, depth), &host);
        events.retain(|event| !event.starts_with("Skipped "));
        events.sort();
        (events, summary.not_looked_up, host.scans.into_inner().len())
    };
    let without = walked(InodeScan::Off, 1).0;
    assert_eq!(without.len(), 401, "{without:#?}");
    // The first look at what would be left out finds nothing wrong, and the one after 256 entries
    // does. The next walk has no scan.
    for (depth, left_out, scans) in [(8, 255, 1), (8, 0, 0)] {
        let mut with = walked(InodeScan::Always, depth);
        let warnings = with.0.extract_if(.., |event| event.starts_with("Warning ")).count();
        assert_eq!(with, (without.clone(), left_out, scans));
        assert_eq!(warnings, scans);
    }
}
