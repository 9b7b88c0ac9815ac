//! Tests of whole backups into memory.

mod accurate;
mod changes;
mod depth;
mod estimate;
pub(crate) mod fake;
#[cfg(feature = "models")]
mod models;
mod pipeline;
mod plugins;
mod protect;
mod sparse;
mod stream;
pub(crate) mod support;
mod verify_disk;
mod within_calls;
