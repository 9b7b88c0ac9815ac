//! The names in an open directory, in the kernel's order, a chunk at a time.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RawDir};
use rustix::io::Errno;

/// Bytes asked of the kernel at once.
const CHUNK: usize = 64 * 1024;

/// Room for the kernel's answers, shared by all levels of a walk.
pub(crate) struct Scratch(Box<[MaybeUninit<u8>]>);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(Box::new_uninit_slice(CHUNK))
    }
}

/// A directory that is being read.
#[derive(Debug)]
pub(crate) struct Directory {
    /// `None` once the rest of the names has been taken in, to free the descriptor.
    descriptor: Option<OwnedFd>,
    /// Names that are still to come, each with a NUL behind it.
    names: Vec<u8>,
    next: usize,
}

impl Directory {
    /// Opens a directory, in the flags of `opendir`.
    pub(crate) fn open(at: BorrowedFd<'_>, path: &[u8]) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let descriptor = rustix::fs::openat(at, path, flags, Mode::empty())?;
        Ok(Self { descriptor: Some(descriptor), names: Vec::new(), next: 0 })
    }

    /// The open directory, for calls relative to it; `None` after [`Self::close_early`].
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(std::os::fd::AsFd::as_fd)
    }

    /// Appends the next name to `path`; `false` at the end. A read error is an end (reference 03 §5.4 step 8).
    pub(crate) fn next_name(&mut self, path: &mut Vec<u8>, scratch: &mut Scratch) -> bool {
        if self.next >= self.names.len() {
            self.names.clear();
            self.next = 0;
            self.read_chunk(scratch);
        }
        let rest = self.names.get(self.next..).unwrap_or_default();
        let Some(len) = rest.iter().position(|byte| *byte == 0) else { return false };
        path.extend_from_slice(rest.get(..len).unwrap_or_default());
        self.next += len + 1;
        true
    }

    /// Takes in all names that are left and frees the descriptor.
    pub(crate) fn close_early(&mut self, scratch: &mut Scratch) {
        self.names.drain(..self.next);
        self.next = 0;
        let mut known = self.names.len();
        loop {
            self.read_chunk(scratch);
            if self.names.len() == known {
                break;
            }
            known = self.names.len();
        }
        self.descriptor = None;
    }

    /// Appends the names of one answer of the kernel, without `.` and `..`. At the end nothing is appended.
    fn read_chunk(&mut self, scratch: &mut Scratch) {
        let Some(descriptor) = &self.descriptor else { return };
        let before = self.names.len();
        let mut entries = RawDir::new(descriptor, &mut scratch.0);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes_with_nul();
            if !matches!(name, b".\0" | b"..\0" | b"\0") {
                self.names.extend_from_slice(name);
            }
            // A chunk of nothing but `.` and `..` is no end.
            if entries.is_buffer_empty() && self.names.len() > before {
                break;
            }
        }
    }
}

/// `lstat` relative to `at`.
pub(crate) fn stat_at(at: BorrowedFd<'_>, path: &[u8]) -> Result<rustix::fs::Stat, Errno> {
    rustix::fs::statat(at, path, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(directory: &mut Directory, scratch: &mut Scratch) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        let mut path = Vec::new();
        while directory.next_name(&mut path, scratch) {
            names.push(std::mem::take(&mut path));
        }
        names
    }

    #[test]
    fn a_directory_closed_early_has_the_same_names_in_the_same_order() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..3000 {
            std::fs::write(folder.path().join(format!("a rather long name for a file {number}")), "").unwrap();
        }
        let path = folder.path().as_os_str().as_encoded_bytes();
        let mut scratch = Scratch::new();
        let open = || Directory::open(rustix::fs::CWD, path).unwrap();
        let plain = all(&mut open(), &mut scratch);
        assert_eq!(plain.len(), 3000);
        let mut early = open();
        let mut first = Vec::new();
        assert!(early.next_name(&mut first, &mut scratch));
        early.close_early(&mut scratch);
        assert!(early.descriptor().is_none());
        let rest = all(&mut early, &mut scratch);
        assert_eq!([vec![first], rest].concat(), plain);
    }

    #[test]
    fn an_empty_directory_has_no_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str().as_encoded_bytes();
        let mut directory = Directory::open(rustix::fs::CWD, path).unwrap();
        assert!(all(&mut directory, &mut Scratch::new()).is_empty());
    }
}
