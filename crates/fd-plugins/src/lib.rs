//! Plugins: programs that save and restore what is not in the file system, such as databases
//! (reference 07).
//!
//! - `api`: the interface. A [`Plugin`] is loaded once; an [`Instance`] is its context in one job;
//!   a [`Host`] is what the daemon offers a plugin during a call. Other crates, and plugins in
//!   Rust, implement these traits.
//! - `library`: third-party plugins with the stock daemon's C interface.
//! - `job_plugins`: all plugins of one job: which of them a command means, and what becomes of
//!   those that fail.
//! - `bpipe`: [`BpipePlugin`], which saves what programs print.
//! - `export`: plugins in Rust as libraries, for other daemons too ([`export!`]); x86-64 only.
//!
//! Not here: records, the FileSet, and when a job calls what.

mod api;
mod bpipe;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the C interface has pointers")]
pub mod export;
mod job_plugins;
pub mod library;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "plugin hosts say some of them"))]
mod texts;

/// Plugins in Rust are libraries with the C interface, which is supported on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
#[macro_export]
macro_rules! export {
    ($plugin:expr) => {
        ::core::compile_error!("plugins with the C interface are supported on x86-64 only");
    };
}

pub use api::call::{Called, Gone, Io, IoDone, Status};
pub use api::event::Event;
pub use api::host::{
    AccurateAttributes, Change, CommandOfVolume, FileEvent, FileSetChange, Host, JobFacts, NoFacts, Value, Variable,
};
pub use api::options::{FilledIn, RestoreOption};
pub use api::packets::{
    ChosenFile, CreateStatus, MetadataPacket, PluginObject, Query, RestoreFile, SaveObject, SavePacket, SavedObject,
};
pub use api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};
pub use bpipe::{BpipePlugin, permits_program};
pub use job_plugins::{JobPlugins, Lookup, Malformed, NamedPlugin, package_of};
