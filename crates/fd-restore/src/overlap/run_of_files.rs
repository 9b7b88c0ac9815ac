//! A run of plain new files, all of whose records have come, with the records of directories that
//! are left in between.

use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use fd_messages::CancelToken;
use fd_records::{AttributesRecord, FileType, StreamClass};
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::task::{Answer, Task};
use super::writers::Writers;
use crate::file::RestoreItem;
use crate::output_file::{Identity, OutputFile};
use crate::plan::RestorePlan;
use crate::stream::{Lookahead, Unpacker};
use crate::tree::{Base, Directories, MakeDirectory, OutputPath};

/// The largest file that is made in a run, by its attributes and by its data.
const MOST_DATA: usize = 256 << 10;

/// The most bytes of all records of such a file.
const MOST_IN_RECORDS: usize = 1 << 20;

/// What a record takes beside its bytes, about.
const RECORD: usize = 64;

/// A run ends with the file that brings it above so many bytes, in records and unpacked.
const MOST_BYTES: usize = 16 << 20;

/// How many files of a run stay open, because they have metadata.
const MOST_OPEN: usize = 64;

/// How many directories a run goes into.
const MOST_DIRECTORIES: usize = 64;

/// How long each record of the first file may take.
const PATIENCE: Duration = Duration::from_millis(20);

/// The same for later ones.
const LITTLE_PATIENCE: Duration = Duration::from_millis(2);

/// A file of the run, or the record of a directory that it has left.
struct Planned {
    /// How many records it has.
    records: usize,
    /// `None`: a directory.
    file: Option<PlannedFile>,
}

struct PlannedFile {
    item: RestoreItem,
    directory: Arc<OwnedFd>,
    answer: Answer,
}

/// An object that it is the turn of.
pub(crate) struct Turn {
    /// How many records it has.
    pub(crate) records: usize,
    /// What its attribute record means, unless it is a directory.
    pub(crate) item: Option<RestoreItem>,
    /// The file, if there is a new one.
    pub(crate) file: Option<OutputFile>,
}

/// The run.
pub(crate) struct RunOfFiles {
    objects: VecDeque<Planned>,
    files: usize,
    made: usize,
}

impl RunOfFiles {
    /// Makes the run that begins with the next record, of at most `most` files and `depth` at a
    /// time; `None` if there is none. Directories are made, if need be, as for their first file.
    /// `failed` is one that could not be made.
    pub(crate) fn make(
        records: &mut Lookahead<'_>,
        plan: &RestorePlan,
        directories: &mut Directories,
        failed: Option<&OutputPath>,
        (writers, most, depth): (&mut Writers, usize, usize),
        cancel: &CancelToken,
    ) -> Option<Self> {
        let mut planner = Planner::new(directories);
        let mut unpacker = Unpacker::new();
        let mut at = 0;
        while planner.has_room(most) {
            let file = small_file(records, at, plan, &mut unpacker);
            let next = match file {
                Some(file) if parent_of(&file.item).as_ref() != failed => planner.add_file(file),
                Some(_) => None,
                None => left_directory(records, at, plan).and_then(|directory| planner.add_directory(directory)),
            };
            let Some(count) = next else { break };
            at += count;
        }
        let Planner { mut objects, tasks, .. } = planner;
        let files = tasks.len();
        if files == 0 {
            return None;
        }
        let mut answers = writers.carry_out(tasks, depth, cancel).into_iter();
        let mut made = 0;
        for file in objects.iter_mut().filter_map(|object| object.file.as_mut()) {
            file.answer = answers.next().unwrap_or(Answer::NotBegun);
            made += usize::from(matches!(file.answer, Answer::Made(_)));
        }
        Some(Self { objects, files, made })
    }

    /// How many files it had, and how many of them were made.
    pub(crate) const fn count(&self) -> (usize, usize) {
        (self.files, self.made)
    }

    /// The next object.
    pub(crate) fn next(&mut self) -> Option<Turn> {
        let Planned { records, file } = self.objects.pop_front()?;
        let Some(PlannedFile { item, directory, answer }) = file else {
            return Some(Turn { records, item: None, file: None });
        };
        let file = match answer {
            Answer::Made(file) => Some(file),
            Answer::NotMade(Errno::EEXIST) => {
                self.take_back(&item, directory.as_fd());
                None
            }
            Answer::NotMade(_) | Answer::NotBegun => None,
        };
        Some(Turn { records, item: Some(item), file })
    }

