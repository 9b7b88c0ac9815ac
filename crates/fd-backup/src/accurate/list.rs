//! The list of the files that the catalog knows, in as little memory as possible.
//!
//! A record holds a directory's number, the name in it, and of the attributes those that the job can ask for, as short
//! numbers. Records stand one behind the other in the order of the list; an index of five bytes a place finds them by
//! name. Measured with default options: about 40 bytes a file, where the stock daemon needs 180 to 260.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use fd_records::{AccurateEntry, LStat, Stat, digest_text};

use super::directories::Directories;
use super::varint;

/// Records begin at multiples of this, so that 32 bits reach over 16 GiB of them.
const ALIGNMENT: usize = 4;
/// The index has five places for four records.
const PLACES_PER_RECORD: (usize, usize) = (5, 4);

/// Which attributes are worth keeping, beside the times of the last changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Fields(u8);

impl Fields {
    /// `st_ino`.
    pub(crate) const INO: Self = Self(1);
    /// `st_size`.
    pub(crate) const SIZE: Self = Self(2);
    /// `st_atime`.
    pub(crate) const ATIME: Self = Self(4);
    /// What many files have in common: mode, owner, number of names.
    pub(crate) const CLASS: Self = Self(8);
    /// Everything: the list's attributes are sent again (base jobs).
    pub(crate) const ALL: Self = Self(31);

    /// What either needs.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A record of the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RecordId(u32);

impl RecordId {
    /// As a number for [`fd_walk::Entry::token`].
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// From a number of [`Self::number`].
    pub(crate) fn from_number(number: u32) -> Self {
        Self(number)
    }

    fn position(self) -> usize {
        self.0 as usize * ALIGNMENT
    }
}

/// The digest that the catalog has of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KnownDigest<'l> {
    /// None.
    Missing,
    /// These bytes.
    Bytes(&'l [u8]),
    /// A text that no digest gives.
    Unreadable,
}

/// What the list says about a file. Attributes that [`Fields`] leaves out are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known<'l> {
    pub(crate) stat: Stat,
    pub(crate) digest: KnownDigest<'l>,
    pub(crate) seen: bool,
    /// Its record is a hard link to another file of the list.
    pub(crate) is_link: bool,
}

/// See the module.
pub(crate) struct List {
    fields: Fields,
    directories: Directories,
    classes: Classes,
    records: Vec<u8>,
    count: usize,
    /// Time that the recorded ones are relative to.
    epoch: Option<i64>,
    index: Index,
    hasher: RandomState,
    /// Files with several names whose data is in the list, by their inode; `None` where two have the same number.
    first_names: HashMap<u64, Option<RecordId>>,
}

// Bits of a record's first byte.
const SEEN: u8 = 1;
/// The same path stood in the list before.
const DUPLICATE: u8 = 2;
const HAS_DIGEST: u8 = 4;
const UNREADABLE_DIGEST: u8 = 8;
const LINK: u8 = 16;
/// The first name of an inode still is that inode's name.
const STANDS: u8 = 32;

impl List {
    /// An empty list that keeps these attributes; modification and change times it always keeps.
    pub(crate) fn new(fields: Fields) -> Self {
        Self {
            fields,
            directories: Directories::new(),
            classes: Classes::default(),
            records: Vec::new(),
            count: 0,
            epoch: None,
            index: Index::default(),
            hasher: RandomState::new(),
            first_names: HashMap::new(),
        }
    }

