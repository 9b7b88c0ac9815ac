//! Small files that are made at the same time, where each call waits for the storage.
//!
//! A restore takes its records one after the other, and so it stays: what is overlapped is a run of
//! plain new files, all of whose records have come. Threads make these files as the job's own
//! thread would. Then that thread takes the records in their order, as ever, and finds the files
//! made; so messages, counters and digests don't depend on who made them. Where a file could not be
//! made whole, the job's thread does it again, and reports what is wrong.
//!
//! A run ends where the order could be seen: at anything that is no plain new file, at a path that
//! the run has already, and at one below it. The records of directories in between are applied when
//! all files are made; nothing that comes later in the run is in such a directory.
//!
//! Threads open nothing but names in directories that the job's thread has reached, by its rules
//! about links, and they make only what does not exist. Directories are made by the job's thread,
//! before the run's files.

mod decode;
mod pace;
mod planner;
mod run_of_files;
mod task;
mod writers;

pub(crate) use decode::FileData;
pub(crate) use pace::Pace;
pub(crate) use planner::{FileOfRun, Planned};
pub(crate) use run_of_files::{RunOfFiles, leave};
pub(crate) use task::Answer;
pub(crate) use writers::Writers;