    /// Where a file system takes two names for the same, a file that comes later may stand under
    /// the name of `item` already. It is removed, and made again when it is its turn.
    fn take_back(&mut self, item: &RestoreItem, directory: BorrowedFd<'_>) {
        let Some(there) = item.last_name().and_then(|name| look(directory, name)) else { return };
        let identity = Some(Identity::of(&there));
        for later in self.objects.iter_mut().filter_map(|object| object.file.as_mut()) {
            if !matches!(&later.answer, Answer::Made(made) if made.identity() == identity) {
                continue;
            }
            let Some(name) = later.item.last_name() else { continue };
            let directory = later.directory.as_fd();
            let is_it = look(directory, name).is_some_and(|found| Some(Identity::of(&found)) == identity);
            if is_it && there.st_nlink == 1 && unlinkat(directory, name, UnlinkatFlags::NoRemoveDir).is_ok() {
                later.answer = Answer::NotBegun;
            }
        }
    }
}

fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Option<FileStat> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

/// Closes files that are left as they are. A thread does so, since it may hang.
pub(crate) fn leave(files: Vec<OutputFile>) {
    if !files.is_empty() {
        let _no_thread = Builder::new().name("writer".to_owned()).spawn(move || drop(files));
    }
}

/// Decides what belongs to the run.
struct Planner<'d> {
    directories: &'d mut Directories,
    objects: VecDeque<Planned>,
    tasks: Vec<Task>,
    /// The paths of its files, and of directories that it has left. Nothing more is made there, or
    /// below.
    taken: HashSet<Vec<u8>>,
    /// The current directory, and how many files are in it.
    current: Option<(OutputPath, Arc<OwnedFd>, usize)>,
    /// How many directories it has gone into.
    entered: usize,
    /// The path of the last symbolic link on the way. It is the same for all directories, so that
    /// no two paths are the same but for links.
    link: Option<Vec<u8>>,
    /// Bytes in records and unpacked.
    bytes: usize,
    /// Files that stay open.
    open: usize,
}

impl<'d> Planner<'d> {
    fn new(directories: &'d mut Directories) -> Self {
        Self {
            directories,
            objects: VecDeque::new(),
            tasks: Vec::new(),
            taken: HashSet::new(),
            current: None,
            entered: 0,
            link: None,
            bytes: 0,
            open: 0,
        }
    }

    fn has_room(&self, most: usize) -> bool {
        self.tasks.len() < most && self.bytes < MOST_BYTES && self.open < MOST_OPEN
    }

    /// Adds a file. Returns how many records it has; `None` if the run ends before it.
    fn add_file(&mut self, file: SmallFile) -> Option<usize> {
        let SmallFile { records, bytes, item, data, has_metadata } = file;
        let path = item.path.as_ref().ok()?;
        if self.taken.contains(path.as_bytes()) {
            return None;
        }
        let (directory, rank) = self.enter(&parent_of(&item)?, &item)?;
        self.taken.insert(path.as_bytes().to_vec());
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(data.len());
        self.open += usize::from(has_metadata);
        let (name, stat) = (item.last_name()?.to_vec(), item.stat);
        let task = Task { directory: Arc::clone(&directory), name, data, stat, stays_open: has_metadata, rank };
        self.tasks.push(task);
        let file = PlannedFile { item, directory, answer: Answer::NotBegun };
        self.objects.push_back(Planned { records, file: Some(file) });
        Some(records)
    }

    /// Goes to the directory of `item`. Returns its handle, and how many files of the run it has.
    fn enter(&mut self, parent: &OutputPath, item: &RestoreItem) -> Option<(Arc<OwnedFd>, usize)> {
        if let Some((path, handle, files)) = &mut self.current
            && path == parent
        {
            *files += 1;
            return Some((Arc::clone(handle), *files));
        }
        let is_first = self.tasks.is_empty();
        if !is_first {
            let may_leave = !self.directories.keep_times() && self.directories.base() == parent.base();
            if !may_leave || self.entered >= MOST_DIRECTORIES || self.is_taken_on_the_way(parent) {
                return None;
            }
        }
        let how = MakeDirectory { uid: item.stat.uid, gid: item.stat.gid, mode: item.parent_mode(), keep: true };
        self.current = None;
        self.directories.make(parent, how).ok()?;
        let link = self.directories.last_link().map(<[u8]>::to_vec);
        if is_first {
            self.link = link;
        } else if self.link != link {
            return None;
        }
        self.directories.note_modification();
        let handle = Arc::new(self.directories.second_handle().ok()?);
        self.entered += 1;
        self.current = Some((parent.clone(), Arc::clone(&handle), 0));
        Some((handle, 0))
    }

