//! The accurate list: the catalog's files. A job sends what differs from it, and names what is gone
//! (reference 04 §13).

mod attributes;
mod criteria;
mod directories;
mod index;
mod list;
mod order;
mod records;
mod unknown;
mod varint;

use fd_fileset::{EffectiveOptions, FileSet, Flags, Include, strip_path};
use fd_os::lock::Mutex;
use fd_plugins::AccurateAttributes;
use fd_records::{AccurateEntry, FileType, Stat, digest_text};
use fd_walk::{Candidate, Compared, Comparison, WalkSettings};

use attributes::Fields;
use criteria::Times;
use list::List;
use order::{Place, TableOrder};
use records::RecordId;
use unknown::Unknown;

use crate::manners::memory::ListMemory;

/// The kind of job that the list is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccurateLevel {
    /// A Full job on base jobs, else an Incremental or Differential one.
    pub full: bool,
    /// The job continues an incomplete one; the list has what that one has sent.
    pub rerun: bool,
}

/// The list. It is filled message by message, then given to [`crate::BackupPlan`].
pub struct AccurateList {
    level: AccurateLevel,
    announced: u64,
    state: Mutex<State>,
    /// `None`: as much as it needs.
    memory: Option<ListMemory>,
}

/// The catalog's record of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedFile {
    /// Size in bytes.
    pub size: i64,
    /// Bytes of its digest; `None` if there is none, empty if the catalog's text is no digest.
    pub digest: Option<Vec<u8>>,
}

struct State {
    list: List,
    /// Bytes of the files that need not be sent because a base job has them.
    space_saved: u64,
    unknown: Unknown,
}

impl State {
    fn new(fields: Fields) -> Self {
        Self { list: List::new(fields), space_saved: 0, unknown: Unknown::default() }
    }

    /// The list's record of an entry.
    fn find(&mut self, candidate: &Candidate<'_>) -> Option<RecordId> {
        self.list.find(&candidate.key()).or_else(|| {
            // A hard link has its whole name if its first name can't be stripped.
            let may_be_link = candidate.stat.nlink > 1 && candidate.stat.mode_type() != Stat::MODE_DIRECTORY;
            let may_be_whole = may_be_link && candidate.options.strip_path > 0;
            let id = if may_be_whole { self.list.find(candidate.path) } else { None };
            id.filter(|id| self.list.get(*id).is_some_and(|known| known.is_link))
        })
    }
}

impl std::fmt::Debug for AccurateList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccurateList")
            .field("level", &self.level)
            .field("announced", &self.announced)
            .field("files", &self.state.lock().list.len())
            .finish_non_exhaustive()
    }
}

impl AccurateList {
    /// An empty list. `announced` is the number of the Director's `accurate files=` command, an
    /// estimate. The FileSet says which attributes will be compared.
    pub fn new(level: AccurateLevel, announced: u64, fileset: &FileSet) -> Self {
        let has_plugins = |include: &Include| !include.plugins().is_empty() || include.top_level().plugin.is_some();
        let fields = if level.full && !level.rerun || fileset.includes().iter().any(has_plugins) {
            // They are sent again, or given to plugins that ask for them.
            Fields::ALL
        } else {
            fileset.includes().iter().fold(Fields::default(), |all, include| {
                all.union(criteria::fields(letters_of(level, include.top_level())))
            })
        };
        Self { level, announced, state: Mutex::new(State::new(fields)), memory: None }
    }

    /// An empty list for a Verify job, which compares sizes and digests only.
    pub fn for_verify(announced: u64) -> Self {
        let level = AccurateLevel { full: false, rerun: false };
        Self { level, announced, state: Mutex::new(State::new(Fields::SIZE)), memory: None }
    }

