//! Paths and commands as they are written.

pub(crate) mod plain_path;
pub(crate) mod program;
pub(crate) mod strip;
