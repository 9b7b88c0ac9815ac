//! What the threads of a backup share: its order, its state, and what they work on.
//!
//! - `plan`: what is to be done, which never changes; `job`: how far it is.
//! - `batch`: what a worker takes at a time.
//! - `threads`: how threads begin and end; `depth`: how many workers there should be; `meter`: how
//!   long one waits for storage.
//! - `backup_host`: what plugins may ask and change meanwhile; `changes`: their changes of the
//!   FileSet.

pub(crate) mod backup_host;
pub(crate) mod batch;
pub(crate) mod changes;
pub(crate) mod depth;
pub(crate) mod job;
pub(crate) mod meter;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod schedule;
pub(crate) mod threads;
