//! Walks over real trees: order, types, hard links, barriers, messages (reference 03 §5, §8 to
//! §11).

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on fails, like one that finds something wrong"
)]

mod ahead;
mod barriers;
mod changes;
mod errors;
mod links;
mod matching;
mod plugins;
mod purposes;
mod snapshots;
mod tree;

use std::cell::Cell;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fd_records::FileType;
use fd_walk::{Flow, WalkEnd, WalkHost, WalkSettings, walk};

use crate::tree::{Host, Tree, names_in_order};

#[test]
fn a_directory_comes_after_its_contents_and_names_come_in_the_kernels_order() {
    let tree = Tree::new(&["d1/d2/f3", "d1/f2", "top", "empty/"]);
    let found = tree.full(&["I", "F /t"]);
    assert_eq!(found.last().map(String::as_str), Some("/t/"));
    let position =
        |name: &str| found.iter().position(|entry| entry == name).unwrap_or_else(|| panic!("{name} in {found:?}"));
    assert!(position("/t/d1/d2/f3") < position("/t/d1/d2/"));
    assert!(position("/t/d1/d2/") < position("/t/d1/"));
    let top: Vec<_> = found
        .iter()
        .filter_map(|path| path.strip_prefix("/t/"))
        .map(|path| path.trim_end_matches('/'))
        .filter(|path| !path.is_empty() && !path.contains('/'))
        .collect();
    assert_eq!(top, names_in_order(&tree.path("")));
}

/// Keeps the maximum of open descriptors below `root`, for other tests open files meanwhile. Looks
/// at every 50th question: the kernel takes its time for names of this depth.
struct Counting<'c> {
    root: &'c Path,
    asked: Cell<usize>,
    most: Cell<usize>,
}

impl WalkHost for Counting<'_> {
    fn is_canceled(&self) -> bool {
        if self.asked.replace(self.asked.get() + 1).is_multiple_of(50) {
            let all = fs::read_dir("/proc/self/fd").expect("the own descriptors");
            let names = all.filter_map(|entry| fs::read_link(entry.expect("a descriptor").path()).ok());
            self.most.set(self.most.get().max(names.filter(|name| name.starts_with(self.root)).count()));
        }
        false
    }
}

#[test]
fn deep_trees_need_few_descriptors() {
    let tree = Tree::new(&[]);
    let depth = 1000;
    let path = (0..depth).fold(tree.path(""), |path, _| path.join("d"));
    fs::create_dir_all(&path).expect("a deep tree");
    fs::write(path.join("f"), "x").expect("a file");
    let root = tree.path("");
    let host = Counting { root: &root, asked: Cell::new(0), most: Cell::new(0) };
    let mut entries = 0;
    let fileset = tree.fileset(&["I", "F /t"]);
    walk(&fileset, &WalkSettings::default(), &host, &mut |_| {
        entries += 1;
        Flow::Continue
    });
    assert_eq!(entries, depth + 2);
    assert!((1..400).contains(&host.most.get()), "{} descriptors", host.most.get());
}

#[test]
fn a_canceled_walk_ends_at_the_next_entry() {
    let tree = Tree::new(&["a", "b", "c"]);
    let host = Host { cancel_after: Some(1), ..Host::default() };
    let (found, summary) = tree.walk(&["I", "F /t"], &WalkSettings::default(), &host);
    assert_eq!((found.len(), summary.end), (1, WalkEnd::Canceled));
}

#[test]
fn strange_names_and_slashes() {
    let tree = Tree::new(&["d/nl\nname", "d/ blank"]);
    let odd = std::ffi::OsStr::from_bytes(b"bad\xff");
    fs::write(tree.path("d").join(odd), "x").expect("a file");
    let found = tree.sorted(&["I", "F /t/d//"]);
    assert_eq!(found, ["/t/d/", "/t/d/ blank", "/t/d/bad\u{fffd}", "/t/d/nl\nname"]);
}

