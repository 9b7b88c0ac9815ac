//! The names in a directory, in the kernel's order, read in chunks.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::snapshots::ReadAt;

/// Bytes of each read.
const CHUNK: usize = 64 * 1024;

/// A directory that is put aside holds about so many bytes of names, and at most a chunk more. Of a
/// larger one, the rest is read later.
const MOST_HELD: usize = 64 * 1024;

/// So many empty buffers are kept.
const MOST_SPARE: usize = 128;

/// Buffers that all levels of a walk share.
pub(crate) struct Scratch {
    answer: Box<[MaybeUninit<u8>]>,
    /// Empty buffers of names, for the next directories.
    spare: Vec<Vec<u8>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { answer: Box::new_uninit_slice(CHUNK), spare: Vec::new() }
    }
}

/// A directory that is being read.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Device and inode, to recognize the directory when it is opened again.
    identity: (u64, u64),
    /// `None` while the directory is put aside.
    descriptor: Option<Arc<OwnedFd>>,
    /// Names that were read but not used yet, as [`push_name`] writes them.
    names: Vec<u8>,
    next: usize,
    state: State,
}

/// What follows the names that are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// More names, from the descriptor.
    Reading,
    /// More names, from this position of the directory, which has no descriptor.
    Aside(u64),
    /// Nothing.
    Ended,
    /// Nothing: reading failed.
    Failed(Errno),
    /// The names are read by others ([`Directory::lend`]).
    Lent,
}

/// What follows the names of one read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// Perhaps more names.
    More,
    /// Nothing.
    Ended,
    /// Nothing: reading failed.
    Failed(Errno),
}

/// What others need to read a directory.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(crate) descriptor: Arc<OwnedFd>,
    /// Names that were read but not used yet, as [`push_name`] writes them.
    pub(crate) names: Vec<u8>,
    pub(crate) rest: Rest,
}

/// The inode of an entry that is no directory, as the directory that holds it says; 0 for a
/// directory, and where that is not known.
pub(crate) type Leaf = u64;

/// Appends a name and a NUL behind what the directory says of it.
pub(crate) fn push_name(names: &mut Vec<u8>, leaf: Leaf, name: &[u8]) {
    names.extend_from_slice(&leaf.to_ne_bytes());
    names.extend_from_slice(name);
    names.push(0);
}

/// The first of these names, and how many bytes it takes.
pub(crate) fn first_name(names: &[u8]) -> Option<(Leaf, &[u8], usize)> {
    let (leaf, rest) = names.split_first_chunk()?;
    let len = rest.iter().position(|byte| *byte == 0)?;
    Some((Leaf::from_ne_bytes(*leaf), rest.get(..len)?, size_of::<Leaf>() + len + 1))
}

impl Directory {
    /// Opens a directory and reads its first names. Unlike `opendir`, it does not follow a link at
    /// its path; a `path` with a final slash still means the target of a link. `ESTALE` if the
    /// directory has another device or inode.
    pub(crate) fn open(
        at: BorrowedFd<'_>,
        path: &[u8],
        identity: (u64, u64),
        scratch: &mut Scratch,
    ) -> Result<Self, Errno> {
        let descriptor = Some(Arc::new(open(at, path, identity)?));
        let names = scratch.spare.pop().unwrap_or_default();
        let mut directory = Self { identity, descriptor, names, next: 0, state: State::Reading };
        directory.read_chunk(scratch);
        Ok(directory)
    }

    /// A directory that others have opened and read.
    pub(crate) const fn lent(identity: (u64, u64), descriptor: Arc<OwnedFd>) -> Self {
        Self { identity, descriptor: Some(descriptor), names: Vec::new(), next: 0, state: State::Lent }
    }

    /// Device and inode.
    pub(crate) const fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Hands its reading over to others, until [`Self::take_back`]. `None` while it is put aside,
    /// and if it is lent already.
    pub(crate) fn lend(&mut self) -> Option<Loan> {
        let descriptor = Arc::clone(self.descriptor.as_ref()?);
        let rest = match self.state {
            State::Reading => Rest::More,
            State::Ended => Rest::Ended,
            State::Failed(errno) => Rest::Failed(errno),
            State::Aside(_) | State::Lent => return None,
        };
        self.state = State::Lent;
        let mut names = std::mem::take(&mut self.names);
        names.drain(..self.next.min(names.len()));
        self.next = 0;
        Some(Loan { descriptor, names, rest })
    }

    /// Takes its reading back, with the names that the others have not used.
    pub(crate) fn take_back(&mut self, names: Vec<u8>, rest: Rest) {
        self.names = names;
        self.next = 0;
        self.state = match rest {
            Rest::More => State::Reading,
            Rest::Ended => State::Ended,
            Rest::Failed(errno) => State::Failed(errno),
        };
    }