    /// Appends a file. `false` if it can't be held: unreadable attributes, or more than the list reaches.
    pub(crate) fn push(&mut self, entry: &AccurateEntry<'_>) -> bool {
        let Ok(LStat { stat, link_fi, .. }) = entry.lstat() else { return false };
        if self.records.len() / ALIGNMENT > u32::MAX as usize - 4096 {
            return false;
        }
        let (directory, name) = split(entry.name);
        let Some(directory) = self.directories.intern(directory) else { return false };
        let digest = digest_text::parse(entry.digest).filter(|digest| {
            let mut text = Vec::new();
            digest_text::push(&mut text, digest);
            text == entry.digest
        });
        let mut flags = if link_fi == 0 { 0 } else { LINK };
        match &digest {
            _ if entry.digest.is_empty() => {}
            Some(_) => flags |= HAS_DIGEST,
            None => flags |= UNREADABLE_DIGEST,
        }
        if stat.nlink > 1 && link_fi == 0 && stat.mode_type() != Stat::MODE_DIRECTORY {
            let id = u32::try_from(self.records.len() / ALIGNMENT).ok().map(RecordId);
            self.first_names.entry(stat.ino).and_modify(|known| *known = None).or_insert(id);
        }
        let out = &mut self.records;
        out.push(flags);
        varint::push(out, u64::from(directory));
        varint::push(out, name.len() as u64);
        out.extend_from_slice(name);
        if let (true, Some(digest)) = (flags & HAS_DIGEST != 0, &digest) {
            varint::push(out, digest.len() as u64);
            out.extend_from_slice(digest);
        }
        let epoch = *self.epoch.get_or_insert(stat.mtime);
        push_stat(out, &stat, self.fields, epoch, &mut self.classes);
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        self.count += 1;
        true
    }

    /// Makes the index. Of records with the same path, the first one counts.
    pub(crate) fn complete(&mut self) {
        self.index = Index::for_records(self.count);
        let mut next = Some(RecordId(0));
        while let Some(id) = next {
            let Some(head) = self.head(id) else { break };
            let hash = self.hasher.hash_one((head.directory, head.name));
            if self.lookup(hash, head.directory, head.name).is_some() {
                self.set_flag(id, DUPLICATE);
                self.count -= 1;
            } else {
                self.index.enter(hash, id);
            }
            next = self.after(id);
        }
    }

