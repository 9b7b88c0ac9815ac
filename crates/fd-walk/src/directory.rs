//! The names in a directory, in the kernel's order, read in chunks.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use crate::snapshots::ReadAt;

/// Bytes of each read.
const CHUNK: usize = 64 * 1024;

/// A directory that is put aside holds about so many bytes of names. Of a larger one, the rest is
/// read later.
const MOST_HELD: usize = 64 * 1024;

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
    descriptor: Option<OwnedFd>,
    /// Names that were read but not used yet, each with a NUL behind it.
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
}

impl Directory {
    /// Opens a directory. Unlike `opendir`, it does not follow a link at its path; a `path` with a
    /// final slash still means the target of a link. `ESTALE` if the directory has another device
    /// or inode.
    pub(crate) fn open(
        at: BorrowedFd<'_>,
        path: &[u8],
        identity: (u64, u64),
        scratch: &mut Scratch,
    ) -> Result<Self, Errno> {
        let descriptor = Some(open(at, path, identity)?);
        let names = scratch.spare.pop().unwrap_or_default();
        Ok(Self { identity, descriptor, names, next: 0, state: State::Reading })
    }

    /// The descriptor, for calls relative to it; `None` between [`Self::put_aside`] and the next
    /// name.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Appends the next name to `path`, which is the path of the directory with a final
    /// slash, and which is read at `read_at`.
    /// `false` at the end, and from then on.
    pub(crate) fn next_name(
        &mut self,
        path: &mut Vec<u8>,
        read_at: &ReadAt,
        scratch: &mut Scratch,
    ) -> Result<bool, Errno> {
        if self.descriptor.is_none() {
            self.open_again(&read_at.of(path));
        }
        if self.next >= self.names.len() {
            self.names.clear();
            self.next = 0;
            self.read_chunk(scratch);
        }
        let rest = self.names.get(self.next..).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == 0) else {
            return match std::mem::replace(&mut self.state, State::Ended) {
                State::Failed(errno) => Err(errno),
                _ => Ok(false),
            };
        };
        path.extend_from_slice(rest.get(..len).unwrap_or_default());
        self.next += len + 1;
        Ok(true)
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
        scratch.spare.push(self.names);
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
                self.descriptor = Some(descriptor);
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
        let before = self.names.len();
        let mut entries = RawDir::new(descriptor, &mut scratch.answer);
        loop {
            match entries.next() {
                Some(Ok(entry)) => {
                    let name = entry.file_name().to_bytes_with_nul();
                    if !matches!(name, b".\0" | b"..\0" | b"\0") {
                        self.names.extend_from_slice(name);
                    }
                }
                // A directory that was removed meanwhile.
                None | Some(Err(Errno::NOENT)) => return self.state = State::Ended,
                Some(Err(errno)) => return self.state = State::Failed(errno),
            }
            // A chunk with only `.` and `..` is not the end.
            if entries.is_buffer_empty() && self.names.len() > before {
                return;
            }
        }
    }
}

fn open(at: BorrowedFd<'_>, path: &[u8], identity: (u64, u64)) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let descriptor = rustix::fs::openat(at, path, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&descriptor)?;
    if (found.st_dev, found.st_ino) == identity { Ok(descriptor) } else { Err(Errno::STALE) }
}

/// `lstat` relative to `at`.
pub(crate) fn stat_at(at: BorrowedFd<'_>, path: &[u8]) -> Result<rustix::fs::Stat, Errno> {
    rustix::fs::statat(at, path, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests;
