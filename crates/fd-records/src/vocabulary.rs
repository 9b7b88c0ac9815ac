//! Facts that all crates share, one table for each kind.

pub(crate) mod cipher;
pub(crate) mod compression;
pub(crate) mod digest;
pub(crate) mod file_type;
pub(crate) mod replace;
pub(crate) mod stream;
