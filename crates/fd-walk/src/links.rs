//! The inodes with several names, and the state of their first names (reference 03 §5.6).
//!
//! A job may find millions of them and needs each until its end, so the table is an arena: 32 bytes
//! an inode, some for the index, its name, its digest. Names that follow each other in one
//! directory share one copy of its path. Attributes are kept of inodes that change during the job.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use fd_os::lock::Mutex;
use fd_records::{DigestKind, DigestValue, Stat};
use hashbrown::HashTable;

use crate::attributes::Found;
use crate::names::split_path;

/// The state of the first name of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkState {
    /// Not known yet.
    #[default]
    Pending,
    /// It was not saved: later names are files of their own.
    NotSaved,
    /// It was saved.
    Saved {
        /// Its FileIndex.
        file_index: i32,
        /// Its digest, if one was sent; the later names repeat it.
        digest: Option<DigestValue>,
    },
}

/// The first name of an inode and its state, shared by all names.
#[derive(Clone)]
pub struct LinkSlot {
    arena: Arc<Mutex<Arena>>,
    number: u32,
}

impl LinkSlot {
    /// The path of the first name.
    pub fn path(&self) -> Vec<u8> {
        let arena = self.arena.lock();
        arena.record(self.number).map(|record| arena.path(record)).unwrap_or_default()
    }

    /// How many leading components the record of the first name is stripped of.
    pub(crate) fn strip_path(&self) -> u32 {
        let arena = self.arena.lock();
        arena.record(self.number).and_then(|record| arena.place(record)).map_or(0, |place| place.strip_path)
    }

    /// The state of the first name.
    pub fn get(&self) -> LinkState {
        let arena = self.arena.lock();
        arena.record(self.number).map(|record| arena.state(record)).unwrap_or_default()
    }

    /// The attributes of the first name's record, if those of the walk were older.
    pub(crate) fn attributes(&self) -> Option<Found> {
        self.arena.lock().changed.get(&self.number).copied()
    }

    /// Sets these.
    pub(crate) fn set_attributes(&self, found: Found) {
        self.arena.lock().changed.insert(self.number, found);
    }

    /// Sets the state of the first name.
    pub fn set(&self, state: LinkState) {
        self.arena.lock().set(self.number, state);
    }
}

impl std::fmt::Debug for LinkSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path();
        f.debug_struct("LinkSlot").field("path", &path.escape_ascii().to_string()).field("state", &self.get()).finish()
    }
}

/// The role of a name of an inode with several names.
#[derive(Debug)]
pub(crate) enum Met {
    /// It is the first one.
    First(LinkSlot),
    /// It is the first one once more, by another name of the FileSet.
    Again,
    /// It is another one.
    Later(LinkSlot),
    /// Device and inode are those of the first name, but something else is not that all names show:
    /// the file has changed meanwhile, or it is another file.
    Doubtful(LinkSlot),
    /// The table is full (about 50 million inodes): the name is a file of its own.
    Untracked,
}

/// The inodes with several names that a job has found so far.
#[derive(Default)]
pub struct LinkTable {
    arena: Arc<Mutex<Arena>>,
}

impl LinkTable {
    /// Finds an inode. A new one is added with `path` as its first name, whose record is stripped
    /// of so many components.
    pub(crate) fn meet(&self, stat: &Stat, path: &[u8], strip_path: u32) -> Met {
        let mut arena = self.arena.lock();
        let slot = |number| LinkSlot { arena: Arc::clone(&self.arena), number };
        match arena.find(stat.dev, stat.ino) {
            Some(number) => {
                let Some(record) = arena.record(number) else { return Met::Untracked };
                let is_alike = record.traits == arena.traits(stat);
                if arena.is_path(record, path) {
                    Met::Again
                } else if is_alike {
                    Met::Later(slot(number))
                } else {
                    Met::Doubtful(slot(number))
                }
            }
            None => arena.add(stat, path, strip_path).map_or(Met::Untracked, |number| Met::First(slot(number))),
        }
    }
}

/// What all names of an inode show, and two files of one number hardly both have: type and rights,
/// owner, group, what it stands for, size, times. Not the number of names, which a new one changes.
pub(crate) const fn traits(stat: &Stat) -> (u32, u32, u32, u64, i64, i64, i64) {
    (stat.mode, stat.uid, stat.gid, stat.rdev, stat.size, stat.mtime, stat.ctime)
}

/// The inodes, and the bytes that belong to them.
#[derive(Default)]
struct Arena {
    records: Vec<Record>,
    /// Paths of directories, names and digests, each with its length in front.
    bytes: Vec<u8>,
    /// Devices, with what first names are stripped of there; there are few.
    places: Vec<Place>,
    /// Numbers of records, by place and inode.
    numbers: HashTable<u32>,
    /// Present attributes of inodes that have changed since the walk, by their numbers.
    changed: HashMap<u32, Found>,
    hasher: RandomState,
    /// Position of the path of the last added inode's directory.
    directory: u32,
}

