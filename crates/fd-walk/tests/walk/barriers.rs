//! Directories that the walk does not enter (reference 03 §4.3, §5.7 to §5.10).

use std::fs;
use std::os::unix::fs::symlink;

use fd_walk::{Candidate, Comparison, DirectoryLimits, Flow, WalkEvent, WalkHost, WalkSettings, walk};
use rustix::fs::IFlags;

use crate::tree::{Host, Tree};

#[test]
fn a_marker_file_leaves_its_directory_out() {
    let tree = Tree::new(&["a/f", "a/.nobackup", "b/f"]);
    let found = tree.sorted(&["I", "Z .nobackup", "F /t"]);
    assert_eq!(
        found,
        [
            "/t/",
            "/t/b/",
            "/t/b/f",
            "[Skipped Skipping ignored directory /t/a (found file with ExcludeDirContaining pattern)]"
        ]
    );
}

#[test]
fn without_recursion_directories_are_saved_but_not_entered() {
    let tree = Tree::new(&["d/f"]);
    assert_eq!(
        tree.full(&["I", "O h", "N", "F /t"]),
        ["[Info      Recursion turned off. Will not descend from /t into /t/d]", "/t/d/", "/t/"]
    );
}

/// The settings of a job whose Director may read these directories, or may not.
fn limited(tree: &Tree, allowed: &[&str], excluded: &[&str]) -> WalkSettings {
    let list = |list: &[&str]| list.iter().map(|path| tree.with_root(path).into_bytes()).collect::<Vec<_>>();
    WalkSettings { limits: DirectoryLimits::new(&list(allowed), &list(excluded)), ..WalkSettings::default() }
}

#[test]
fn limits_of_the_director() {
    let tree = Tree::new(&["a/f", "a/in/g", "ab/h", "o/p/i", "rootf"]);
    let limits = |allowed: &[&str], excluded: &[&str]| limited(&tree, allowed, excluded);
    let walked = |settings: &WalkSettings, lines: &[&str]| {
        let (mut found, summary) = tree.walk(lines, settings, &Host::default());
        found.sort();
        (found.join(" "), summary.skipped_directories)
    };
    assert_eq!(
        walked(&limits(&["/t/a"], &[]), &["I", "F /t"]),
        (
            "/t/ /t/a/ /t/a/f /t/a/in/ /t/a/in/g [Skipped Skipping directory /t/ab, it's out of allowed ones] \
             [Skipped Skipping directory /t/o, it's out of allowed ones]"
                .to_owned(),
            2
        )
    );
    assert_eq!(walked(&limits(&[], &["/t/a"]), &["I", "F /t"]).0, "/t/ /t/o/ /t/o/p/ /t/o/p/i /t/rootf");
    assert_eq!(walked(&limits(&[], &["/t/a"]), &["I", "F /t/a", "F /t/ab/h"]).0, "");
    // Neither dots nor links on the way to a name circumvent the limits.
    std::os::unix::fs::symlink("../o", tree.with_root("/t/a/link")).unwrap();
    let allowed = limits(&["/t/a"], &[]);
    let around = ["I", "F /t/a/../rootf", "F /t/a/link/p/i", "F /t/a/link/", "F /t/a/../../etc/passwd"];
    let skipped = "[Skipped Skipping directory /t/a/link/, it's out of allowed ones]";
    assert_eq!(walked(&allowed, &around), (skipped.to_owned(), 1));
    assert_eq!(walked(&allowed, &["I", "F /t/a/link", "F /t/o/../a/f"]).0, "/t/a/link->../o /t/o/../a/f");
}

