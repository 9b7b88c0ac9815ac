//! Tests of whole backups into memory.

mod accurate;
mod changes;
mod estimate;
mod pipeline;
mod protect;
mod sparse;
mod stream;
pub(crate) mod support;
mod verify_disk;
