//! The files that the catalog has, in as little memory as possible.
//!
//! A record holds the number of a directory, the name in it, and those attributes that the job can
//! compare, as short numbers. Records stand one behind the other in the order of the list; an index
//! of five bytes a place finds them by name. Measured with default options: about 40 bytes a file,
//! where the stock daemon needs 180 to 260.

use std::hash::{BuildHasher, RandomState};

use fd_records::{AccurateEntry, LStat, Stat, digest_text};
use fd_walk::split_path;
use hashbrown::HashMap;

use super::attributes::{Classes, Fields};
use super::directories::Directories;
use super::index::Index;
use super::records::{RecordId, Records};
use super::varint;

/// The list's record of a file. Attributes that are not in its [`Fields`] are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known<'l> {
    pub(super) stat: Stat,
    /// The catalog's digest of it, if it has one; empty if its text is no digest.
    pub(super) digest: Option<&'l [u8]>,
    pub(super) seen: bool,
    /// Its record is a hard link to another file of the list.
    pub(super) is_link: bool,
    /// Number of its delta; only plugins have any.
    pub(super) delta_seq: u16,
}

/// See the module.
pub(super) struct List {
    fields: Fields,
    directories: Directories,
    classes: Classes,
    records: Records,
    /// The record that is made.
    record: Vec<u8>,
    count: usize,
    /// Modification times are stored relative to this one.
    epoch: Option<i64>,
    index: Index,
    hasher: RandomState,
    /// By device number, inode number and change time of the records. Empty when the list is
    /// complete.
    inodes: HashMap<(u64, u64, i64), Inode, RandomState>,
    first_names: Vec<FirstName>,
}

/// A file with several names: one or more that were saved as files, and those that link to one of
/// them. Positions in `first_names`.
#[derive(Default)]
struct Inode {
    /// The last first name.
    last: Option<u32>,
    /// What stands for all of them, where a link has none before it.
    all: Option<u32>,
}

/// A name of an inode that was saved as a file.
struct FirstName {
    ino: u64,
    /// The walk has found it with this inode number.
    stands: bool,
    /// Its position in `first_names`, or that of an earlier record of the same name.
    same_as: u32,
    /// The inode's first name before it, but for some that stand.
    before: Option<u32>,
}

// Bits of a record's first byte.
const SEEN: u8 = 1;
/// The list has an earlier record of the same path.
const DUPLICATE: u8 = 2;
const HAS_DIGEST: u8 = 4;
const UNREADABLE_DIGEST: u8 = 8;
const LINK: u8 = 16;
const HAS_DELTA: u8 = 64;
/// Other names may link to this one.
const FIRST_NAME: u8 = 128;

impl List {
    /// An empty list that keeps these attributes, and always modification and change times.
    pub(super) fn new(fields: Fields) -> Self {
        Self {
            fields,
            directories: Directories::new(),
            classes: Classes::default(),
            records: Records::default(),
            record: Vec::new(),
            count: 0,
            epoch: None,
            index: Index::default(),
            hasher: RandomState::new(),
            inodes: HashMap::default(),
            first_names: Vec::new(),
        }
    }

    /// Appends a file. `false` if its attributes can't be decoded, or if the list is full.
    pub(super) fn push(&mut self, entry: &AccurateEntry<'_>) -> bool {
        let Some(LStat { stat, link_fi, .. }) = entry.lstat() else { return false };
        let (directory, name) = split_path(entry.name);
        let Some(directory) = self.directories.intern(directory) else { return false };
        let digest = digest_text::parse(entry.digest).filter(|digest| digest_text::of(digest) == entry.digest);
        let has_names = stat.nlink > 1 && stat.mode_type() != Stat::MODE_DIRECTORY;
        let mut flags = match link_fi {
            0 if has_names => FIRST_NAME,
            0 => 0,
            _ => LINK,
        };
        match &digest {
            _ if entry.digest.is_empty() => {}
            Some(_) => flags |= HAS_DIGEST,
            None => flags |= UNREADABLE_DIGEST,
        }
        if entry.delta_seq != 0 {
            flags |= HAS_DELTA;
        }
        let first_name = (flags & (LINK | FIRST_NAME) != 0).then(|| self.note_name(&stat, flags & FIRST_NAME != 0));
        let out = &mut self.record;
        out.clear();
        out.push(flags);
        varint::push(out, u64::from(directory));
        varint::push(out, name.len() as u64);
        out.extend_from_slice(name);
        if let Some(number) = first_name {
            varint::push(out, u64::from(number));
        }
        if let (true, Some(digest)) = (flags & HAS_DIGEST != 0, &digest) {
            varint::push(out, digest.len() as u64);
            out.extend_from_slice(digest);
        }
        if entry.delta_seq != 0 {
            varint::push(out, u64::from(entry.delta_seq));
        }
        let epoch = *self.epoch.get_or_insert(stat.mtime);
        self.classes.push_stat(out, &stat, self.fields, epoch);
        if self.records.push(out).is_none() {
            return false;
        }
        self.count += 1;
        true
    }

