//! The directories that a restore works in: reached component by component through handles, so that nothing that
//! another user does, and nothing that stands on the volume, can lead a write elsewhere.
//!
//! Not here: what is created in the directories (`create`), and what the operator is told.

mod directories;
mod memory;
mod output_path;
mod step;

pub(crate) use directories::{Directories, MakeDirectory, OpenError};
pub(crate) use output_path::{Base, OutputPath, PathError};
pub(crate) use step::LinkRefusal;
