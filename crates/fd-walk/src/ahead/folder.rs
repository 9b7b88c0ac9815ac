//! A directory with the names that the walk has still to use, and what is known of them.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use fd_records::Stat;
use rustix::io::Errno;

use super::calls::Name;
use crate::attributes::Found;
use crate::directory::{Leaf, Rest, push_name};
use fd_os::sync::Instant;

/// Names are looked up in the order of their inodes within stretches of so many: a disk has them
/// side by side.
pub(crate) const STRETCH: usize = 512;

/// What was found so long ago is looked up again: the walk has waited for something else.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// The number of a directory, never used twice.
pub(crate) type FolderId = u64;

/// What one lookup has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) found: Result<Found, Errno>,
    /// The target of a symbolic link, if it was read.
    pub(crate) link: Option<Result<Vec<u8>, Errno>>,
    pub(crate) time: Instant,
}

impl Answer {
    pub(crate) fn is_fresh(&self) -> bool {
        self.time.elapsed() < FRESH
    }

    /// Whether it is about an entry below which there is nothing.
    fn is_leaf(&self) -> bool {
        !self.found.as_ref().is_ok_and(|(stat, _)| stat.mode_type() == Stat::MODE_DIRECTORY)
    }
}

/// An entry, and what was found, unless a scan has made its lookup unnecessary.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) name: Arc<[u8]>,
    pub(crate) leaf: Leaf,
    pub(crate) answer: Option<Answer>,
}

/// How far the lookup of an entry is.
#[derive(Debug)]
pub(crate) enum Look {
    Waiting,
    Begun,
    Known(Answer),
    /// The walk has it.
    Used,
}

/// How far the opening of a directory is.
#[derive(Debug)]
pub(crate) enum Below {
    Nothing,
    /// It waits for its turn.
    Wanted,
    Begun,
    Open(FolderId),
    Failed(Errno, Instant),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<[u8]>,
    pub(crate) leaf: Leaf,
    pub(crate) look: Look,
    pub(crate) below: Below,
}

impl Entry {
    fn new(name: &Name) -> Self {
        let leaf = if name.is_leaf { name.ino } else { 0 };
        Self { name: Arc::clone(&name.name), leaf, look: Look::Waiting, below: Below::Nothing }
    }
}

/// How far the reading of the names is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    Begun,
    Rests(Rest),
}

/// See the module. Entries are numbered from 1 in the directory's order.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) descriptor: Arc<OwnedFd>,
    /// With a final slash.
    pub(crate) path: Vec<u8>,
    pub(crate) identity: (u64, u64),
    /// Its place in the walk: the numbers of the entries that lead to it.
    pub(crate) order: Vec<u64>,
    /// The entry that the walk is at, and its number.
    pub(crate) current: Option<Entry>,
    pub(crate) handed: u64,
    /// Those that follow.
    pub(crate) entries: VecDeque<Entry>,
    pub(crate) reading: Reading,
    /// Numbers of the entries whose lookup is still to be begun, in the order in which that is
    /// done.
    pub(crate) queue: VecDeque<u64>,
    /// So many threads are at work in it.
    pub(crate) busy: usize,
    pub(crate) opened: Instant,
}

impl Folder {
    pub(crate) fn new(descriptor: Arc<OwnedFd>, path: Vec<u8>, identity: (u64, u64), order: Vec<u64>) -> Self {
        Self {
            descriptor,
            path,
            identity,
            order,
            current: None,
            handed: 0,
            entries: VecDeque::new(),
            reading: Reading::Rests(Rest::More),
            queue: VecDeque::new(),
            busy: 0,
            opened: Instant::now(),
        }
    }

    /// The names of one read.
    pub(crate) fn add(&mut self, names: &[Name], rest: Rest) {
        self.reading = Reading::Rests(rest);
        for stretch in names.chunks(STRETCH) {
            let first = self.next_number();
            let mut order: Vec<(u64, u64)> = stretch.iter().map(|name| name.ino).zip(first..).collect();
            order.sort_unstable();
            self.queue.extend(order.into_iter().map(|(_, number)| number));
            self.entries.extend(stretch.iter().map(Entry::new));
        }
    }

    /// Whether its names, and that it was opened, are of now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.opened.elapsed() < FRESH
    }

    fn next_number(&self) -> u64 {
        self.handed + 1 + self.entries.len() as u64
    }

    /// The entry of this number, unless the walk is beyond it.
    pub(crate) fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        match number.checked_sub(self.handed)? {
            0 => self.current.as_mut(),
            ahead => self.entries.get_mut(usize::try_from(ahead - 1).ok()?),
        }
    }

    /// Takes the next entries, as far as they are known and no directories.
    pub(crate) fn hand_out(&mut self, most: usize, is_spared: impl Fn(Leaf) -> bool) -> VecDeque<Handed> {
        let is_ready = |entry: &Entry| match &entry.look {
            // It was a directory before, and what was opened is to be closed.
            _ if !matches!(entry.below, Below::Nothing) => false,
            Look::Known(answer) => answer.is_leaf(),
            Look::Waiting => is_spared(entry.leaf),
            Look::Begun | Look::Used => false,
        };
        let count = self.entries.iter().take(most).take_while(|entry| is_ready(entry)).count();
        let handed = self.entries.drain(..count);
        let handed = handed.map(|Entry { name, leaf, look, .. }| {
            let answer = if let Look::Known(answer) = look { Some(answer) } else { None };
            Handed { name, leaf, answer }
        });
        handed.collect()
    }

    /// How many entries the walk has still to use whose lookup was begun.
    pub(crate) fn begun(&self) -> usize {
        self.entries.len().saturating_sub(self.queue.len())
    }

    /// Takes the next entry whose lookup is to be begun.
    pub(crate) fn begin(&mut self, is_spared: impl Fn(Leaf) -> bool) -> Option<(u64, Arc<[u8]>)> {
        while let Some(number) = self.queue.pop_front() {
            if let Some(entry) = self.entry(number)
                && matches!(entry.look, Look::Waiting)
                && !is_spared(entry.leaf)
            {
                entry.look = Look::Begun;
                return Some((number, Arc::clone(&entry.name)));
            }
        }
        None
    }

    /// Begins with the entry that the walk is at.
    pub(crate) fn begin_current(&mut self) -> Option<(u64, Arc<[u8]>)> {
        let entry = self.current.as_mut()?;
        entry.look = Look::Begun;
        Some((self.handed, Arc::clone(&entry.name)))
    }

    /// The answers for the next entries are too old.
    pub(crate) fn forget_answers(&mut self) {
        let first = self.handed + 1;
        let mut forgotten = VecDeque::new();
        for (entry, number) in self.entries.iter_mut().take(STRETCH).zip(first..) {
            if matches!(entry.look, Look::Known(_)) {
                entry.look = Look::Waiting;
                forgotten.push_back(number);
            }
        }
        forgotten.append(&mut self.queue);
        self.queue = forgotten;
    }

    /// The path of an entry of this name.
    pub(crate) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        [self.path.as_slice(), name].concat()
    }

    /// The names that were not used, as in [`Loan`](crate::directory::Loan).
    pub(crate) fn names_left(&self) -> Vec<u8> {
        let mut names = Vec::new();
        for entry in &self.entries {
            push_name(&mut names, entry.leaf, &entry.name);
        }
        names
    }
}
