//! The directories that a restore works in: reached component by component through handles, so that
//! neither another user nor a record on the volume can redirect a write.
//!
//! Not here: what is created in the directories (`file`), and messages.

mod directories;
mod folded;
mod memory;
mod output_path;
mod step;

pub(crate) use directories::{Directories, MakeDirectory, OpenError, is_unfinished_directory};
pub(crate) use output_path::{Base, LONGEST, OutputPath, PathError};
pub(crate) use step::LinkRefusal;
pub use step::LinkRule;
