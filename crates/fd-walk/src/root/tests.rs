//! The way to an entry.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A root of each kind: held or not, with `openat2` or without.
fn roots(directory: &File, prefix: usize) -> Vec<Root> {
    let counter = Arc::new(());
    let mut roots = Vec::new();
    for (is_held, refuses_links) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut root = Root::new(directory.as_fd(), prefix, &counter).unwrap();
        if !is_held {
            root.handle = None;
        }
        root.refuses_links &= refuses_links;
        roots.push(root);
    }
    roots
}

#[test]
fn no_link_on_the_way_is_followed_and_no_other_directory_taken() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("top/d/e")).unwrap();
    fs::write(at("top/d/e/f"), "right").unwrap();
    symlink("d", at("top/link")).unwrap();
    symlink("f", at("top/d/e/last")).unwrap();
    let path = |name: &str| at(name).into_os_string().into_encoded_bytes();
    let directory = File::open(at("top")).unwrap();
    let roots = roots(&directory, path("top").len() + 1);
    for root in &roots {
        assert!(root.open(&path("top/d/e/f"), FLAGS).is_ok(), "{root:?}");
        for link in ["top/link/e/f", "top/d/e/last"] {
            let refused = root.open(&path(link), FLAGS).unwrap_err();
            assert!([Errno::LOOP, Errno::NOTDIR].contains(&refused), "{link}: {refused} {root:?}");
        }
        assert_eq!(root.open(&path("top/d/none"), FLAGS).err(), Some(Errno::NOENT));
    }
    fs::rename(at("top"), at("moved")).unwrap();
    fs::create_dir_all(at("top/d/e")).unwrap();
    fs::write(at("top/d/e/f"), "wrong").unwrap();
    for root in &roots {
        let opened = root.open(&path("top/d/e/f"), FLAGS).map(|file| std::io::read_to_string(File::from(file)));
        match &root.handle {
            Some(_) => assert_eq!(opened.unwrap().unwrap(), "right", "{root:?}"),
            None => assert_eq!(opened.err(), Some(Errno::NOENT), "{root:?}"),
        }
    }
}

#[test]
fn few_roots_hold_their_directory() {
    let folder = tempfile::tempdir().unwrap();
    let directory = File::open(folder.path()).unwrap();
    let counter = Arc::new(());
    let roots: Vec<_> = (0..MOST_HELD + 9).map(|_| Root::new(directory.as_fd(), 0, &counter).unwrap()).collect();
    assert_eq!(roots.iter().filter(|root| root.handle.is_some()).count(), MOST_HELD);
}

#[test]
fn the_directory_of_a_name_is_recognized_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let path = |name: &str| folder.path().join(name).into_os_string().into_encoded_bytes();
    symlink("one", folder.path().join("link")).unwrap();
    let root = Root::of_parent(&path("link/f"), &Arc::new(())).unwrap();
    assert!(root.is_parent(&path("link/g")) && !root.is_parent(&path("other/g")));
    fs::remove_file(folder.path().join("link")).unwrap();
    symlink("other", folder.path().join("link")).unwrap();
    assert!(!root.is_parent(&path("link/g")));
    assert!(Root::of_parent(b"name", &Arc::new(())).unwrap().is_parent(b"another"));
}
