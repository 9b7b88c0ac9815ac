//! The way of a message to where the configuration sends it: lines on this host, mail, and the
//! system's log.

pub(crate) mod local;
pub(crate) mod programs;
pub(crate) mod writer;
