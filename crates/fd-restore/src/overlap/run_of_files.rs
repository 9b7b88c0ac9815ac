//! A run of plain new files, all of whose records have come, with the records of directories that
//! are left in between.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::thread::Builder;

use fd_messages::CancelToken;
use fd_os::depth::Taken;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::decode::{Decoded, LITTLE_PATIENCE, PATIENCE};
use super::planner::{Planned, Planner};
use super::task::Answer;
use super::writers::Writers;
use crate::created::Taker;
use crate::file::RestoreItem;
use crate::output_file::Identity;
use crate::plan::RestorePlan;
use crate::stream::{Lookahead, Unpacker};
use crate::tree::Directories;

/// The run.
pub(crate) struct RunOfFiles {
    objects: VecDeque<Planned>,
    files: usize,
    made: usize,
    taken: Taken,
}

impl RunOfFiles {
    /// Makes the run that begins with the next record, of at most `most` files and `depth` at a
    /// time; `None` if there is none. Directories are made, if need be, as for their first file.
    pub(crate) fn make(
        records: &mut Lookahead<'_>,
        plan: &RestorePlan,
        directories: &mut Directories,
        (writers, most, depth): (&mut Writers, usize, usize),
        cancel: &CancelToken,
    ) -> Option<Self> {
        let mut planner = Planner::new(directories);
        let mut unpacker = Unpacker::new();
        let mut patience = PATIENCE;
        while planner.has_room(most) {
            let decoded = Decoded::next(records, patience, plan, &mut unpacker);
            if decoded.and_then(|object| planner.add(object, records)).is_none() {
                break;
            }
            patience = LITTLE_PATIENCE;
        }
        let Planner { mut objects, tasks, .. } = planner;
        let files = tasks.len();
        if files == 0 {
            return None;
        }
        let (answers, taken) = writers.carry_out(tasks, depth, cancel);
        let mut answers = answers.into_iter();
        let mut made = 0;
        for object in &mut objects {
            if let Planned::File { answer, .. } = object {
                *answer = answers.next().unwrap_or(Answer::NotBegun);
                made += usize::from(matches!(answer, Answer::Made(_)));
            }
        }
        Some(Self { objects, files, made, taken })
    }

    /// How many files it had, how many of them were made, and what that has taken.
    pub(crate) const fn count(&self) -> (usize, usize, Taken) {
        (self.files, self.made, self.taken)
    }

    /// The next object.
    pub(crate) fn next(&mut self) -> Option<Planned> {
        let object = self.objects.pop_front()?;
        if let Planned::File { file, directory, answer: Answer::NotMade(Errno::EEXIST) } = &object {
            self.take_back(&file.item, directory.as_fd());
        }
        Some(object)
    }

    /// Where a file system takes two names for the same, a file that comes later may stand under
    /// the name of `item` already. It is removed, and made again when it is its turn.
    fn take_back(&mut self, item: &RestoreItem, directory: BorrowedFd<'_>) {
        let Some(there) = item.last_name().and_then(|name| look(directory, name)) else { return };
        let identity = Some(Identity::of(&there));
        for later in &mut self.objects {
            let Planned::File { file, directory, answer } = later else { continue };
            if !matches!(answer, Answer::Made(made) if made.new_file().map(|file| file.identity) == identity) {
                continue;
            }
            let Some(name) = file.item.last_name() else { continue };
            let is_it = look(directory.as_fd(), name).is_some_and(|found| Some(Identity::of(&found)) == identity);
            if is_it && there.st_nlink == 1 && unlinkat(directory, name, UnlinkatFlags::NoRemoveDir).is_ok() {
                *answer = Answer::NotBegun;
            }
        }
    }
}

fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Option<FileStat> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

/// Closes files that are left as they are. A thread does so, since it may hang.
pub(crate) fn leave(files: Vec<Taker>) {
    if !files.is_empty() {
        let _no_thread = Builder::new().name("writer".to_owned()).spawn(move || drop(files));
    }
}
