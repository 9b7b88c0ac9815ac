//! What the threads of the daemon share: plain state, at the bottom, that starts nothing.

pub(crate) mod collectors;
pub(crate) mod daemon;
pub(crate) mod debug;
pub(crate) mod facts;
pub(crate) mod held;
pub(crate) mod job;
pub(crate) mod known_commands;
pub(crate) mod past_jobs;
pub(crate) mod platform;
pub(crate) mod plugins;
pub(crate) mod pulses;
pub(crate) mod slots;
pub(crate) mod snapshot_journal;
pub(crate) mod state_file;
pub(crate) mod supervisor;
pub(crate) mod wanted_digests;
