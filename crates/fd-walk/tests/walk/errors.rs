//! Entries that can't be read.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use fd_walk::WalkSettings;

use crate::tree::{Host, Tree};

#[test]
fn a_missing_name_is_reported_and_counted() {
    let tree = Tree::new(&["f"]);
    assert_eq!(
        tree.full(&["I", "F /t/no", "F /t/f/"]),
        [
            "[!NotSaved      Could not stat \"/t/no\": ERR=No such file or directory]",
            "[!NotSaved      Could not stat \"/t/f/\": ERR=Not a directory]"
        ]
    );
}

#[test]
fn paths_that_are_too_long_are_reported_whole() {
    let tree = Tree::new(&[]);
    let root = tree.path("");
    let name = "n".repeat(250);
    // Created step by step: a single path must not be longer than the kernel takes.
    let mut directory = fs::File::open(&root).expect("open");
    for _ in 0..17 {
        rustix::fs::mkdirat(&directory, &*name, rustix::fs::Mode::RWXU).expect("mkdir");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, &*name, flags, rustix::fs::Mode::empty()).expect("open").into();
    }
    let host = Host::default();
    let (found, _) = tree.walk(&["I", "F /t"], &WalkSettings::default(), &host);
    let told: Vec<_> = found.iter().filter(|word| word.contains("File name too long")).collect();
    assert_eq!(told.len(), 1);
    assert!(host.not_examined.borrow().is_empty(), "no job has saved a path of this length");
    assert!(told[0].starts_with("[!NotSaved      Could not stat \"/t/nnn"));
    assert_eq!(found.len(), 1 + 16 + 1, "the message, the directories above it, the tree");
}

/// Reference 03 §11.6. Root may read everything, so as root the test runs itself again as the user
/// nobody.
#[test]
fn an_unreadable_directory_is_reported_and_counted() {
    if fs::metadata("/proc/self").expect("this process").uid() != 0 {
        return what_nobody_finds();
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy that all users may run");
    let status = Command::new(program)
        .args(["--exact", "errors::an_unreadable_directory_is_reported_and_counted"])
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .gid(65_534)
        .uid(65_534)
        .status();
    assert!(status.expect("a process").success());
}

fn what_nobody_finds() {
    let tree = Tree::new(&["noexec/f", "noopen/f", "secret"]);
    let modes = [("noexec", 0o600), ("noopen", 0o300), ("secret", 0o000)];
    let set = |restore: bool| {
        for (name, mode) in modes {
            let mode = if restore { 0o700 } else { mode };
            fs::set_permissions(tree.path(name), fs::Permissions::from_mode(mode)).expect("chmod");
        }
    };
    set(false);
    let host = Host::default();
    let lines = ["I", "O P99:", "N", "F /t/noexec", "N", "I", "F /t/noopen", "F /t/secret"];
    let (found, _) = tree.walk(&lines, &WalkSettings::default(), &host);
    set(true);
    assert_eq!(
        found,
        [
            "[!NotSaved      Could not stat \"/t/noexec/f\": ERR=Permission denied]",
            "/t/noexec/",
            "[!NotSaved      Could not open directory \"/t/noopen\": ERR=Permission denied]",
            // It is opened only when its data is read.
            "/t/secret"
        ]
    );
    assert_eq!(host.examined.get(), 4);
    let unknown = host.not_examined.borrow();
    let unknown: Vec<_> = unknown.iter().map(|(path, stripped)| (tree.short(path), *stripped)).collect();
    assert_eq!(unknown, [("/t/noexec/f".to_owned(), 99), ("/t/noopen".to_owned(), 0)]);
}

#[test]
fn errors_of_excluded_entries_are_not_reported() {
    let tree = Tree::new(&["loop/"]);
    let name = "n".repeat(200);
    let mut directory = fs::File::open(tree.path("")).expect("open");
    for _ in 0..21 {
        rustix::fs::mkdirat(&directory, &*name, rustix::fs::Mode::RWXU).expect("mkdir");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        directory = rustix::fs::openat(&directory, &*name, flags, rustix::fs::Mode::empty()).expect("open").into();
    }
    let told = |lines: &[&str]| tree.full(lines).iter().filter(|word| word.starts_with("[!")).count();
    assert_eq!(told(&["I", "F /t"]), 1);
    // It counts as what the directory above it says that it is.
    for (kind, errors) in [("WD", 0), ("WF", 1), ("W", 0)] {
        let pattern = format!("{kind} *{}", "?".repeat(4000));
        assert_eq!(told(&["I", "O e", &pattern, "N", "F /t"]), errors, "{kind}");
    }
}

#[test]
fn loops_of_links_are_reported_in_the_c_library_s_words() {
    let tree = Tree::new(&[]);
    std::os::unix::fs::symlink("loop", tree.path("loop")).expect("a symlink");
    assert_eq!(
        tree.full(&["I", "F /t/loop/x"]),
        ["[!NotSaved      Could not stat \"/t/loop/x\": ERR=Too many levels of symbolic links]"]
    );
}
