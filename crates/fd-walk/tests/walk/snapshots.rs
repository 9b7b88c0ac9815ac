//! Walks over names that are read in a snapshot (reference 07 §12.3).

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use fd_records::Stat;
use fd_walk::{DirectoryLimits, Flow, Snapshots, WalkEvent, WalkSettings, path_in_snapshot, walk};

use crate::tree::{Host, Tree};

/// `/t/live` is read at `/t/snap`: so are these names of it.
fn settings(tree: &Tree, names: &[&str]) -> (WalkSettings, Snapshots) {
    let at = |name: &str| tree.path(name).into_os_string().into_encoded_bytes();
    let mut snapshots = Snapshots::default();
    for name in names {
        let name = tree.with_root(name).into_bytes();
        let path = path_in_snapshot(&name, &at("live"), &at("snap")).expect("below it");
        snapshots.read_at(&name, &name, &at("snap"), path);
    }
    (WalkSettings { snapshots: Arc::new(snapshots.clone()), ..WalkSettings::default() }, snapshots)
}

#[test]
fn names_are_those_of_the_file_system_and_everything_else_is_the_snapshots() {
    let tree = Tree::new(&["live/only now", "live/d/f", "snap/d/f", "snap/d/only then", "snap/file"]);
    fs::write(tree.path("snap/d/f"), "a longer content").expect("a file");
    fs::hard_link(tree.path("snap/d/f"), tree.path("snap/d/g")).expect("a link");
    symlink("target", tree.path("snap/link")).expect("a link");
    let (settings, _) = settings(&tree, &["/t/live", "/t/live/file"]);
    let fileset = tree.fileset(&["I", "F /t/live", "F /t/live/file"]);
    let (mut names, mut read) = (Vec::new(), Vec::new());
    walk(&fileset, &settings, &Host::default(), &mut |event| {
        let WalkEvent::Entry(entry) = event else { panic!("{event:?}") };
        names.push(tree.short(&entry.record_names().name));
        read.push(tree.short(&entry.read_path()));
        let handle = entry.handle().expect("it is there");
        assert!(fs::metadata(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle))).is_ok());
        if entry.stat.mode_type() == Stat::MODE_REGULAR {
            let file = entry.open().expect("it opens");
            let found = fs::File::from(file).metadata().expect("stat").len();
            assert_eq!(u64::try_from(entry.stat.size), Ok(found));
            assert_eq!(found, if entry.path.ends_with(b"/f") { 16 } else { found });
        }
        Flow::Continue
    });
    names.sort();
    read.sort();
    let expected = ["/t/live/", "/t/live/d/", "/t/live/d/f", "/t/live/d/g", "/t/live/d/only then"];
    assert_eq!(names, [&expected[..], &["/t/live/file", "/t/live/file", "/t/live/link"]].concat());
    let expected = ["/t/snap/", "/t/snap/d", "/t/snap/d/f", "/t/snap/d/g", "/t/snap/d/only then"];
    assert_eq!(read, [&expected[..], &["/t/snap/file", "/t/snap/file", "/t/snap/link"]].concat());
}

#[test]
fn options_match_the_names_and_a_marker_is_looked_for_in_the_snapshot() {
    let tree = Tree::new(&["live/a.tmp", "live/.nobackup", "snap/a.tmp", "snap/b", "snap/d/.nobackup", "snap/d/f"]);
    let (settings, _) = settings(&tree, &["/t/live"]);
    let lines = ["I", "Z .nobackup", "O e", "WF /t/live/*.tmp", "N", "F /t/live"];
    let (mut found, _) = tree.walk(&lines, &settings, &Host::default());
    found.sort();
    let marker = "[Skipped Skipping ignored directory /t/live/d (found file with ExcludeDirContaining pattern)]";
    assert_eq!(found, ["/t/live/", "/t/live/b", marker]);
}

#[test]
fn the_directory_of_snapshots_stays_out_and_file_systems_below_are_walked_after_their_name() {
    let tree = Tree::new(&["live/x", "snap/.snapshots/s/f", "snap/m/", "snap/f", "live/m/g"]);
    let (mut settings, mut snapshots) = settings(&tree, &["/t/live"]);
    snapshots.hide(tree.with_root("/t/live/.snapshots/").as_bytes());
    snapshots.add_sub_mount(0, tree.with_root("/t/live").as_bytes(), tree.with_root("/t/live/m").as_bytes());
    settings.snapshots = Arc::new(snapshots);
    // A pattern that accepts it doesn't bring it back.
    let lines = ["I", "O M", "WD */.snapshots", "N", "F /t/live", "F /t/live/x"];
    let (found, summary) = tree.walk(&lines, &settings, &Host::default());
    let mut inside = found[..2].to_vec();
    inside.sort();
    assert_eq!(inside, ["/t/live/f", "/t/live/m/"]);
    assert_eq!(found[2..], ["/t/live/", "/t/live/m/g", "/t/live/m/", "/t/live/x"]);
    assert_eq!(summary.entries, 6);
}

