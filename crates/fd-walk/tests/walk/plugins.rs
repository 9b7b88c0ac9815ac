//! Plugin commands, and what plugins change during a walk (reference 07 §3.5, §5.3).

use std::cell::RefCell;

use fd_records::DigestKind;
use fd_walk::{Flow, WalkEvent, WalkHost, WalkSettings, walk};

use crate::tree::{Host, Tree};

/// Each plugin command with the digest of the options that it inherits.
fn commands(tree: &Tree, lines: &[&str], host: &dyn WalkHost) -> Vec<(String, usize, Option<DigestKind>)> {
    let mut found = Vec::new();
    walk(&tree.fileset(lines), &WalkSettings::default(), host, &mut |event| {
        if let WalkEvent::Plugin(plugin) = event {
            found.push((tree.short(plugin.command), plugin.include, plugin.options.digest));
        }
        Flow::Continue
    });
    found
}

#[test]
fn a_command_inherits_the_options_of_the_last_entry_or_those_of_all_blocks() {
    let command = |include, digest| vec![("p:x".to_owned(), include, Some(digest))];
    let options = ["I", "O S", "WF */c", "N", "O M", "N"];
    let inherits = |names: &[&str], rest: &[&str]| {
        let tree = Tree::new(names);
        commands(&tree, &[options.as_slice(), rest].concat(), &Host::default())
    };
    let (sha1, md5) = (DigestKind::Sha1, DigestKind::Md5);
    assert_eq!(inherits(&["c"], &["F /t", "N", "P p:x", "N"]), command(0, sha1));
    assert_eq!(inherits(&["d"], &["F /t", "N", "P p:x", "N"]), command(0, md5));
    // The names themselves are never judged. MD5 wins of several digests.
    assert_eq!(inherits(&["c"], &["F /t/c", "N", "P p:x", "N"]), command(0, md5));
    assert_eq!(inherits(&["c"], &["P p:x", "N"]), command(0, md5));
    // An Include takes nothing from the one before it.
    assert_eq!(inherits(&["c"], &["F /t", "N", "I", "O M", "N", "P p:x", "N"]), command(1, md5));
}

/// A plugin that adds commands and excludes paths.
#[derive(Default)]
struct Changing {
    /// Commands for the Include with this number.
    added: RefCell<Vec<(usize, Vec<u8>)>>,
    include: RefCell<usize>,
}

impl WalkHost for Changing {
    fn is_canceled(&self) -> bool {
        false
    }

    fn excludes(&self, path: &[u8]) -> bool {
        path.ends_with(b"/late")
    }

    fn begins_include(&self, include: usize) {
        *self.include.borrow_mut() = include;
    }

    fn added_command(&self) -> Option<Vec<u8>> {
        let mut added = self.added.borrow_mut();
        let at = added.iter().position(|(include, _)| *include == *self.include.borrow())?;
        Some(added.remove(at).1)
    }
}

#[test]
fn what_a_plugin_changes_is_seen_by_the_rest_of_the_walk() {
    let tree = Tree::new(&["late", "kept"]);
    let host = Changing { added: RefCell::new(vec![(1, b"p:late".to_vec())]), ..Changing::default() };
    let lines = ["I", "F /t", "N", "P p:1", "N", "I", "O M", "WF */late", "N", "O M", "N", "F /t", "N", "P p:2", "N"];
    let names: Vec<_> = commands(&tree, &lines, &host).into_iter().map(|(command, ..)| command).collect();
    assert_eq!(names, ["p:1", "p:2", "p:late"]);
    let mut found = Vec::new();
    walk(&tree.fileset(&lines), &WalkSettings::default(), &host, &mut |event| {
        if let WalkEvent::Entry(entry) = event {
            found.push(tree.short(&entry.record_names().name));
        }
        Flow::Continue
    });
    found.sort();
    // An Options block that names the path decides before any exclusion.
    assert_eq!(found, ["/t/", "/t/", "/t/kept", "/t/kept", "/t/late"]);
}