#[test]
fn with_limits_no_fileset_tells_whether_a_file_outside_is_there() {
    let tree = Tree::new(&["data/d/f", "data/d/sub/.no", "secret/d/f"]);
    symlink("../../secret/key", tree.path("data/d/probe")).expect("a link");
    let key = tree.path("secret/key");
    let questions: &[&[&str]] = &[
        &["I", "Z key", "F /t/secret"],
        &["I", "Z secret/key", "F /t"],
        &["I", "Z ../../secret/key", "F /t/data/d"],
        &["I", "Z ../secret/key/../../data/d/f", "F /t/data"],
        &["I", "Z probe", "F /t/data/d"],
        &["I", "O f", "X nosuchfs", "N", "F /t/secret/key"],
        &["I", "O f", "XD fixed", "N", "F /t/secret/key"],
        &["I", "F /t/secret/key"],
        &["I", "F /t/secret/key/f"],
        &["I", "F /t/secret/key/../../data/gone"],
        &["I", "F /t/data/d/probe/"],
        &["I", "F /t/data/d/probe/f"],
    ];
    for settings in [limited(&tree, &["/t/data"], &[]), limited(&tree, &[], &["/t/secret"])] {
        let tells = |lines: &&&[&str]| {
            let walked = || tree.walk(lines, &settings, &Host::default()).0;
            let without = walked();
            fs::write(&key, "").expect("a file");
            let with = walked();
            fs::remove_file(&key).expect("it is there");
            with != without
        };
        assert_eq!(questions.iter().filter(tells).collect::<Vec<_>>(), Vec::<&&[&str]>::new());
        // In what it may read, a marker is one.
        for marker in ["f", "sub/.no"] {
            let (found, _) = tree.walk(&["I", &format!("Z {marker}"), "F /t/data/d"], &settings, &Host::default());
            assert!(found.len() == 1 && found[0].contains("Skipping ignored directory /t/data/d "), "{found:?}");
        }
    }
}

#[test]
fn a_file_system_type_that_is_not_listed() {
    let tree = Tree::new(&["f"]);
    let found = tree.full(&["I", "O ", "X nosuchfs", "N", "F /t"]);
    assert!(found[0].starts_with("[Info Top level directory \"/t\" has unlisted fstype \""), "{found:?}");
    assert_eq!(found.len(), 1);
    let found = tree.full(&["I", "O ", "XD fixed", "N", "F /t"]);
    assert_eq!(found, ["[Info Top level directory \"/t\" has an unlisted drive type \"unknown\"]"]);
}

#[test]
fn a_marker_may_be_a_link_or_a_deeper_path_but_must_exist() {
    let tree = Tree::new(&["link/f", "dangling/f", "deep/sub/.no", "top/.no", "other"]);
    symlink("../other", tree.path("link/.no")).expect("a symlink");
    symlink("nowhere", tree.path("dangling/.no")).expect("a symlink");
    let skipped =
        |path| format!("[Skipped Skipping ignored directory {path} (found file with ExcludeDirContaining pattern)]");
    assert_eq!(tree.full(&["I", "Z .no", "F /t/link"]), [skipped("/t/link")]);
    assert_eq!(tree.sorted(&["I", "Z .no", "F /t/dangling"]).len(), 3);
    assert_eq!(tree.full(&["I", "Z sub/.no", "F /t/deep/"]), [skipped("/t/deep/")]);
    // Each Include has its own.
    assert_eq!(
        tree.full(&["I", "Z .no", "F /t/top", "N", "I", "F /t/top"]),
        [&skipped("/t/top"), "/t/top/.no", "/t/top/"]
    );
}

#[test]
fn a_marker_is_reported_even_in_an_excluded_directory() {
    let tree = Tree::new(&["d/.no"]);
    assert_eq!(
        tree.full(&["I", "Z .no", "O e", "WD */d", "N", "F /t"]),
        ["[Skipped Skipping ignored directory /t/d (found file with ExcludeDirContaining pattern)]", "/t/"]
    );
}

fn set_no_dump(tree: &Tree, name: &str) {
    let file = fs::File::open(tree.path(name)).expect("open");
    let flags = rustix::fs::ioctl_getflags(&file).expect("a file system that has inode flags");
    rustix::fs::ioctl_setflags(&file, flags | IFlags::NODUMP).expect("a file system that knows the flag");
}