    /// The list takes its memory from there.
    #[must_use]
    pub fn within(self, memory: ListMemory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Adds a message of the Director. A message without a file name, or with attributes that can't
    /// be decoded, is ignored: the file counts as new then. `false`: there is no memory for more.
    pub fn add(&mut self, message: &[u8]) -> bool {
        let Some(entry) = AccurateEntry::parse(message) else { return true };
        let list = &mut self.state.get_mut().list;
        let _held = list.push(&entry);
        let memory_of_order = list.len() * size_of::<(Place, RecordId)>();
        self.memory.as_mut().is_none_or(|memory| memory.lets_have(list.memory() + memory_of_order))
    }

    /// Number of files that were added.
    pub fn count(&self) -> usize {
        self.state.lock().list.len()
    }

    /// To be called after the Director's last message.
    pub fn complete(&mut self) {
        self.state.get_mut().list.complete();
    }

    /// The list's record of a file on a volume, which counts as seen from now on. The name of a
    /// directory ends with a slash.
    pub fn find(&self, name: &[u8]) -> Option<ListedFile> {
        let mut state = self.state.lock();
        let id = state.list.find(name)?;
        let known = state.list.get(id)?;
        let file = ListedFile { size: known.stat.size, digest: known.digest.map(<[u8]>::to_vec) };
        state.list.set_seen(id);
        Some(file)
    }

    /// Passes the names of the files that were not seen to `each`, in the stock daemon's order.
    pub fn unseen(&self, mut each: impl FnMut(&[u8])) {
        let named: Result<(), std::convert::Infallible> = self.tail(
            |_| Ok(false),
            |record| {
                each(record.path);
                Ok(())
            },
        );
        let Ok(()) = named;
    }

    /// This path, or what lies below it, could not be examined: it does not count as gone, neither
    /// whole nor without its first `stripped` components.
    pub(crate) fn not_examined(&self, path: &[u8], stripped: u32) {
        self.state.lock().unknown.add(path, stripped);
    }

    /// It is not known what is gone: nothing counts as deleted. `true` if that changes the job.
    pub(crate) fn nothing_is_gone(&self) -> bool {
        self.state.lock().unknown.add_all() && !self.level.full
    }

    /// Directories in which so much could not be examined that nothing counts as gone, in a job
    /// that tells it: the first of them, and how many there are beside it.
    pub(crate) fn unknown_directories(&self) -> Option<(Vec<u8>, usize)> {
        let state = self.state.lock();
        let mut folded = state.unknown.folded().filter(|_| !self.level.full);
        folded.next().map(<[u8]>::to_vec).map(|first| (first, folded.count()))
    }

    /// A file of this name counts as seen, and one that has it without its first `stripped`
    /// components. `false` if the list has neither.
    pub(crate) fn mark_seen(&self, name: &[u8], stripped: u32) -> bool {
        let mut state = self.state.lock();
        let mut mark = |name: &[u8]| {
            let found = state.list.find(name);
            if let Some(id) = found {
                state.list.set_seen(id);
            }
            found.is_some()
        };
        let is_known = mark(name);
        strip_path(name, stripped).is_some_and(|name| mark(&name)) || is_known
    }

    /// What the list has about the file of this name.
    pub(crate) fn attributes(&self, name: &[u8]) -> Option<AccurateAttributes> {
        let mut state = self.state.lock();
        let id = state.list.find(name)?;
        let known = state.list.get(id)?;
        Some(AccurateAttributes {
            stat: known.stat,
            checksum: known.digest.map(digest_text::of),
            delta_seq: known.delta_seq.into(),
            seen: known.seen,
        })
    }

    /// See [`fd_walk::WalkHost::compares_by_list`]. A Full on a base looks at all.
    pub(crate) fn compared(&self, fileset: &FileSet) -> Option<Compared> {
        let letters = || fileset.includes().iter().map(|include| letters_of(self.level, include.top_level()));
        let has_more = self.level.full || self.count() == 0 || !letters().all(criteria::asks_attributes_only);
        let fields = letters().map(criteria::fields).fold(Fields::default(), Fields::union);
        (!has_more).then(|| Compared {
            inode: fields.has(Fields::INO),
            size: fields.has(Fields::SIZE),
            class: fields.has(Fields::CLASS),
        })
    }

    /// See [`fd_walk::WalkHost::listed`]. With these attributes, [`Self::compare`] finds the entry
    /// unchanged.
    pub(crate) fn listed(&self, candidate: &Candidate<'_>) -> Option<Stat> {
        let mut state = self.state.lock();
        let id = state.find(candidate)?;
        let known = state.list.get(id)?.stat;
        // Without a change time, it was recorded without its data.
        let is_whole = known.ctime != 0 && known.mode_type() != Stat::MODE_DIRECTORY;
        (is_whole && !state.list.dangles(id, candidate.stat.ino)).then_some(known)
    }

    /// Whether an entry that is as in the list has a record: what the Options leave out of a Full
    /// on a base has none that a restore would bring, or a hard link could lead to.
    const fn keeps_record_of(&self, candidate: &Candidate<'_>) -> bool {
        candidate.accepted || !self.level.full
    }

    /// Compares an entry of the walk with the list (reference 04 §13.4).
    pub(crate) fn compare(&self, candidate: &Candidate<'_>, walk: &WalkSettings) -> Comparison {
        let mut state = self.state.lock();
        let Some(id) = state.find(candidate) else { return Comparison::Changed { token: None } };
        // Without the name that it links to, a hard link restores nothing, and if that name is
        // another file now, the wrong data. Its own times need not show it: a directory on the way
        // to that name may have been renamed, or left out.
        let dangles = state.list.dangles(id, candidate.stat.ino);
        let Some(known) = state.list.get(id) else { return Comparison::Changed { token: None } };
        let options = candidate.options;
        let letters = letters_of(self.level, options);
        let times =
            Times { incremental: walk.incremental, since: walk.since, mtime_only: options.has(Flags::MTIME_ONLY) };
        let wants_checksum = criteria::wants_checksum(letters);
        let has_digest = candidate.stat.mode_type() == Stat::MODE_REGULAR && options.digest.is_some();
        // New content shows in the change time, too, where there is no digest to compare: where a
        // link leads, which device it is.
        let has_content = ![Stat::MODE_DIRECTORY, Stat::MODE_FIFO].contains(&candidate.stat.mode_type());
        let unseen = wants_checksum && has_content && !has_digest && candidate.stat.ctime != known.stat.ctime;
        // So is a file recorded that could not be opened (see `Worker::work_entry`).
        let has_no_data = known.stat.ctime == 0 && candidate.stat.ctime != 0;
        let differs =
            dangles || unseen || has_no_data || criteria::differs(letters, &known.stat, candidate.stat, times);
        let verifiable = candidate.accepted && wants_checksum && has_digest;
        let carries_data = candidate.stat.size > 0 && !known.is_link;
        // With `o`, equal attributes stand for equal data. They don't if the change time is another
        // and no letter compares that: the data is compared then, as without `o`.
        let confirms = criteria::wants_confirmation(letters);
        let is_certain = confirms && candidate.stat.ctime == known.stat.ctime;
        if !has_no_data && self.keeps_record_of(candidate) {
            state.list.note_inode(id, candidate.stat.ino);
        }
        let on_equal_data = match (differs, verifiable, confirms) {
            (false, true, _) if !is_certain => OnEqualData::Skip,
            // A record of attributes only adds to the record of an earlier job. Where there is no
            // data, and in a Full job on a base, the Director restores it without that one. A
            // resumed job has sent part of it itself.
            (true, true, true) if carries_data && !self.level.full && !self.level.rerun => OnEqualData::Update,
            (false, _, _) => {
                self.leave_unchanged(&mut state, id, candidate);
                return Comparison::Unchanged;
            }
            (true, _, _) => OnEqualData::Save,
        };
        if !self.level.full {
            state.list.set_seen(id);
        }
        Comparison::Changed { token: Some(Token { id, on_equal_data }.encode()) }
    }

    /// Whether a restore of the job can take an entry from an earlier job: always, but in a Full on
    /// a base only what the base has.
    pub(crate) fn has_earlier(&self, token: Option<u64>) -> bool {
        !self.level.full || token.is_some()
    }

    /// The same of a plugin's file, whose record has this name.
    pub(crate) fn has_earlier_of(&self, name: &[u8]) -> bool {
        !self.level.full || self.attributes(name).is_some()
    }

    /// The copy of an earlier job stays the entry's. In a Full on a base it is named.
    pub(crate) fn leave_to_earlier(&self, token: Option<u64>) {
        if let Some(token) = token {
            self.state.lock().list.set_seen(Token::decode(token).id);
        }
    }

    /// To be called when a worker has found the data of a file unchanged.
    pub(crate) fn data_unchanged(&self, token: Token, stat: &Stat) {
        self.note_unchanged(&mut self.state.lock(), token.id, stat);
    }

    fn leave_unchanged(&self, state: &mut State, id: RecordId, candidate: &Candidate<'_>) {
        if self.keeps_record_of(candidate) {
            self.note_unchanged(state, id, candidate.stat);
        }
    }

    fn note_unchanged(&self, state: &mut State, id: RecordId, stat: &Stat) {
        state.list.set_seen(id);
        if self.level.full {
            state.space_saved = state.space_saved.saturating_add(u64::try_from(stat.size).unwrap_or_default());
        }
    }
}

/// An entry's position in the list, for the workers; [`fd_walk::Entry::token`] holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    id: RecordId,
    pub(crate) on_equal_data: OnEqualData,
}