    /// The files in the order of the list, those that stood in it before left out.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RecordId> {
        let first = (!self.records.is_empty()).then_some(RecordId(0));
        std::iter::successors(first, |id| self.after(*id))
            .filter(|id| self.head(*id).is_some_and(|head| head.flags & DUPLICATE == 0))
    }

    /// Number of different files.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.records.len()
            + self.directories.memory()
            + self.index.memory()
            + self.classes.memory()
            + self.first_names.capacity() * size_of::<(u64, Option<RecordId>)>()
    }

    /// The record of a path; directories end with a `/`.
    pub(crate) fn find(&mut self, path: &[u8]) -> Option<RecordId> {
        let (directory, name) = split(path);
        let directory = u64::from(self.directories.find(directory)?);
        self.lookup(self.hasher.hash_one((directory, name)), directory, name)
    }

    /// What the list says about a file.
    pub(crate) fn get(&self, id: RecordId) -> Option<Known<'_>> {
        self.head(id).map(|head| self.known(&head).0)
    }

    /// Appends the path of a file.
    pub(crate) fn push_path(&self, id: RecordId, out: &mut Vec<u8>) {
        if let Some(head) = self.head(id) {
            self.directories.push_path(u32::try_from(head.directory).unwrap_or_default(), out);
            out.extend_from_slice(head.name);
        }
    }

    /// Notes that the walk came across the file.
    pub(crate) fn set_seen(&mut self, id: RecordId) {
        self.set_flag(id, SEEN);
    }

    /// Notes that the walk came across this record's file under this inode.
    pub(crate) fn note_inode(&mut self, id: RecordId, ino: u64) {
        if self.first_names.get(&ino) == Some(&Some(id)) {
            self.set_flag(id, STANDS);
        }
    }

    /// Whether the walk has come across the first name that the list has of this inode, and it still is one.
    pub(crate) fn first_name_stands(&self, ino: u64) -> bool {
        let first = self.first_names.get(&ino).copied().flatten();
        first.and_then(|id| self.head(id)).is_some_and(|head| head.flags & STANDS != 0)
    }

    fn set_flag(&mut self, id: RecordId, flag: u8) {
        if let Some(flags) = self.records.get_mut(id.position()) {
            *flags |= flag;
        }
    }

    fn head(&self, id: RecordId) -> Option<Head<'_>> {
        let (flags, mut rest) = self.records.get(id.position()..)?.split_first()?;
        let directory = varint::take(&mut rest);
        let len = usize::try_from(varint::take(&mut rest)).ok()?;
        let (name, rest) = rest.split_at_checked(len)?;
        Some(Head { flags: *flags, directory, name, rest })
    }

    /// What follows the head, and what follows that.
    fn known<'l>(&self, head: &Head<'l>) -> (Known<'l>, &'l [u8]) {
        let mut rest = head.rest;
        let mut digest =
            if head.flags & UNREADABLE_DIGEST == 0 { KnownDigest::Missing } else { KnownDigest::Unreadable };
        if head.flags & HAS_DIGEST != 0 {
            let len = usize::try_from(varint::take(&mut rest)).unwrap_or_default();
            let (bytes, behind) = rest.split_at_checked(len).unwrap_or_default();
            digest = KnownDigest::Bytes(bytes);
            rest = behind;
        }
        let stat = take_stat(&mut rest, self.fields, self.epoch.unwrap_or_default(), &self.classes);
        (Known { stat, digest, seen: head.flags & SEEN != 0, is_link: head.flags & LINK != 0 }, rest)
    }

    /// The record behind this one.
    fn after(&self, id: RecordId) -> Option<RecordId> {
        let behind = self.known(&self.head(id)?).1;
        let position = self.records.len().checked_sub(behind.len())?.next_multiple_of(ALIGNMENT);
        if position >= self.records.len() { None } else { u32::try_from(position / ALIGNMENT).ok().map(RecordId) }
    }

    fn lookup(&self, hash: u64, directory: u64, name: &[u8]) -> Option<RecordId> {
        self.index
            .candidates(hash)
            .find(|id| self.head(*id).is_some_and(|head| head.directory == directory && head.name == name))
    }
}

/// The front of a record, and what stands behind it.
struct Head<'l> {
    flags: u8,
    directory: u64,
    name: &'l [u8],
    rest: &'l [u8],
}

/// The directory with its slash, and the name in it; a directory itself has the empty name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.split_at(at)
}

fn push_stat(out: &mut Vec<u8>, stat: &Stat, fields: Fields, epoch: i64, classes: &mut Classes) {
    varint::push_signed(out, stat.mtime.wrapping_sub(epoch));
    varint::push_signed(out, stat.ctime.wrapping_sub(stat.mtime));
    if fields.has(Fields::ATIME) {
        varint::push_signed(out, stat.atime.wrapping_sub(stat.mtime));
    }
    if fields.has(Fields::SIZE) {
        varint::push_signed(out, stat.size);
    }
    if fields.has(Fields::INO) {
        varint::push(out, stat.ino);
    }
    if fields.has(Fields::CLASS) {
        let mut class = Class { mode: stat.mode, nlink: stat.nlink, uid: stat.uid, gid: stat.gid, ..Class::default() };
        if fields == Fields::ALL {
            class = Class { dev: stat.dev, rdev: stat.rdev, blksize: stat.blksize, ..class };
        }
        varint::push(out, classes.number(class));
    }
    if fields == Fields::ALL {
        varint::push_signed(out, stat.blocks.wrapping_sub(usual_blocks(stat.size)));
    }
}

