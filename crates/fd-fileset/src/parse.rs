//! From the lines of the Director to options, names and patterns.

pub(crate) mod draft;
pub(crate) mod flags;
pub(crate) mod letters;
pub(crate) mod line;
pub(crate) mod lists;
pub(crate) mod options;
pub(crate) mod parser;
pub(crate) mod problem;