    /// Notes one of several names of an inode, and returns the position in `first_names` of the
    /// inode's last one so far. Two file systems may have the same inode number, and in two jobs of
    /// the list the same device number. The names of an inode that one job has saved have the same
    /// change time.
    ///
    /// The files of a job come in the order in which it has sent them (reference 04 §13.1). A link
    /// leads to a first name before it: which one, the list doesn't say, as there are names that
    /// were saved as files and that no link leads to. Or a later job has saved that name again, and
    /// it comes behind the link.
    fn note_name(&mut self, stat: &Stat, is_first: bool) -> u32 {
        let number = u32::try_from(self.first_names.len()).unwrap_or(u32::MAX);
        let inode = self.inodes.entry((stat.dev, stat.ino, stat.ctime)).or_default();
        let next = FirstName { ino: stat.ino, stands: false, same_as: number, before: None };
        if !is_first {
            return inode.last.or(inode.all).unwrap_or_else(|| {
                self.first_names.push(next);
                *inode.all.insert(number)
            });
        }
        self.first_names.push(FirstName { before: inode.last, ..next });
        if let Some(all) = inode.all.and_then(|all| self.first_names.get_mut(all as usize)) {
            (all.stands, all.before) = (true, Some(number));
        }
        *inode.last.insert(number)
    }

    /// Builds the index. Of records with the same path, the first one counts.
    pub(super) fn complete(&mut self) {
        self.index = Index::for_records(self.count);
        self.inodes = HashMap::default();
        let mut next = self.records.first();
        while let Some(id) = next {
            let Some(head) = self.head(id) else { break };
            let hash = self.hasher.hash_one((head.directory, head.name));
            if let Some(earlier) = self.lookup(hash, head.directory, head.name) {
                self.join(id, earlier);
                self.set_flag(id, DUPLICATE);
                self.count -= 1;
            } else {
                self.index.enter(hash, id.0);
            }
            next = self.after(id);
        }
    }

    /// The files in the order of the list, without duplicates.
    pub(super) fn iter(&self) -> impl Iterator<Item = RecordId> {
        std::iter::successors(self.records.first(), |id| self.after(*id))
            .filter(|id| self.head(*id).is_some_and(|head| head.flags & DUPLICATE == 0))
    }

    /// Number of different files.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of memory in use, with the index that it will have.
    pub(super) fn memory(&self) -> usize {
        self.records.memory()
            + self.directories.memory()
            + Index::memory(self.count)
            + self.classes.memory()
            + self.inodes.allocation_size()
            + self.first_names.len() * size_of::<FirstName>()
    }

    /// The record of a path; directories end with a `/`.
    pub(super) fn find(&mut self, path: &[u8]) -> Option<RecordId> {
        let (directory, name) = split_path(path);
        let directory = u64::from(self.directories.find(directory)?);
        self.lookup(self.hasher.hash_one((directory, name)), directory, name)
    }

