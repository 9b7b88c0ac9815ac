//! The walk over a FileSet: entries in exactly the order of the reference, each with its attributes, its options and
//! its hard-link role (reference 03 §5–9).
//!
//! The walk runs on one thread and hands [`WalkEvent`]s to a sink. It stats each entry once, follows directories with
//! an explicit stack, keeps a bounded number of them open, and holds at most one chunk of names per level.
//! Not here: reading file contents, ACLs and attributes; sending; the FileIndex, which the consumer counts.

mod attributes;
mod directory;
mod entry;
mod event;
mod fs_types;
mod limits;
mod links;
mod names;
mod reach;
mod root;
mod settings;
pub mod texts;
mod walk;

pub use attributes::Nanoseconds;
pub use entry::{Entry, HardLink};
pub use event::{Flow, Message, WalkEvent};
pub use limits::{DirectoryLimits, real_path};
pub use links::{LinkSlot, LinkState};
pub use names::RecordNames;
pub use reach::{Identity, reopen};
pub use settings::{Candidate, Comparison, Purpose, WalkEnd, WalkHost, WalkSettings, WalkSummary};
pub use walk::walk;
