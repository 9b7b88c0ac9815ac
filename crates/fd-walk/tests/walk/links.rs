//! Names of one inode (reference 03 §5.6).

use std::fs;
use std::os::unix::fs::symlink;

use fd_records::FileType;
use fd_walk::{Entry, HardLink, LinkState};
use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

use crate::tree::Tree;

#[test]
fn links_are_not_followed_and_further_names_of_an_inode_refer_to_the_first() {
    let tree = Tree::new(&["a/f"]);
    fs::hard_link(tree.path("a/f"), tree.path("z")).expect("a hard link");
    symlink("a", tree.path("l")).expect("a symlink");
    let found = tree.full(&["I", "F /t/a", "F /t/z", "F /t/l", "F /t/a"]);
    assert_eq!(found, ["/t/a/f", "/t/a/", "/t/z=/t/a/f#1", "/t/l->a", "/t/a/"]);
    assert_eq!(tree.full(&["I", "O H", "N", "F /t/a", "F /t/z"]), ["/t/a/f", "/t/a/", "/t/z"]);
}

#[test]
fn an_excluded_name_is_never_a_first_name() {
    let tree = Tree::new(&["a/x.o"]);
    fs::create_dir(tree.path("b")).expect("a directory");
    fs::hard_link(tree.path("a/x.o"), tree.path("b/y")).expect("a hard link");
    let found = tree.full(&["I", "O e", "WF *.o", "N", "F /t/a", "F /t/b"]);
    assert_eq!(found, ["/t/a/", "/t/b/y", "/t/b/"]);
}

/// Reference 03 §11.2: `hf` and `f` are one inode.
#[test]
fn names_of_the_fileset_that_overlap() {
    let tree = Tree::new(&["a/b/g", "top"]);
    fs::write(tree.path("a/hf"), "x").expect("a file");
    fs::hard_link(tree.path("a/hf"), tree.path("a/f")).expect("a hard link");
    let found = tree.full(&["I", "F /t", "F /t/a", "F /t/a/b/g"]);
    let count = |word: &str| found.iter().filter(|found| found.starts_with(word)).count();
    assert_eq!((count("/t/a/b/g"), count("/t/a/b/"), count("/t/a/"), count("/t/top")), (3, 5, 10, 1));
    let names: Vec<_> = found.iter().filter(|word| word.contains('f')).collect();
    // The first name is found again under the same path and dropped; the other one refers to it
    // each time.
    let first = names[0];
    assert_eq!(names.len(), 3, "{found:?}");
    assert!(names[1..].iter().all(|word| word.contains(&format!("={first}#"))), "{found:?}");
}

#[test]
fn fifos_are_tracked_and_symbolic_links_are_not() {
    let tree = Tree::new(&["d/"]);
    mknodat(CWD, tree.path("ff"), Kind::Fifo, Mode::RUSR, 0).expect("a fifo");
    symlink("d", tree.path("sl")).expect("a symlink");
    for (old, new) in [("ff", "ff2"), ("sl", "sl2")] {
        fs::hard_link(tree.path(old), tree.path(new)).expect("a hard link");
    }
    let lines = ["I", "F /t/ff", "F /t/ff2", "F /t/sl", "F /t/sl2"];
    let types: Vec<_> = tree.types(&lines).into_iter().map(|(_, file_type)| file_type).collect();
    assert_eq!(types, [FileType::Special, FileType::HardLink, FileType::Symlink, FileType::Symlink]);
    assert_eq!(tree.full(&lines), ["/t/ff", "/t/ff2=/t/ff#1", "/t/sl->d", "/t/sl2->d"]);
}

/// Whether the first name can be read is known only later; if not, a later name is saved as a file
/// of its own.
#[test]
fn a_later_name_keeps_its_own_type() {
    let tree = Tree::new(&["a"]);
    fs::hard_link(tree.path("a"), tree.path("b")).expect("a hard link");
    let entries = tree.entries(&["I", "F /t/a", "F /t/b"]);
    let (Some(HardLink::First(first)), Some(HardLink::Later { slot, own_type })) =
        (&entries[0].hard_link, &entries[1].hard_link)
    else {
        panic!("{entries:?}")
    };
    assert_eq!((*own_type, slot.get()), (FileType::Regular, LinkState::Pending));
    first.set(LinkState::NotSaved);
    assert_eq!(slot.get(), LinkState::NotSaved);
    assert_eq!((slot.path(), &entries[1].link), (entries[0].path.clone(), &entries[0].path));
}

#[test]
fn an_unchanged_name_is_never_a_first_name() {
    let tree = Tree::new(&["a"]);
    fs::hard_link(tree.path("a"), tree.path("b")).expect("a hard link");
    let host = crate::tree::Host { unchanged: Some("/a"), ..Default::default() };
    let (found, _) = tree.walk(&["I", "F /t/a", "F /t/b"], &fd_walk::WalkSettings::default(), &host);
    assert_eq!(found, ["[Skipped      Unchanged file skipped: /t/a]", "/t/b"]);
}

/// Reference 03 §5.12: the stock daemon strips the first name by the count of the later one.
#[test]
fn a_hard_link_leads_to_its_first_name_as_that_is_stripped() {
    let tree = Tree::new(&["d/f"]);
    fs::hard_link(tree.path("d/f"), tree.path("h")).expect("a hard link");
    let strip = format!("O P{}:", tree.folder.path().components().count() - 1);
    let stripped = ["I", &strip, "N", "F /t/d/f"];
    let whole = ["I", "F /t/h", "F /t/d/f"];
    for (lines, expected) in [
        ([&stripped[..], &whole].concat(), ["/d/f", "/t/h->/d/f"]),
        ([&whole[..2], &stripped].concat(), ["/t/h", "/d/f->/t/h"]),
    ] {
        let names: Vec<_> = tree.entries(&lines).iter().map(|entry| names_of(&tree, entry)).collect();
        assert_eq!(names, expected);
    }
}

fn names_of(tree: &Tree, entry: &Entry) -> String {
    let names = entry.record_names();
    let link = if names.link.is_empty() { String::new() } else { "->".to_owned() + &tree.short(&names.link) };
    tree.short(&names.name) + &link
}