#[test]
fn an_empty_file_has_its_own_type_only_if_all_may_read_it() {
    let tree = Tree::new(&[]);
    for (name, mode) in [("all", 0o644), ("owner", 0o600)] {
        fs::write(tree.path(name), "").expect("a file");
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let kind = |name: &str| tree.types(&["I", &format!("F /t/{name}")])[0].1;
    assert_eq!((kind("all"), kind("owner")), (FileType::EmptyFile, FileType::Regular));
}

#[test]
fn plugin_commands_come_after_the_names_of_their_include() {
    let tree = Tree::new(&["a", "b"]);
    let found = tree.full(&["I", "P bpipe:1", "N", "F /t/a", "N", "I", "F /t/b", "N", "P bpipe:2", "N"]);
    assert_eq!(found, ["/t/a", "bpipe:1", "/t/b", "bpipe:2"]);
}

#[test]
fn names_are_neither_globbed_nor_sorted_nor_made_unique() {
    let tree = Tree::new(&["b", "a"]);
    assert_eq!(
        tree.full(&["I", "F /t/b", "F /t/a", "F /t/b", "F /t/*"]),
        ["/t/b", "/t/a", "/t/b", "[!NotSaved      Could not stat \"/t/*\": ERR=No such file or directory]"]
    );
}

/// What is compared with all names takes minutes; the walk takes seconds.
#[test]
fn a_hundred_thousand_names_are_walked_in_the_time_of_the_walk() {
    let tree = Tree::new(&["f"]);
    // One file by many names of one length.
    let slashes = |number: u32| (0..17).map(|bit| if number >> bit & 1 == 1 { "//" } else { "/." }).collect::<String>();
    let names: Vec<String> = (0..100_000).map(|number| format!("F /t/.{}/f", slashes(number))).collect();
    let lines = ["I", "O f", "X none", "N"].into_iter().chain(names.iter().map(String::as_str));
    let fileset = tree.fileset(&lines.collect::<Vec<_>>());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _told = tell.send(walk(&fileset, &WalkSettings::default(), &Host::default(), &mut |_| Flow::Continue));
    });
    let summary = told.recv_timeout(std::time::Duration::from_secs(60)).expect("its end");
    assert_eq!((summary.entries, summary.end), (0, WalkEnd::Complete));
}

#[test]
fn a_stopped_walk_passes_no_further_events() {
    let tree = Tree::new(&["a", "b", "c"]);
    let mut events = 0;
    let fileset = tree.fileset(&["I", "F /t"]);
    let summary = walk(&fileset, &WalkSettings::default(), &Host::default(), &mut |_| {
        events += 1;
        Flow::Stop
    });
    assert_eq!((events, summary.end), (1, WalkEnd::Stopped));
}

/// A directory that is put aside in a deep tree is continued at its position.
#[test]
fn a_large_directory_above_a_deep_one_is_complete_and_in_order() {
    let tree = Tree::new(&[]);
    for number in 0..2000 {
        fs::write(tree.path(&format!("{number} {}", "long".repeat(30))), "").expect("a file");
    }
    fs::create_dir_all((0..200).fold(tree.path("deep"), |path, _| path.join("d"))).expect("a deep tree");
    let found = tree.full(&["I", "F /t"]);
    let top: Vec<_> = found
        .iter()
        .filter_map(|path| path.strip_prefix("/t/"))
        .filter(|path| *path == "deep/" || !path.is_empty() && !path.contains('/'))
        .map(|path| path.trim_end_matches('/'))
        .collect();
    assert_eq!(top, names_in_order(&tree.path("")));
    assert_eq!(found.len(), 2000 + 201 + 1);
}

#[test]
fn attributes_of_a_directory_are_from_before_its_contents_were_read() {
    use std::os::unix::fs::MetadataExt as _;
    let tree = Tree::new(&["d/f"]);
    let before = fs::metadata(tree.path("d")).expect("stat");
    let mut found = None;
    let fileset = tree.fileset(&["I", "F /t/d"]);
    walk(&fileset, &WalkSettings::default(), &Host::default(), &mut |event| {
        if let fd_walk::WalkEvent::Entry(entry) = event {
            match entry.file_type {
                // A new file in it, during the walk.
                FileType::Regular => fs::write(tree.path("d/g"), "").expect("a file"),
                _ => found = Some(entry),
            }
        }
        Flow::Continue
    });
    let (entry, after) = (found.expect("the directory"), fs::metadata(tree.path("d")).expect("stat"));
    let nanoseconds = |found: &fs::Metadata| (found.mtime(), u32::try_from(found.mtime_nsec()).expect("a fraction"));
    assert_eq!((entry.stat.mtime, entry.nanoseconds.mtime), nanoseconds(&before));
    assert_ne!((entry.stat.mtime, entry.nanoseconds.mtime), nanoseconds(&after));
}