fn take_stat(rest: &mut &[u8], fields: Fields, epoch: i64, classes: &Classes) -> Stat {
    let mtime = varint::take_signed(rest).wrapping_add(epoch);
    let mut stat = Stat { mtime, ctime: varint::take_signed(rest).wrapping_add(mtime), ..Stat::default() };
    if fields.has(Fields::ATIME) {
        stat.atime = varint::take_signed(rest).wrapping_add(mtime);
    }
    if fields.has(Fields::SIZE) {
        stat.size = varint::take_signed(rest);
    }
    if fields.has(Fields::INO) {
        stat.ino = varint::take(rest);
    }
    if fields.has(Fields::CLASS) {
        let Class { dev, mode, nlink, uid, gid, rdev, blksize } = classes.get(varint::take(rest));
        stat = Stat { dev, mode, nlink, uid, gid, rdev, blksize, ..stat };
    }
    if fields == Fields::ALL {
        stat.blocks = varint::take_signed(rest).wrapping_add(usual_blocks(stat.size));
    }
    stat
}

/// Blocks of 512 bytes of an ordinary file on an ordinary file system.
fn usual_blocks(size: i64) -> i64 {
    size.saturating_add(4095) / 4096 * 8
}

/// What many files have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Class {
    dev: u64,
    mode: u32,
    nlink: u64,
    uid: u32,
    gid: u32,
    rdev: u64,
    blksize: i64,
}

/// Each class once.
#[derive(Default)]
struct Classes {
    numbers: HashMap<Class, u32>,
    classes: Vec<Class>,
}

impl Classes {
    fn number(&mut self, class: Class) -> u64 {
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(class).or_insert(next);
        if number == next {
            self.classes.push(class);
        }
        u64::from(number)
    }

    fn get(&self, number: u64) -> Class {
        usize::try_from(number).ok().and_then(|number| self.classes.get(number)).copied().unwrap_or_default()
    }

    fn memory(&self) -> usize {
        self.classes.len() * (2 * size_of::<Class>() + 8)
    }
}

/// Open addressing over the records. One byte of the hash beside each place tells most others apart without looking at
/// their records.
#[derive(Default)]
struct Index {
    tags: Vec<u8>,
    places: Vec<u32>,
}

impl Index {
    fn for_records(count: usize) -> Self {
        let (places, records) = PLACES_PER_RECORD;
        // At least one place stays free, which ends a search.
        let len = count / records * places + places;
        Self { tags: vec![0; len], places: vec![0; len] }
    }

    fn memory(&self) -> usize {
        self.places.len() * 5
    }

    fn enter(&mut self, hash: u64, id: RecordId) {
        let mut place = self.start(hash);
        while self.tags.get(place).is_some_and(|tag| *tag != 0) {
            place = self.next(place);
        }
        if let (Some(tag), Some(slot)) = (self.tags.get_mut(place), self.places.get_mut(place)) {
            *tag = tag_of(hash);
            *slot = id.0;
        }
    }

    /// The records whose hash may be this one.
    fn candidates(&self, hash: u64) -> impl Iterator<Item = RecordId> {
        let tag = tag_of(hash);
        let first = (!self.tags.is_empty()).then(|| self.start(hash));
        std::iter::successors(first, |place| Some(self.next(*place)))
            .map_while(|place| self.tags.get(place).filter(|tag| **tag != 0).map(|tag| (place, *tag)))
            .filter(move |(_, found)| *found == tag)
            .filter_map(|(place, _)| self.places.get(place).copied().map(RecordId))
    }

    /// Spreads the hash over the places, whose number is no power of two.
    fn start(&self, hash: u64) -> usize {
        usize::try_from((u128::from(hash) * self.tags.len() as u128) >> 64).unwrap_or_default()
    }

    fn next(&self, place: usize) -> usize {
        if place + 1 < self.tags.len() { place + 1 } else { 0 }
    }
}

/// A byte of the hash that is not 0, which marks a free place. Not from the bits that choose the place.
fn tag_of(hash: u64) -> u8 {
    (hash & 0xFF).max(1) as u8
}

#[cfg(test)]
mod tests;
