//! What has not changed since the last backup (reference 03 §6, §11.5).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, UNIX_EPOCH};

use fd_walk::WalkSettings;

use crate::tree::{Host, Tree};

fn incremental(since: i64) -> WalkSettings {
    WalkSettings { incremental: true, since, ..WalkSettings::default() }
}

#[test]
fn unchanged_directories_are_reported_before_and_after_their_contents() {
    let tree = Tree::new(&["f"]);
    let (found, _) = tree.walk(&["I", "F /t"], &incremental(i64::MAX), &Host::default());
    assert_eq!(
        found,
        [
            "[Skipped      Unchanged file skipped: /t]",
            "[Skipped      Unchanged file skipped: /t/f]",
            "[Skipped      Unchanged file skipped: /t]"
        ]
    );
}

#[test]
fn the_second_of_the_last_backup_counts_as_changed() {
    let tree = Tree::new(&["f"]);
    let mtime = fs::metadata(tree.path("f")).map(|found| found.mtime()).expect("stat");
    let (found, _) = tree.walk(&["I", "F /t/f"], &incremental(mtime), &Host::default());
    assert_eq!(found, ["/t/f"]);
}

#[test]
fn an_accurate_list_takes_precedence_over_times() {
    let tree = Tree::new(&["a", "b"]);
    let host = Host { unchanged: Some("/a"), ..Host::default() };
    let (mut found, _) = tree.walk(&["I", "F /t"], &WalkSettings::default(), &host);
    found.sort();
    assert_eq!(found, ["/t/", "/t/b", "[Skipped      Unchanged file skipped: /t/a]"]);
}

/// Sets the modification time; the change time becomes the present.
fn set_mtime(tree: &Tree, name: &str, seconds: u64) {
    let file = fs::File::open(tree.path(name)).expect("open");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
}

#[test]
fn a_change_of_the_inode_counts_unless_only_contents_do() {
    let tree = Tree::new(&["old", "chmod", "lt"]);
    for name in ["old", "chmod", "lt"] {
        set_mtime(&tree, name, 1_000_000_000);
    }
    fs::set_permissions(tree.path("chmod"), fs::Permissions::from_mode(0o600)).expect("chmod");
    let ctime = fs::metadata(tree.path("chmod")).expect("stat").ctime();
    let names = ["F /t/old", "F /t/chmod", "F /t/lt"];
    let walked = |options: &str, since| {
        tree.walk(&[&["I", options, "N"], names.as_slice()].concat(), &incremental(since), &Host::default()).0
    };
    let skipped = names.map(|name| name.replace("F ", "[Skipped      Unchanged file skipped: ") + "]");
    // Their inodes changed in or after this second.
    assert_eq!(walked("O ", ctime - 60), ["/t/old", "/t/chmod", "/t/lt"]);
    assert_eq!(walked("O m", ctime - 60), skipped);
    assert_eq!(walked("O ", ctime + 60), skipped);
    assert_eq!(walked("O m", 1_000_000_000), ["/t/old", "/t/chmod", "/t/lt"], "the very second");
    assert_eq!(walked("O m", 1_000_000_001), skipped);
}

#[test]
fn a_directory_that_is_not_entered_is_saved_even_if_it_did_not_change() {
    let tree = Tree::new(&["d/f"]);
    let (found, _) = tree.walk(&["I", "O h", "N", "F /t"], &incremental(i64::MAX), &Host::default());
    assert_eq!(
        found,
        [
            "[Skipped      Unchanged file skipped: /t]",
            "[Skipped      Unchanged file skipped: /t/d]",
            "[Info      Recursion turned off. Will not descend from /t into /t/d]",
            "/t/d/",
            "[Skipped      Unchanged file skipped: /t]"
        ]
    );
}

/// Both times the name as it is written in the FileSet, as from the stock daemon.
#[test]
fn an_unchanged_name_of_the_fileset_is_reported_as_written() {
    let tree = Tree::new(&["d/"]);
    let (found, _) = tree.walk(&["I", "F /t/d//"], &incremental(i64::MAX), &Host::default());
    assert_eq!(found, ["[Skipped      Unchanged file skipped: /t/d//]"; 2]);
}

#[test]
fn each_entry_is_compared_under_its_record_name() {
    let tree = Tree::new(&["d/f", "d/x.o"]);
    let host = Host::default();
    tree.walk(&["I", "O e", "WF *.o", "N", "F /t/d"], &WalkSettings::default(), &host);
    let mut compared: Vec<_> =
        host.compared.borrow().iter().map(|(key, accepted)| (tree.short(key), *accepted)).collect();
    compared.sort();
    // An excluded entry is compared, too: the stock daemon marks it as seen.
    let expected = [("/t/d/", true), ("/t/d/f", true), ("/t/d/x.o", false)];
    assert_eq!(compared, expected.map(|(key, accepted)| (key.to_owned(), accepted)));
}

#[test]
fn keys_of_the_accurate_list_are_stripped() {
    let tree = Tree::new(&["d/f"]);
    let parts = tree.root().matches('/').count();
    let host = Host::default();
    let options = format!("O P{parts}:");
    tree.walk(&["I", &options, "N", "F /t/d"], &WalkSettings::default(), &host);
    let keys: Vec<_> = host.compared.borrow().iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, [b"/d/".to_vec(), b"/d/f".to_vec()]);
}
