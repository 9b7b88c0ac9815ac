//! The checks, each a function from the configuration and the world to what it has found.
//!
//! - `configuration`: can it be read, and does it hold together?
//! - `certificates`: TLS and PKI; `files`: what other users may read and change
//! - `directories`: working, pid and plugin directory
//! - `process`: the daemon, its user and capabilities; `host`: page cache and clock
//! - `network`: Directors and Storage Daemons

mod case;
mod certificates;
pub(super) mod configuration;
mod directories;
mod files;
mod host;
mod network;
mod process;

use crate::diagnose::finding::Finding;
use crate::diagnose::world::World;

pub(super) use case::Case;

/// A check of the configuration and what it names.
type OfCase = fn(&Case<'_>) -> Vec<Finding>;
/// A check that needs no configuration.
type OfHost = fn(&dyn World) -> Vec<Finding>;

/// What a daemon reads at its start, before it becomes another user.
pub(super) const BEFORE_THE_USER: [OfCase; 2] = [files::check, certificates::check];
/// What it uses afterwards.
pub(super) const AS_THE_USER: [OfCase; 4] = [directories::check, process::check, host::page_cache, network::check];
/// What a broken configuration does not stand in the way of.
pub(super) const OF_THE_HOST: [OfHost; 1] = [host::clock];

#[cfg(test)]
mod tests;