    /// The record of a file.
    pub(super) fn get(&self, id: RecordId) -> Option<Known<'_>> {
        self.head(id).map(|head| self.known(&head).0)
    }

    /// Appends the path of a file.
    pub(super) fn push_path(&self, id: RecordId, out: &mut Vec<u8>) {
        if let Some(head) = self.head(id) {
            self.directories.push_path(u32::try_from(head.directory).unwrap_or_default(), out);
            out.extend_from_slice(head.name);
        }
    }

    /// The walk has found the file.
    pub(super) fn set_seen(&mut self, id: RecordId) {
        self.set_flag(id, SEEN);
    }

    /// Two records of one path. If they are of the same first name of an inode, links to the later
    /// one lead to the earlier one.
    fn join(&mut self, later: RecordId, earlier: RecordId) {
        let first_name = |id| {
            let head = self.head(id).filter(|head| head.flags & FIRST_NAME != 0)?;
            let number = head.first_name?;
            Some((number, self.first_names.get(number)?.ino, self.known(&head).0.stat.ctime))
        };
        let (Some(later), Some(earlier)) = (first_name(later), first_name(earlier)) else { return };
        if (later.1, later.2) == (earlier.1, earlier.2)
            && let Some(first_name) = self.first_names.get_mut(later.0)
        {
            first_name.same_as = u32::try_from(earlier.0).unwrap_or(u32::MAX);
        }
    }

    /// The walk has found the file of this record with this inode.
    pub(super) fn note_inode(&mut self, id: RecordId, ino: u64) {
        let Some(Head { flags, first_name: Some(number), .. }) = self.head(id) else { return };
        if let Some(first_name) = self.first_names.get_mut(number).filter(|first_name| first_name.ino == ino) {
            first_name.stands |= flags & FIRST_NAME != 0;
        }
    }

    /// Whether the record is a hard link that may lead to a first name that the walk has not found,
    /// or not with this inode.
    pub(super) fn dangles(&mut self, id: RecordId, ino: u64) -> bool {
        let Some(head) = self.head(id).filter(|head| head.flags & LINK != 0) else { return false };
        let Some(last) = head.first_name else { return true };
        let is_other = self.first_names.get(last).is_none_or(|first_name| first_name.ino != ino);
        is_other || self.has_gone_before(last)
    }

    /// Whether this first name, or one before it, does not stand.
    fn has_gone_before(&mut self, last: usize) -> bool {
        let mut next = u32::try_from(last).ok();
        while let Some(first_name) = next.and_then(|number| self.first_names.get(number as usize)) {
            if !self.first_names.get(first_name.same_as as usize).is_some_and(|first_name| first_name.stands) {
                break;
            }
            next = first_name.before;
        }
        // The next link need not look at those that stand.
        if next.is_none_or(|number| number as usize != last)
            && let Some(first_name) = self.first_names.get_mut(last)
        {
            first_name.before = next;
        }
        next.is_some()
    }

    fn set_flag(&mut self, id: RecordId, flag: u8) {
        if let Some(flags) = self.records.first_byte(id) {
            *flags |= flag;
        }
    }

    fn head(&self, id: RecordId) -> Option<Head<'_>> {
        let (flags, mut rest) = self.records.from(id)?.split_first()?;
        let directory = varint::take(&mut rest);
        let len = usize::try_from(varint::take(&mut rest)).ok()?;
        let (name, mut rest) = rest.split_at_checked(len)?;
        let has_names = flags & (LINK | FIRST_NAME) != 0;
        let first_name = has_names.then(|| usize::try_from(varint::take(&mut rest)).unwrap_or(usize::MAX));
        Some(Head { flags: *flags, directory, name, first_name, rest })
    }

    /// The record behind the head, and the rest of the bytes.
    fn known<'l>(&self, head: &Head<'l>) -> (Known<'l>, &'l [u8]) {
        let mut rest = head.rest;
        let mut digest: Option<&[u8]> = (head.flags & UNREADABLE_DIGEST != 0).then_some(&[]);
        if head.flags & HAS_DIGEST != 0 {
            let len = usize::try_from(varint::take(&mut rest)).unwrap_or_default();
            let (bytes, behind) = rest.split_at_checked(len).unwrap_or_default();
            digest = Some(bytes);
            rest = behind;
        }
        let delta_seq = if head.flags & HAS_DELTA == 0 { 0 } else { varint::take(&mut rest) };
        let stat = self.classes.take_stat(&mut rest, self.fields, self.epoch.unwrap_or_default());
        let known = Known {
            stat,
            digest,
            seen: head.flags & SEEN != 0,
            is_link: head.flags & LINK != 0,
            delta_seq: u16::try_from(delta_seq).unwrap_or(u16::MAX),
        };
        (known, rest)
    }

    /// The next record.
    fn after(&self, id: RecordId) -> Option<RecordId> {
        let behind = self.known(&self.head(id)?).1;
        self.records.after(id, behind.len())
    }

    fn lookup(&self, hash: u64, directory: u64, name: &[u8]) -> Option<RecordId> {
        self.index
            .candidates(hash)
            .map(RecordId)
            .find(|id| self.head(*id).is_some_and(|head| head.directory == directory && head.name == name))
    }
}

/// The beginning of a record, and the bytes behind it.
struct Head<'l> {
    flags: u8,
    directory: u64,
    name: &'l [u8],
    /// If the file has several names: the position in the list's `first_names` of the one that it
    /// is, or of the last one before it.
    first_name: Option<usize>,
    rest: &'l [u8],
}

#[cfg(test)]
mod tests;
