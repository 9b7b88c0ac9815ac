//! The look-ahead: whatever its depth, the walk's events are the same.

use std::fs;
use std::num::NonZeroU16;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use fd_walk::{Flow, LookupDepth, Purpose, WalkEvent, WalkSettings, walk};

use crate::tree::{Host, Tree};

/// Lookups at a time. With 1, nothing is done ahead.
const DEPTHS: [u16; 4] = [1, 2, 8, 256];

fn fixed(depth: u16) -> LookupDepth {
    LookupDepth::Fixed(NonZeroU16::new(depth).expect("a depth"))
}

/// All that the events say, but the atime, which the walk itself changes.
fn events(tree: &Tree, lines: &[&str], settings: &WalkSettings) -> Vec<String> {
    let mut events = Vec::new();
    let summary = walk(&tree.fileset(lines), settings, &Host::default(), &mut |event| {
        events.push(match event {
            WalkEvent::Entry(mut entry) => {
                entry.stat.atime = 0;
                let name = String::from_utf8_lossy(&entry.path).into_owned();
                format!("{name} {:?} {:?} {:?}", entry.file_type, entry.stat, String::from_utf8_lossy(&entry.link))
            }
            WalkEvent::Message(message) => String::from_utf8_lossy(message.text).into_owned(),
            WalkEvent::Plugin(plugin) => format!("{plugin:?}"),
        });
        Flow::Continue
    });
    events.push(format!("{summary:?}"));
    events
}

#[track_caller]
fn is_the_same_at_all_depths(tree: &Tree, lines: &[&str], settings: &WalkSettings) -> Vec<String> {
    let of = |depth| events(tree, lines, &WalkSettings { lookup_depth: fixed(depth), ..settings.clone() });
    let expected = of(1);
    for depth in DEPTHS {
        assert_eq!(of(depth), expected, "depth {depth}");
    }
    expected
}

/// Directories of all widths with all kinds of entries.
fn odd_tree() -> Tree {
    let tree = Tree::new(&["empty/", "a/b/c/d/e", "hidden/x.o", "hidden/deep/x.o", "nodump/f"]);
    for width in [1, 3, 40, 700] {
        for number in 0..width {
            let name = format!("{width}/{number} {}", "long".repeat(number % 40));
            if number % 5 == 1 {
                fs::create_dir_all(tree.path(&name).join("below")).expect("directories");
                fs::write(tree.path(&name).join("below/f"), "x").expect("a file");
            } else {
                fs::create_dir_all(tree.path(&width.to_string())).expect("a directory");
                fs::write(tree.path(&name), "x").expect("a file");
            }
        }
    }
    for number in 0..30 {
        symlink(format!("target {number}"), tree.path(&format!("40/link {number}"))).expect("a link");
        fs::hard_link(tree.path("a/b/c/d/e"), tree.path(&format!("3/hard {number}"))).expect("a hard link");
    }
    nix_like_fifo(&tree);
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("3/socket")).expect("a socket");
    fs::set_permissions(tree.path("empty"), fs::Permissions::from_mode(0o000)).expect("chmod");
    tree
}

fn nix_like_fifo(tree: &Tree) {
    let made = std::process::Command::new("mkfifo").arg(tree.path("3/fifo")).status();
    assert!(made.expect("mkfifo").success());
}

#[test]
fn a_walk_has_the_same_events_whatever_its_depth() {
    let tree = odd_tree();
    let full = WalkSettings::default();
    let everything = is_the_same_at_all_depths(&tree, &["I", "F /t"], &full);
    assert!(everything.len() > 1000, "{}", everything.len());
    let excluding = ["I", "O e", "WF *.o", "WD */below", "N", "F /t", "N", "E", "F /t/hidden"];
    let excluded = is_the_same_at_all_depths(&tree, &excluding, &full);
    assert!(excluded.len() < everything.len());
    is_the_same_at_all_depths(&tree, &["I", "O h", "N", "F /t/40", "F /t/700"], &full);
    is_the_same_at_all_depths(&tree, &["I", "F /t", "Z below"], &full);
    let old = WalkSettings { incremental: true, since: i64::MAX, ..WalkSettings::default() };
    is_the_same_at_all_depths(&tree, &["I", "F /t"], &old);
    for purpose in [Purpose::Verify, Purpose::Estimate { limit: 0 }, Purpose::Estimate { limit: 300 }] {
        is_the_same_at_all_depths(&tree, &["I", "F /t"], &WalkSettings { purpose, ..WalkSettings::default() });
    }
}

#[test]
fn a_deep_tree_has_the_same_events_whatever_its_depth() {
    let tree = Tree::new(&[]);
    for number in 0..2000 {
        fs::write(tree.path(&format!("{number} {}", "long".repeat(30))), "").expect("a file");
    }
    let mut path = tree.path("");
    for level in 0..400 {
        path = path.join("d");
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join(format!("a{level}")), "").expect("a file");
        fs::write(path.join(format!("z{level}")), "").expect("a file");
    }
    let found = is_the_same_at_all_depths(&tree, &["I", "F /t"], &WalkSettings::default());
    assert_eq!(found.len(), 2000 + 3 * 400 + 2);
}
