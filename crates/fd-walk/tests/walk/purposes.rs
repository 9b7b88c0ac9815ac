//! Backups, estimates and Verify jobs over the same tree (reference 03 §8, §9).

use std::os::unix::net::UnixListener;

use fd_records::FileType;
use fd_walk::{Purpose, WalkSettings};
use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

use crate::tree::{Host, Tree};

fn settings(purpose: Purpose) -> WalkSettings {
    WalkSettings { purpose, ..WalkSettings::default() }
}

#[test]
fn sockets_are_skipped_in_backups_and_counted_in_estimates() {
    let tree = Tree::new(&[]);
    let _listener = UnixListener::bind(tree.path("sk")).expect("a socket");
    assert_eq!(tree.full(&["I", "F /t"]), ["[Skipped      Socket file skipped: /t/sk]", "/t/"]);
    let estimate = WalkSettings { purpose: Purpose::Estimate { limit: 0 }, ..WalkSettings::default() };
    let (found, summary) = tree.walk(&["I", "F /t"], &estimate, &Host::default());
    assert_eq!((found, summary.entries), (vec!["/t/sk".to_owned(), "/t/".to_owned()], 2));
}

#[test]
fn an_estimate_stops_at_its_limit() {
    let tree = Tree::new(&["d/1", "d/2", "d/3"]);
    let counted = |limit| {
        let settings = WalkSettings { purpose: Purpose::Estimate { limit }, ..WalkSettings::default() };
        tree.walk(&["I", "F /t"], &settings, &Host::default()).1.entries
    };
    assert_eq!(counted(0), 5);
    assert_eq!(counted(1), 3, "one file and the two directories that are open");
    assert_eq!(counted(2), 4);
}

#[test]
fn a_verify_job_announces_each_entry() {
    let tree = Tree::new(&["f"]);
    let settings = WalkSettings { purpose: Purpose::Verify, ..WalkSettings::default() };
    let (found, _) = tree.walk(&["I", "F /t"], &settings, &Host::default());
    assert_eq!(
        found,
        ["[Verified Veryfying: /t]", "[Verified Veryfying: /t/f]", "/t/f", "[Verified Veryfying: /t]", "/t/"]
    );
}

/// Counts of the stock daemon's estimates of such a tree. Directories are always counted, even
/// beyond the limit; only a name of the FileSet that is no directory ends the walk.
#[test]
fn the_limit_of_an_estimate_with_several_names() {
    let tree = Tree::new(&["x/1", "x/2", "x/3", "top", "y/1", "y/2", "y/3", "z", "last"]);
    let lines = ["I", "F /t/x", "F /t/top", "F /t/y", "F /t/z", "F /t/last"];
    let counted = |limit| tree.walk(&lines, &settings(Purpose::Estimate { limit }), &Host::default()).1.entries;
    assert_eq!([1, 2, 3, 4, 5, 6].map(counted), [3, 4, 5, 5, 7, 8].map(|stock: u64| stock));
    assert_eq!(counted(0), 11);
}

#[test]
fn an_estimate_counts_bytes_once_and_reports_no_entries() {
    let tree = Tree::new(&["12345", "d/"]);
    std::fs::hard_link(tree.path("12345"), tree.path("link")).expect("a hard link");
    let lines = ["I", "O h", "N", "F /t", "F /t/no"];
    let (found, summary) = tree.walk(&lines, &settings(Purpose::Estimate { limit: 0 }), &Host::default());
    assert_eq!((summary.entries, summary.bytes), (4, 5));
    assert!(found.iter().all(|word| !word.starts_with('[')), "{found:?}");
    let unchanged = WalkSettings { incremental: true, since: i64::MAX, ..settings(Purpose::Estimate { limit: 0 }) };
    assert_eq!(tree.walk(&["I", "F /t"], &unchanged, &Host::default()), (vec![], fd_walk::WalkSummary::default()));
}

#[test]
fn an_estimate_reports_what_the_walk_leaves_out() {
    let tree = Tree::new(&["d/.no"]);
    let (found, _) = tree.walk(&["I", "Z .no", "F /t/d"], &settings(Purpose::Estimate { limit: 0 }), &Host::default());
    assert_eq!(found, ["[Skipped Skipping ignored directory /t/d (found file with ExcludeDirContaining pattern)]"]);
}

/// Reference 03 §8.3: names without quotes, each examined entry announced.
#[test]
fn a_verify_job_has_its_own_messages() {
    let tree = Tree::new(&["d/f"]);
    let _listener = UnixListener::bind(tree.path("sk")).expect("a socket");
    let verify = |lines: &[&str]| tree.walk(lines, &settings(Purpose::Verify), &Host::default()).0;
    assert_eq!(verify(&["I", "F /t/sk"]), ["[Verified Veryfying: /t/sk]", "/t/sk"]);
    assert_eq!(
        verify(&["I", "F /t/no"]),
        ["[Verified Veryfying: /t/no]", "[!NotSaved      Could not stat /t/no: ERR=No such file or directory]"]
    );
    assert_eq!(
        verify(&["I", "O h", "WD *", "N", "O e", "N", "F /t"]),
        [
            "[Verified Veryfying: /t]",
            "[Verified Veryfying: /t/d]",
            "[Verified Veryfying: /t/d]",
            "[Skipped      Recursion turned off. Directory skipped: /t/d]",
            "/t/d/",
            "[Verified Veryfying: /t]",
            "/t/"
        ]
    );
    assert_eq!(
        verify(&["I", "O ", "WD /dev/shm", "N", "O e", "N", "F /dev"]),
        [
            "[Verified Veryfying: /dev]",
            "[Verified Veryfying: /dev/shm]",
            "[Verified Veryfying: /dev/shm]",
            "[Skipped      File system change prohibited. Directory skipped: /dev/shm]",
            "[Verified Veryfying: /dev]",
            "/dev/"
        ]
    );
    let unlisted = verify(&["I", "O f", "WD /dev/shm", "X ext2", "N", "O e", "N", "F /dev"]);
    assert_eq!(unlisted[3], "[!NotSaved      Unknown file type 19: /dev/shm]");
}

#[test]
fn fifos_and_devices_have_data_only_as_names_of_the_fileset() {
    let tree = Tree::new(&["d/"]);
    mknodat(CWD, tree.path("d/ff"), Kind::Fifo, Mode::RUSR, 0).expect("a fifo");
    let kind = |lines: &[&str]| tree.types(lines)[0].1;
    assert_eq!(kind(&["I", "O r", "N", "F /t/d/ff"]), FileType::Fifo);
    assert_eq!(kind(&["I", "F /t/d/ff"]), FileType::Special);
    assert_eq!(kind(&["I", "O r", "N", "F /t/d"]), FileType::Special);
    assert_eq!(kind(&["I", "O r", "N", "F /dev/null"]), FileType::Special);
}
