//! Walks with an accurate list: a plain one, which holds all attributes of all names.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fd_fileset::FileSet;
use fd_records::Stat;
use fd_walk::{Candidate, Compared, Comparison, Flow, InodeScan, WalkEvent, WalkHost, WalkSettings, walk};

use crate::walks::{Host, fileset};

/// Names and attributes.
pub(crate) type List = BTreeMap<Vec<u8>, Stat>;

/// Letters of a list, and what a scan finds of that.
pub(crate) const LETTERS: [(&str, Option<Compared>); 6] = [
    ("mcs", Some(Compared { inode: false, size: true, class: false })),
    ("pnug", Some(Compared { inode: false, size: false, class: true })),
    ("ipnugsmcd", Some(Compared { inode: true, size: true, class: true })),
    ("d", Some(Compared { inode: false, size: true, class: false })),
    ("", Some(Compared { inode: false, size: false, class: false })),
    ("mcsa", None),
];

/// Compares with a list.
pub(crate) struct Accurate {
    pub(crate) list: List,
    pub(crate) letters: (&'static str, Option<Compared>),
    pub(crate) seen: RefCell<BTreeSet<Vec<u8>>>,
    pub(crate) scans: Cell<u64>,
}

impl Accurate {
    pub(crate) fn new(list: &List, letters: (&'static str, Option<Compared>)) -> Self {
        Self { list: list.clone(), letters, seen: RefCell::default(), scans: Cell::default() }
    }

    fn differs(&self, known: &Stat, now: &Stat) -> bool {
        self.letters.0.bytes().any(|letter| match letter {
            b'i' => known.ino != now.ino,
            b'p' => known.mode != now.mode,
            b'n' => known.nlink != now.nlink,
            b'u' => known.uid != now.uid,
            b'g' => known.gid != now.gid,
            b's' => known.size != now.size,
            b'd' => known.size > now.size,
            b'm' => known.mtime != now.mtime,
            b'c' => known.ctime != now.ctime,
            _ => known.atime != now.atime,
        })
    }
}

impl WalkHost for Accurate {
    fn is_canceled(&self) -> bool {
        false
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let Some((name, known)) = self.list.get_key_value(&*candidate.key()) else {
            return Comparison::Changed { token: None };
        };
        self.seen.borrow_mut().insert(name.clone());
        if self.differs(known, candidate.stat) { Comparison::Changed { token: None } } else { Comparison::Unchanged }
    }

    fn compares_by_list(&self, _: &FileSet) -> Option<Compared> {
        self.letters.1
    }

    fn listed(&self, candidate: &Candidate<'_>) -> Option<Stat> {
        self.list.get(&*candidate.key()).copied()
    }

    fn scanned(&self, _: u64, found: Result<(u64, Duration), String>) {
        self.scans.set(self.scans.get() + u64::from(found.is_ok()));
    }
}

/// What a Full job of this directory saves.
pub(crate) fn full(top: &Path) -> List {
    let mut list = List::new();
    walk(&fileset(&["I"], &[top]), &WalkSettings::default(), &Host::default(), &mut |event| {
        if let WalkEvent::Entry(entry) = event {
            list.insert(entry.record_names().name.into_owned(), entry.stat);
        }
        Flow::Continue
    });
    list
}

/// The same settings without a scan.
pub(crate) fn without_scan(settings: &WalkSettings) -> WalkSettings {
    WalkSettings { inode_scan: InodeScan::Off, ..settings.clone() }
}
