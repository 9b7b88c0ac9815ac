//! The making of one small file, from its name to its attributes.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use fd_metadata::{AttributeFailures, Target, UsualOwner};
use fd_records::Stat;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::fstat;
use nix::unistd::close;

use super::decode::FileData;
use crate::output_file::{Identity, OutputFile, make_unfinished};

/// A new file with all of its data.
#[derive(Debug)]
pub(crate) struct Task {
    /// The directory that it is made in.
    pub(crate) directory: Arc<OwnedFd>,
    /// Its name there.
    pub(crate) name: Vec<u8>,
    pub(crate) data: Arc<FileData>,
    pub(crate) stat: Stat,
    /// Whether it has metadata, for which it stays open.
    pub(crate) stays_open: bool,
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
    /// There is one. Unless it was finished it is open and empty.
    Made(OutputFile),
}

impl Task {
    /// Makes the file, writes it, and sets its attributes.
    pub(crate) fn carry_out(&self, usual: &mut UsualOwner) -> Answer {
        let mut file = match make_unfinished(self.directory.as_fd(), &self.name, OFlag::O_WRONLY) {
            Ok(made) => File::from(made),
            Err(errno) => return Answer::NotMade(errno),
        };
        // Without one nothing is known of it, but that it is there and empty.
        let identity = fstat(&file).ok().as_ref().map(Identity::of);
        if file.write_all(self.data.all()).is_err() {
            // The job's thread writes it again, from the beginning.
            let _length = file.set_len(0);
            let _start = file.rewind();
            return Answer::Made(OutputFile::empty(file.into(), false).known_as(identity));
        }
        let failures = self.set_attributes(&file, usual);
        let file = if self.stays_open { Ok(file) } else { Err(close(file).err()) };
        Answer::Made(OutputFile::finished(file, failures, self.data.all().len() as u64).known_as(identity))
    }

    fn set_attributes(&self, file: &File, usual: &mut UsualOwner) -> AttributeFailures {
        Target::Open(file.as_fd()).set_attributes_of_new(&self.stat, usual)
    }
}