#[test]
fn an_entry_with_the_no_dump_flag_is_left_out_silently() {
    let tree = Tree::new(&["d/f", "nd/f", "nd/.no", "file", "ndfile"]);
    set_no_dump(&tree, "nd");
    set_no_dump(&tree, "ndfile");
    let lines = ["I", "Z .no", "O N", "N", "F /t", "F /t/nd", "F /t/ndfile"];
    assert_eq!(tree.sorted(&lines), ["/t/", "/t/d/", "/t/d/f", "/t/file"]);
    let outside = DirectoryLimits::new(&[b"/nowhere".to_vec()], &[]);
    let settings = WalkSettings { limits: outside, ..WalkSettings::default() };
    let (found, summary) = tree.walk(&["I", "O N", "N", "F /t/nd"], &settings, &Host::default());
    assert_eq!((found, summary.skipped_directories), (vec![], 0), "the flag comes first");
    assert_eq!(tree.full(&["I", "F /t/ndfile"]), ["/t/ndfile"], "without the option");
}

/// `/dev/shm` is a file system of its own wherever these tests run. Nothing in it is changed, and
/// nothing else of `/dev` is walked.
fn dev(more: &[&str]) -> Vec<String> {
    let options = ["I", "O f", "WD /dev/shm", "N", "O e", "N", "F /dev"];
    mount_points(&options, more)
}

fn mount_points(lines: &[&str], more: &[&str]) -> Vec<String> {
    let device = |path| rustix::fs::stat(path).map(|found| found.st_dev).expect("it is there");
    assert_ne!(device("/dev"), device("/dev/shm"), "these tests need a mount point");
    Tree::new(&[]).full(&[lines, more].concat())
}

#[test]
fn a_mount_point_is_saved_but_not_entered() {
    let lines = ["I", "O ", "WD /dev/shm", "N", "O e", "N", "F /dev"];
    let told = "[Info      /dev/shm is a different filesystem. Will not descend from /dev into it.]";
    assert_eq!(mount_points(&lines, &[]), [told, "/dev/shm/", "/dev/"]);
    // No message if the FileSet names it anywhere.
    let listed = mount_points(&lines, &["N", "N", "E", "F /dev/shm"]);
    assert_eq!(listed, ["/dev/shm/", "/dev/"]);
    assert_eq!(mount_points(&lines, &["F /dev/shm"])[..2], ["/dev/shm/", "/dev/"]);
}

#[test]
fn a_mount_point_is_entered_when_file_systems_may_be_crossed() {
    assert_eq!(dev(&[]), ["/dev/shm/", "/dev/"]);
}

#[test]
fn a_mount_point_of_a_type_that_is_not_listed_is_not_entered() {
    let lines = ["I", "O f", "WD /dev/shm", "X ext2", "N", "O e", "N", "F /dev"];
    let told = "[Info      Disallowed filesystem. Will not descend from /dev into /dev/shm]";
    assert_eq!(mount_points(&lines, &[]), [told, "/dev/shm/", "/dev/"]);
    let lines = ["I", "O f", "WD /dev/shm", "X ext2", "X tmpfs", "N", "O e", "N", "F /dev"];
    assert_eq!(mount_points(&lines, &[]), ["/dev/shm/", "/dev/"]);
}

/// Replaces the directory `d` by a link after the walk has examined it.
struct Swap<'t>(&'t Tree);

impl WalkHost for Swap<'_> {
    fn is_canceled(&self) -> bool {
        false
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        if candidate.path.ends_with(b"/d") && !self.0.path("aside").exists() {
            fs::rename(self.0.path("d"), self.0.path("aside")).expect("rename");
            symlink("elsewhere", self.0.path("d")).expect("a symlink");
        }
        Comparison::ByTime
    }
}

#[test]
fn a_link_that_replaces_a_directory_is_not_followed() {
    let tree = Tree::new(&["d/f", "elsewhere/secret"]);
    let mut found = Vec::new();
    walk(&tree.fileset(&["I", "F /t/d"]), &WalkSettings::default(), &Swap(&tree), &mut |event| {
        match event {
            WalkEvent::Message(message) => found.push(tree.short(message.text)),
            WalkEvent::Entry(entry) => found.push(format!("{} {:?}", tree.short(&entry.path), entry.file_type)),
            WalkEvent::Plugin(plugin) => found.push(format!("{plugin:?}")),
        }
        Flow::Continue
    });
    assert_eq!(found, ["/t/d Symlink"]);
}
