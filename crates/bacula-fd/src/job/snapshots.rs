//! Snapshots of file systems that are read instead of them (reference 07 §12).
//!
//! - `mounts`, `choice`: which file systems a FileSet needs, and where its names are read.
//! - `output`, `helper`: the program that makes snapshots.
//! - `session`: the snapshots of a job, from the first call to the last.
//! - `left`: what a daemon that died has left.

mod choice;
pub(crate) mod helper;
pub(crate) mod left;
pub(crate) mod mounts;
pub(crate) mod output;
mod remove;
pub(crate) mod scan;
pub(crate) mod session;
