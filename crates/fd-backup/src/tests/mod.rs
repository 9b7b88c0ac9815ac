//! Whole backups into memory.

mod pipeline;
mod sparse;
mod stream;
mod support;
