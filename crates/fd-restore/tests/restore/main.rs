//! Restores from volumes that are written in memory, into real directories.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests, and the helpers that tests share")]

mod attacks;
mod damage;
mod directories;
mod encryption;
mod fake_plugin;
mod in_turn;
mod late_links;
mod long_files;
mod messages;
mod metadata;
mod mixed;
mod plugin_volumes;
mod plugins;
mod replace;
mod types;
mod verify;
mod verify_damage;
mod verify_plugins;
mod volume;

/// How many files the jobs make at a time. `tests/overlapped` has the same tests with more.
const DEPTH: Option<std::num::NonZeroU16> = None;