/// What is done with an entry whose data has the digest of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnEqualData {
    /// It is saved without a comparison.
    Save = 0,
    /// It is not saved.
    Skip = 1,
    /// Its attributes are sent without data (reference 04 §13.5).
    Update = 2,
}

impl Token {
    fn encode(self) -> u64 {
        u64::from(self.id.0) | (self.on_equal_data as u64) << 32
    }

    /// The token of an entry that is in the list.
    pub(crate) fn decode(token: u64) -> Self {
        let on_equal_data = match token >> 32 {
            1 => OnEqualData::Skip,
            2 => OnEqualData::Update,
            _ => OnEqualData::Save,
        };
        Self { id: RecordId((token & 0xFFFF_FFFF) as u32), on_equal_data }
    }

    /// Whether only the data decides if there will be a record.
    pub(crate) fn needs_data(self) -> bool {
        self.on_equal_data != OnEqualData::Save
    }
}

impl AccurateList {
    /// The catalog's digest of a file, if it has one; empty if its text is no digest.
    pub(crate) fn digest(&self, token: Token) -> Option<Vec<u8>> {
        self.state.lock().list.get(token.id)?.digest.map(<[u8]>::to_vec)
    }

    /// Whether a missing digest in the list is worth a warning.
    pub(crate) fn expects_digests(&self) -> bool {
        !self.level.rerun
    }