    /// The descriptor, for calls relative to it; `None` between [`Self::put_aside`] and the next
    /// name.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(|descriptor| descriptor.as_fd())
    }

    /// Appends the next name to `path`, which is the path of the directory with a final
    /// slash, and which is read at `read_at`.
    /// `None` at the end, and from then on.
    pub(crate) fn next_name(
        &mut self,
        path: &mut Vec<u8>,
        read_at: &ReadAt,
        scratch: &mut Scratch,
    ) -> Result<Option<Leaf>, Errno> {
        if self.descriptor.is_none() {
            self.open_again(&read_at.of(path));
        }
        if self.next >= self.names.len() {
            self.names.clear();
            self.next = 0;
            self.read_chunk(scratch);
        }
        let rest = self.names.get(self.next..).unwrap_or_default();
        let Some((leaf, name, len)) = first_name(rest) else {
            return match std::mem::replace(&mut self.state, State::Ended) {
                State::Failed(errno) => Err(errno),
                _ => Ok(None),
            };
        };
        path.extend_from_slice(name);
        self.next += len;
        Ok(Some(leaf))
    }

    /// Closes the descriptor. A moderate number of names is held in memory; of a large directory,
    /// the position behind them.
    pub(crate) fn put_aside(&mut self, scratch: &mut Scratch) {
        self.names.drain(..self.next);
        self.next = 0;
        while self.state == State::Reading && self.names.len() < MOST_HELD {
            self.read_chunk(scratch);
        }
        if let (State::Reading, Some(descriptor)) = (self.state, &self.descriptor) {
            self.state = rustix::fs::tell(descriptor).map_or_else(State::Failed, State::Aside);
        }
        self.descriptor = None;
    }

    /// Returns the buffer to `scratch`.
    pub(crate) fn close(mut self, scratch: &mut Scratch) {
        self.names.clear();
        // A directory that others have read has no buffer.
        if self.names.capacity() > 0 && scratch.spare.len() < MOST_SPARE {
            scratch.spare.push(self.names);
        }
    }

    /// Opens a directory that was put aside, so that further calls are relative to this very
    /// directory.
    fn open_again(&mut self, path: &[u8]) {
        let position = match self.state {
            State::Aside(position) => Some(position),
            _ if self.next < self.names.len() => None,
            _ => return,
        };
        let opened = open(CWD, path, self.identity).and_then(|descriptor| {
            position.map_or(Ok(0), |position| rustix::fs::seek(&descriptor, SeekFrom::Start(position)))?;
            Ok(descriptor)
        });
        match opened {
            Ok(descriptor) => {
                self.descriptor = Some(Arc::new(descriptor));
                if position.is_some() {
                    self.state = State::Reading;
                }
            }
            Err(errno) => {
                self.names.clear();
                self.next = 0;
                self.state = State::Failed(errno);
            }
        }
    }

    /// Appends the names of one read, without `.` and `..`, or sets why there are none.
    fn read_chunk(&mut self, scratch: &mut Scratch) {
        let (State::Reading, Some(descriptor)) = (self.state, &self.descriptor) else { return };
        let names = &mut self.names;
        let rest = read(descriptor.as_fd(), &mut scratch.answer, |name, ino, is_leaf| {
            push_name(names, if is_leaf { ino } else { 0 }, name.to_bytes());
        });
        match rest {
            Rest::More => {}
            Rest::Ended => self.state = State::Ended,
            Rest::Failed(errno) => self.state = State::Failed(errno),
        }
    }
}

/// Passes on the names of one read with their inodes' numbers, and whether each is known to be no
/// directory, without `.` and `..`. `answer` is the buffer.
pub(crate) fn read(
    directory: BorrowedFd<'_>,
    answer: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&CStr, u64, bool),
) -> Rest {
    let mut found = false;
    let mut entries = RawDir::new(directory, answer);
    loop {
        match entries.next() {
            Some(Ok(entry)) => {
                let name = entry.file_name();
                if !matches!(name.to_bytes(), b"." | b".." | b"") {
                    found = true;
                    let is_leaf = !matches!(entry.file_type(), FileType::Unknown | FileType::Directory);
                    each(name, entry.ino(), is_leaf);
                }
            }
            // A directory that was removed meanwhile.
            None | Some(Err(Errno::NOENT)) => return Rest::Ended,
            Some(Err(errno)) => return Rest::Failed(errno),
        }
        // A chunk with only `.` and `..` is not the end.
        if found && entries.is_buffer_empty() {
            return Rest::More;
        }
    }
}

/// See [`Directory::open`].
pub(crate) fn open(at: BorrowedFd<'_>, path: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let descriptor = rustix::fs::openat(at, path, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&descriptor)?;
    if (found.st_dev, found.st_ino) == identity { Ok(descriptor) } else { Err(Errno::STALE) }
}

/// Whether there is a file at this path, links followed.
pub(crate) fn exists(path: &[u8]) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

/// `lstat` relative to `at`.
pub(crate) fn stat_at(at: BorrowedFd<'_>, path: &[u8]) -> Result<rustix::fs::Stat, Errno> {
    rustix::fs::statat(at, path, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests;
