//! The making of one small file, from its name to its attributes.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use fd_metadata::UsualOwner;
use fd_records::{MetadataKind, Stat};
use nix::errno::Errno;

use super::decode::FileData;
use crate::created::Taker;
use crate::output_file::OutputFile;

/// A new file with all of its data.
#[derive(Debug)]
pub(crate) struct Task {
    /// The directory that it is made in.
    pub(crate) directory: Arc<OwnedFd>,
    /// Its name there.
    pub(crate) name: Vec<u8>,
    pub(crate) data: Arc<FileData>,
    pub(crate) stat: Stat,
    /// The metadata for which it stays open.
    pub(crate) behind: Option<MetadataKind>,
    /// How many files of the run come before it in its directory. A kernel makes one file at a time
    /// in a directory, so files of different ones are made together.
    pub(crate) rank: usize,
}

/// What has become of a task.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No thread has begun it.
    NotBegun,
    /// There is no new file.
    NotMade(Errno),
    /// There is one: finished, or, if it could not be filled, open and empty.
    Made(Taker),
}

impl Answer {
    /// The new file.
    pub(crate) fn made(self) -> Option<Taker> {
        match self {
            Self::Made(made) => Some(made),
            Self::NotBegun | Self::NotMade(_) => None,
        }
    }
}

impl Task {
    /// Makes the file, writes it, and sets its attributes, as [`OutputFile::fill`].
    pub(crate) fn carry_out(&self, usual: &mut UsualOwner) -> Answer {
        match OutputFile::make(self.directory.as_fd(), &self.name, false, true) {
            Ok(file) => {
                let filled = file.fill(self.data.all(), &self.stat, usual, self.behind);
                Answer::Made(filled.map_or_else(Taker::File, Taker::Finished))
            }
            Err(errno) => Answer::NotMade(errno),
        }
    }
}