#[test]
fn a_file_system_below_a_name_is_walked_in_the_include_that_adds_it() {
    let tree = Tree::new(&["live/m/g", "snap/f"]);
    let (mut settings, mut snapshots) = settings(&tree, &["/t/live"]);
    snapshots.add_sub_mount(1, tree.with_root("/t/live").as_bytes(), tree.with_root("/t/live/m").as_bytes());
    settings.snapshots = Arc::new(snapshots);
    let (found, _) = tree.walk(&["I", "F /t/live", "I", "F /t/live"], &settings, &Host::default());
    let own = ["/t/live/f", "/t/live/"];
    assert_eq!(found, [&own[..], &own[..], &["/t/live/m/g", "/t/live/m/"]].concat());
}

/// The Options that decide about it have another list of `FsType`, which was asked before.
#[test]
fn a_file_system_below_a_name_is_walked_whatever_the_last_options_block_says() {
    let tree = Tree::new(&[]);
    let mut snapshots = Snapshots::default();
    snapshots.add_sub_mount(0, b"/dev/shm", b"/proc/sys/kernel/random");
    let settings = WalkSettings { snapshots: Arc::new(snapshots), ..WalkSettings::default() };
    let (found, _) = tree.walk(&["I", "O f", "X tmpfs", "N", "F /dev/shm"], &settings, &Host::default());
    assert!(found.contains(&"/proc/sys/kernel/random/uuid".to_owned()), "{found:?}");
}

/// A restore of the same Director may put a link there before the snapshot is made, and take it
/// away before the limits are checked.
#[test]
fn a_link_in_a_snapshot_does_not_lead_out_of_the_limits() {
    let tree = Tree::new(&["live/ok/a/f", "live/ok/d/f", "secret/f", "snap/ok/d/f", "snap/secret"]);
    symlink(tree.path("secret"), tree.path("snap/ok/a")).expect("a link");
    symlink(tree.path("snap"), tree.path("mounted")).expect("a link");
    let (mut settings, mut snapshots) = settings(&tree, &["/t/live/ok/a/f", "/t/live/ok/d/f", "/t/live/ok/d"]);
    settings.limits = DirectoryLimits::new(&[tree.with_root("/t/live/ok").into_bytes()], &[]);
    let names = ["I", "F /t/live/ok/a/f", "F /t/live/ok/d/f", "F /t/live/ok/d"];
    let (found, _) = tree.walk(&names, &settings, &Host::default());
    let refused = "[!NotSaved      Could not stat \"/t/live/ok/a/f\": ERR=Too many levels of symbolic links]";
    let own = ["/t/live/ok/d/f", "/t/live/ok/d/f", "/t/live/ok/d/"];
    assert_eq!(found, [&[refused], &own[..]].concat());
    // Links on the way to the snapshot are the helper's.
    let name = tree.with_root("/t/live/ok/d/f");
    let at = tree.with_root("/t/mounted");
    snapshots.read_at(name.as_bytes(), name.as_bytes(), at.as_bytes(), format!("{at}/ok/d/f").into_bytes());
    settings.snapshots = Arc::new(snapshots);
    let (found, _) = tree.walk(&["I", "F /t/live/ok/d/f"], &settings, &Host::default());
    assert_eq!(found, ["/t/live/ok/d/f"]);
    // What the limits are for is the path that the name had when its place was chosen.
    let mut snapshots = Snapshots::default();
    let path = tree.with_root("/t/snap/ok/d/f").into_bytes();
    snapshots.read_at(
        name.as_bytes(),
        tree.with_root("/t/secret/f").as_bytes(),
        tree.with_root("/t/snap").as_bytes(),
        path,
    );
    settings.snapshots = Arc::new(snapshots);
    let (found, _) = tree.walk(&["I", "F /t/live/ok/d/f"], &settings, &Host::default());
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_deep_tree_in_a_snapshot_is_complete() {
    let tree = Tree::new(&["live/"]);
    for number in 0..2000 {
        fs::create_dir_all(tree.path("snap")).expect("a directory");
        fs::write(tree.path(&format!("snap/{number} {}", "long".repeat(30))), "").expect("a file");
    }
    fs::create_dir_all((0..200).fold(tree.path("snap/deep"), |path, _| path.join("d"))).expect("a deep tree");
    let (settings, _) = settings(&tree, &["/t/live"]);
    let (found, _) = tree.walk(&["I", "F /t/live"], &settings, &Host::default());
    assert_eq!(found.len(), 2000 + 201 + 1);
}