    /// Passes each record after the last file to `each`, in the stock daemon's order: files that
    /// are gone (reference 04 §13.6), or files that a base job has (§13.7). What `exists` says of a
    /// file that would count as gone decides.
    pub(crate) fn tail<E>(
        &self,
        mut exists: impl FnMut(&[u8]) -> Result<bool, E>,
        mut each: impl FnMut(TailRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (wanted, file_type) = match self.level {
            AccurateLevel { full: false, .. } => (false, FileType::Deleted),
            AccurateLevel { full: true, rerun: false } => (true, FileType::Base),
            AccurateLevel { full: true, rerun: true } => return Ok(()),
        };
        let mut path = Vec::new();
        for id in self.in_order(wanted) {
            // The list is free while others are asked: a plugin may ask it, and mark files.
            let Some(stat) = self.look(id, wanted, &mut path) else { continue };
            if file_type == FileType::Deleted && (self.state.lock().unknown.has(&path) || exists(&path)?) {
                continue;
            }
            let stat = match file_type {
                FileType::Deleted => Stat { mtime: stat.mtime, ctime: stat.ctime, ..Stat::default() },
                _ => stat,
            };
            each(TailRecord { file_type, path: &path, stat })?;
        }
        Ok(())
    }

    /// The files that were seen, or those that were not, in the stock daemon's order.
    fn in_order(&self, seen: bool) -> Vec<RecordId> {
        let state = self.state.lock();
        let list = &state.list;
        let order = TableOrder::new(self.announced, list.len() as u64);
        let mut path = Vec::new();
        let mut chosen: Vec<_> = (0..)
            .zip(list.iter())
            .filter(|(_, id)| list.get(*id).is_some_and(|known| known.seen == seen))
            .map(|(sequence, id)| {
                path.clear();
                list.push_path(id, &mut path);
                (order.place(&path, sequence), id)
            })
            .collect();
        chosen.sort_unstable_by(|(one, _), (other, _)| order.compare(*one, *other));
        chosen.into_iter().map(|(_, id)| id).collect()
    }

    /// Attributes and path of a file, if it still counts as seen or not.
    fn look(&self, id: RecordId, seen: bool, path: &mut Vec<u8>) -> Option<Stat> {
        let state = self.state.lock();
        let known = state.list.get(id).filter(|known| known.seen == seen)?;
        path.clear();
        state.list.push_path(id, path);
        Some(known.stat)
    }

    /// Bytes that base jobs save, in a job on base jobs.
    pub(crate) fn space_saved(&self) -> Option<u64> {
        self.level.full.then(|| self.state.lock().space_saved)
    }
}

/// A record after the last file of an accurate job: attributes only.
pub(crate) struct TailRecord<'l> {
    pub(crate) file_type: FileType,
    pub(crate) path: &'l [u8],
    pub(crate) stat: Stat,
}

/// The letters that apply to an entry (reference 04 §13.3).
fn letters_of(level: AccurateLevel, options: &EffectiveOptions) -> &[u8] {
    const WITHOUT_CHANGE_TIME: &[u8] = b"ms";
    match (&*options.base_job, &*options.accurate) {
        (base_job, _) if level.full && !level.rerun => base_job,
        // The usual letters compare the change time, which the FileSet says does not count.
        (_, EffectiveOptions::ACCURATE) if options.has(Flags::MTIME_ONLY) => WITHOUT_CHANGE_TIME,
        (_, accurate) => accurate,
    }
}