    /// Whether a file of the run, or a directory that it has left, is on this path.
    fn is_taken_on_the_way(&self, path: &OutputPath) -> bool {
        let path = path.as_bytes();
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(place, _)| place);
        ends.chain([0, path.len()]).any(|end| path.get(..end).is_some_and(|part| self.taken.contains(part)))
    }

    /// Adds the record of a directory that the files before it are in, or below. It is applied when
    /// all of them are made.
    fn add_directory(&mut self, directory: LeftDirectory) -> Option<usize> {
        let LeftDirectory { records, bytes, path } = directory;
        let (current, ..) = self.current.as_ref()?;
        if path.base() != current.base() || !current.is_in(&path) {
            return None;
        }
        // Files in the directories above it go on.
        self.current = None;
        self.taken.insert(path.as_bytes().to_vec());
        self.bytes = self.bytes.saturating_add(bytes);
        self.objects.push_back(Planned { records, file: None });
        Some(records)
    }
}

/// A file whose records have come.
struct SmallFile {
    records: usize,
    /// Their bytes.
    bytes: usize,
    item: RestoreItem,
    data: Vec<u8>,
    has_metadata: bool,
}

/// A directory whose records have come.
struct LeftDirectory {
    records: usize,
    bytes: usize,
    path: OutputPath,
}

fn parent_of(item: &RestoreItem) -> Option<OutputPath> {
    item.path.as_ref().ok()?.split().map(|(parent, _name)| parent)
}

/// The file whose records begin after `before` others, if it is a small one of which everything has
/// come, and which is restored like any other new file.
fn small_file(
    records: &mut Lookahead<'_>,
    before: usize,
    plan: &RestorePlan,
    unpacker: &mut Unpacker,
) -> Option<SmallFile> {
    let patience = if before == 0 { PATIENCE } else { LITTLE_PATIENCE };
    let (stream, record) = records.look(before, patience)?;
    let is_new = |record: &AttributesRecord<'_>| {
        matches!(record.file_type(), Some(FileType::Regular | FileType::EmptyFile))
            && record.delta_seq == 0
            && record.lstat.data_stream.is_restorable_data()
            && usize::try_from(record.lstat.stat.size).is_ok_and(|size| size <= MOST_DATA)
    };
    if stream.class() != StreamClass::Attributes {
        return None;
    }
    let parsed = AttributesRecord::parse(record).ok().filter(is_new)?;
    let item = RestoreItem::new(&parsed, stream, false, plan);
    let base = item.path.as_ref().ok()?.base();
    if item.output.ends_with(b"/") || (base == Base::Current && !item.output.contains(&b'/')) {
        return None;
    }
    let bytes = record.len() + RECORD;
    let mut file = SmallFile { records: 1, bytes, item, data: Vec::new(), has_metadata: false };
    // The stream of its data, while only data has come.
    let mut data_stream = None;
    let mut is_data = true;
    loop {
        let Some((stream, record)) = records.look(before + file.records, patience) else {
            return records.ends_well().then_some(file);
        };
        match stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => return Some(file),
            StreamClass::Data(_) if is_data && *data_stream.get_or_insert(stream) == stream => {
                let layout = stream.layout();
                if layout.is_encrypted || layout.is_win32 || layout.has_address {
                    return None;
                }
                file.data.extend_from_slice(unpacker.unpack(layout, record).ok()?.data);
                if file.data.len() > MOST_DATA {
                    return None;
                }
            }
            StreamClass::Metadata(_) => {
                is_data = false;
                file.has_metadata |= !record.is_empty();
            }
            StreamClass::Digest(_) => is_data = false,
            _ => return None,
        }
        file.records += 1;
        file.bytes = file.bytes.saturating_add(record.len() + RECORD);
        if file.bytes > MOST_IN_RECORDS {
            return None;
        }
    }
}

/// The directory whose records begin after `before` others, if everything has come.
fn left_directory(records: &mut Lookahead<'_>, before: usize, plan: &RestorePlan) -> Option<LeftDirectory> {
    let (stream, record) = records.look(before, LITTLE_PATIENCE)?;
    if stream.class() != StreamClass::Attributes {
        return None;
    }
    let is_directory = |record: &AttributesRecord<'_>| {
        record.file_type() == Some(FileType::Directory) && record.lstat.data_stream.is_restorable_data()
    };
    let parsed = AttributesRecord::parse(record).ok().filter(is_directory)?;
    let path = RestoreItem::new(&parsed, stream, false, plan).path.ok()?;
    let mut directory = LeftDirectory { records: 1, bytes: record.len() + RECORD, path };
    loop {
        let Some((stream, record)) = records.look(before + directory.records, LITTLE_PATIENCE) else {
            return records.ends_well().then_some(directory);
        };
        match stream.class() {
            StreamClass::Attributes | StreamClass::AttributesUpdate => return Some(directory),
            StreamClass::Metadata(_) => {}
            _ => return None,
        }
        directory.records += 1;
        directory.bytes = directory.bytes.saturating_add(record.len() + RECORD);
        if directory.bytes > MOST_IN_RECORDS {
            return None;
        }
    }
}
