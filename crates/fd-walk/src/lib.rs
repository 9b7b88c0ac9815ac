//! The walk over a FileSet: entries in exactly the stock daemon's order, each with its attributes,
//! its options and its hard-link role (reference 03 §5–9).
//!
//! The walk runs on one thread and passes [`WalkEvent`]s to a sink. It calls `lstat` once for each
//! entry, descends with an explicit stack, keeps a bounded number of directories open, and holds at
//! most one chunk of names per level. Where that waits, threads look up entries ahead of it.
//!
//! - `walk`: the walk itself, with the settings of `settings` and the events of `event`.
//! - `limits`, `held`, `fs_types`: what decides whether an entry belongs to the job.
//! - `ahead`: the look-ahead.
//! - `scan`: the inode scan.
//! - `directory`, `attributes`, `names`, `links`: what the walk reads and remembers.
//! - `entry`, `root`, `reach`: an entry, and how it is opened after the walk has passed it.
//! - `snapshots`: where it is read.
//!
//! Not here: reading file contents, ACLs and extended attributes; sending; the FileIndex, which the
//! consumer counts.

mod ahead;
mod attributes;
mod directory;
mod entry;
mod event;
pub mod fs_types;
mod held;
mod limits;
mod links;
mod names;
mod priority;
mod reach;
mod root;
mod scan;
mod settings;
mod snapshots;
pub mod texts;
mod walk;

pub use attributes::Nanoseconds;
pub use entry::{Entry, HardLink};
pub use event::{Flow, FoundCommand, Message, WalkEvent};
pub use limits::{DirectoryLimits, OutOfLimits, real_path};
pub use links::{LinkSlot, LinkState, LinkTable};
pub use names::{RecordNames, split_path, without_slashes};
pub use reach::Identity;
pub use settings::{
    Candidate, Compared, Comparison, InodeScan, LookupDepth, Purpose, WalkEnd, WalkHost, WalkSettings, WalkSummary,
};
pub use snapshots::{Snapshots, path_in_snapshot};
pub use walk::{walk, walk_again};
