//! The tests of restores once more, with 16 files at a time wherever that is possible.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests, and the helpers that tests share")]

use core::num::NonZeroU16;

#[path = "../restore/attacks.rs"]
mod attacks;
#[path = "../restore/damage.rs"]
mod damage;
#[path = "../restore/directories.rs"]
mod directories;
#[path = "../restore/encryption.rs"]
mod encryption;
#[path = "../restore/fake_plugin.rs"]
mod fake_plugin;
#[path = "../restore/messages.rs"]
mod messages;
#[path = "../restore/metadata.rs"]
mod metadata;
#[path = "../restore/mixed.rs"]
mod mixed;
#[path = "../restore/replace.rs"]
mod replace;
mod runs;
#[path = "../restore/types.rs"]
mod types;
#[path = "../restore/volume.rs"]
mod volume;

/// How many files the jobs make at a time.
const DEPTH: Option<NonZeroU16> = NonZeroU16::new(16);
