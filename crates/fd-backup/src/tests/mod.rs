//! Whole backups into memory.

mod accurate;
mod estimate;
mod pipeline;
mod protect;
mod sparse;
mod stream;
mod support;
mod verify_disk;
