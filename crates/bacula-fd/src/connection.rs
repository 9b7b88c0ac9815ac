//! Connections that the daemon makes, and the dialogues of `fd-session` on any connection.

pub(crate) mod dial;
pub(crate) mod dialogue;
pub(crate) mod storage;
