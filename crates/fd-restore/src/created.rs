//! What has become of an object when its attribute record has been taken, and what takes its data.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::output_file::{FinishedFile, NewFile, OutputFile};

/// What has become of an object when its attribute record has been taken.
#[derive(Debug)]
pub(crate) enum Created {
    /// This takes its data.
    Data(Taker),
    /// The daemon has made it, or it is there already. It needs its attributes.
    ByCore,
    /// A plugin has made it. It needs its attributes.
    ByPlugin,
    /// It was there before, and is kept as it is; or its plugin leaves it out.
    Kept,
    /// Another one was there before, which stays until data of this one comes.
    Waiting,
    /// A hard link whose first name may still be restored.
    Late,
    /// It is not there; a message says why.
    Nothing,
}

/// What takes the data of an object.
#[derive(Debug)]
pub(crate) enum Taker {
    /// This file.
    File(OutputFile),
    /// This one, which has all of it already.
    Finished(FinishedFile),
    /// The plugin that restores the records. The next data goes to this address.
    Plugin { address: u64 },
}

impl Taker {
    /// The file that it is written to.
    pub(crate) const fn file(&self) -> Option<&OutputFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Finished(_) | Self::Plugin { .. } => None,
        }
    }

    /// Which file it is, if that was asked when it was made.
    pub(crate) const fn new_file(&self) -> Option<NewFile> {
        match self {
            Self::File(file) => file.new_file(),
            Self::Finished(file) => file.new_file,
            Self::Plugin { .. } => None,
        }
    }

    /// The length of the file; `None` where it has none.
    pub(crate) fn length(&mut self) -> Option<i64> {
        match self {
            Self::File(file) => file.length(),
            Self::Finished(file) => file.length,
            Self::Plugin { .. } => None,
        }
    }

    /// The descriptor of the file, if it is open.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(file) => Some(file.descriptor()),
            Self::Finished(file) => file.descriptor(),
            Self::Plugin { .. } => None,
        }
    }

    /// Closes the file.
    pub(crate) fn close(self) -> Result<(), Errno> {
        match self {
            Self::File(file) => file.close(),
            Self::Finished(file) => file.close(),
            Self::Plugin { .. } => Ok(()),
        }
    }
}
