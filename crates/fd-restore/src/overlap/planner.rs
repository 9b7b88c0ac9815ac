//! What belongs to a run.

use std::collections::{HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fd_records::RecordHeader;

use super::decode::{Decoded, FileData, Kind, Size};
use super::task::{Answer, Task};
use crate::file::RestoreItem;
use crate::stream::{Lookahead, Seen};
use crate::tree::{Directories, OutputPath};

/// A run ends with the file that brings it above so many bytes, in records and unpacked.
const MOST_BYTES: usize = 16 << 20;

/// How many files of a run stay open, because they have metadata.
const MOST_OPEN: usize = 64;

/// How many directories a run goes into.
const MOST_DIRECTORIES: usize = 64;

/// A file of a run, as it was decoded.
pub(crate) struct FileOfRun {
    /// The header of its attributes.
    pub(crate) header: RecordHeader,
    /// What its attributes mean.
    pub(crate) item: RestoreItem,
    pub(crate) data: Arc<FileData>,
    /// The records behind its data.
    pub(crate) rest: Vec<Seen>,
}

/// An object of a run.
pub(crate) enum Planned {
    /// A directory that it has left: its records.
    Directory(Vec<Seen>),
    /// A file, the directory that it is made in, and what has become of it.
    File { file: Box<FileOfRun>, directory: Arc<OwnedFd>, answer: Answer },
}

/// Decides what belongs to the run.
pub(super) struct Planner<'d> {
    directories: &'d mut Directories,
    pub(super) objects: VecDeque<Planned>,
    pub(super) tasks: Vec<Task>,
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
    pub(super) fn new(directories: &'d mut Directories) -> Self {
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

    pub(super) fn has_room(&self, most: usize) -> bool {
        self.tasks.len() < most && self.bytes < MOST_BYTES && self.open < MOST_OPEN
    }

    /// Adds an object, whose records are taken. `None`: the run ends before it.
    pub(super) fn add(&mut self, decoded: Decoded, records: &mut Lookahead<'_>) -> Option<()> {
        let Decoded { kind, header, item, data, size, behind } = decoded;
        let parent = match kind {
            Kind::NewFile(parent) => parent,
            Kind::Directory => return self.leave(item.path.as_ref().ok()?, size, records),
        };
        let path = item.path.as_ref().ok()?;
        if self.taken.contains(path.as_bytes()) || self.directories.has_failed(&parent) {
            return None;
        }
        let (directory, rank) = self.enter(&parent, &item)?;
        self.taken.insert(path.as_bytes().to_vec());
        self.bytes = self.bytes.saturating_add(size.bytes).saturating_add(data.all().len());
        self.open += usize::from(behind.is_some());
        let data = Arc::new(data);
        self.tasks.push(Task {
            directory: Arc::clone(&directory),
            name: item.last_name()?.to_vec(),
            data: Arc::clone(&data),
            stat: item.stat,
            behind,
            rank,
        });
        let rest = records.take(size.decoded + size.rest).skip(size.decoded).collect();
        let file = Box::new(FileOfRun { header, item, data, rest });
        self.objects.push_back(Planned::File { file, directory, answer: Answer::NotBegun });
        Some(())
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
        self.current = None;
        self.directories.reach_parent(parent, item.directories(false)).ok()?;
        let link = self.directories.last_link().map(<[u8]>::to_vec);
        if is_first {
            self.link = link;
        } else if self.link != link {
            return None;
        }
        let handle = Arc::new(self.directories.for_change().ok()?.try_clone_to_owned().ok()?);
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

    /// Adds the records of a directory that the files before it are in, or below. They are applied
    /// when all of these are made. `None`: the run ends before it.
    fn leave(&mut self, path: &OutputPath, size: Size, records: &mut Lookahead<'_>) -> Option<()> {
        let (current, ..) = self.current.as_ref()?;
        if path.base() != current.base() || !current.is_in(path) {
            return None;
        }
        // Files in the directories above it go on.
        self.current = None;
        self.directories.expect_record(path);
        self.taken.insert(path.as_bytes().to_vec());
        self.bytes = self.bytes.saturating_add(size.bytes);
        self.objects.push_back(Planned::Directory(records.take(size.rest).collect()));
        Some(())
    }
}