/// What the first names of inodes have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    device: u64,
    strip_path: u32,
}

/// One inode. Its paths and digest are positions in [`Arena::bytes`].
struct Record {
    ino: u64,
    /// Its position in [`Arena::places`].
    place: u32,
    directory: u32,
    name: u32,
    file_index: i32,
    /// The digest: a byte for its kind, then its bytes.
    digest: u32,
    state: Mark,
    /// See [`Arena::traits`].
    traits: [u8; 3],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Pending,
    NotSaved,
    Saved,
    SavedWithDigest,
}

impl Arena {
    fn record(&self, number: u32) -> Option<&Record> {
        self.records.get(usize::try_from(number).ok()?)
    }

    fn place(&self, record: &Record) -> Option<Place> {
        self.places.get(usize::try_from(record.place).ok()?).copied()
    }

    fn find(&self, dev: u64, ino: u64) -> Option<u32> {
        (0_u32..).zip(&self.places).filter(|(_, place)| place.device == dev).find_map(|(place, _)| {
            let is_it = |record: &Record| record.place == place && record.ino == ino;
            let hash = self.hasher.hash_one((place, ino));
            self.numbers.find(hash, |number| self.record(*number).is_some_and(is_it)).copied()
        })
    }

    /// What all names of an inode show, as a number that fits into a record.
    fn traits(&self, stat: &Stat) -> [u8; 3] {
        let [one, two, three, ..] = self.hasher.hash_one(traits(stat)).to_ne_bytes();
        [one, two, three]
    }

    /// Adds an inode. `None` if positions don't fit in 32 bits any more.
    fn add(&mut self, stat: &Stat, path: &[u8], strip_path: u32) -> Option<u32> {
        let (Stat { dev: device, ino, .. }, traits) = (*stat, self.traits(stat));
        let number = u32::try_from(self.records.len()).ok().filter(|number| *number < u32::MAX)?;
        let place = Place { device, strip_path };
        let at = self.places.iter().position(|known| *known == place).unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        });
        let place = u32::try_from(at).ok()?;
        let (directory, name) = split_path(path);
        if self.records.is_empty() || self.text(self.directory) != directory {
            self.directory = self.push_text(directory)?;
        }
        let name = self.push_text(name)?;
        let record = Record {
            ino,
            place,
            directory: self.directory,
            name,
            file_index: 0,
            digest: 0,
            state: Mark::Pending,
            traits,
        };
        self.records.push(record);
        let Self { numbers, records, hasher, .. } = self;
        let hash = |record: &Record| hasher.hash_one((record.place, record.ino));
        numbers.insert_unique(hasher.hash_one((place, ino)), number, |number| {
            usize::try_from(*number).ok().and_then(|number| records.get(number)).map_or(0, hash)
        });
        Some(number)
    }

    fn path(&self, record: &Record) -> Vec<u8> {
        [self.text(record.directory), self.text(record.name)].concat()
    }

    fn is_path(&self, record: &Record, path: &[u8]) -> bool {
        path.strip_prefix(self.text(record.directory)) == Some(self.text(record.name))
    }

    fn state(&self, record: &Record) -> LinkState {
        let digest = match record.state {
            Mark::Pending => return LinkState::Pending,
            Mark::NotSaved => return LinkState::NotSaved,
            Mark::Saved => None,
            Mark::SavedWithDigest => self
                .text(record.digest)
                .split_first()
                .and_then(|(kind, bytes)| DigestValue::from_bytes(*DigestKind::ALL.get(usize::from(*kind))?, bytes)),
        };
        LinkState::Saved { file_index: record.file_index, digest }
    }

    fn set(&mut self, number: u32, state: LinkState) {
        let (mark, file_index, digest) = match state {
            LinkState::Pending => (Mark::Pending, 0, None),
            LinkState::NotSaved => (Mark::NotSaved, 0, None),
            LinkState::Saved { file_index, digest } => (Mark::Saved, file_index, digest),
        };
        let digest = digest.and_then(|digest| self.push_text(&[&[digest.kind() as u8], digest.as_bytes()].concat()));
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(record) = self.records.get_mut(number) else { return };
        record.file_index = file_index;
        record.state = if digest.is_some() { Mark::SavedWithDigest } else { mark };
        record.digest = digest.unwrap_or_default();
    }

    /// The bytes that [`Self::push_text`] has added.
    fn text(&self, at: u32) -> &[u8] {
        let read = || {
            let (len, rest) = self.bytes.get(usize::try_from(at).ok()?..)?.split_first_chunk()?;
            rest.get(..usize::from(u16::from_ne_bytes(*len)))
        };
        read().unwrap_or_default()
    }

    fn push_text(&mut self, text: &[u8]) -> Option<u32> {
        let at = u32::try_from(self.bytes.len()).ok()?;
        let len = u16::try_from(text.len()).ok()?;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(text);
        Some(at)
    }
}

#[cfg(test)]
mod tests;
