//! What checks have at hand.

use std::path::PathBuf;

use fd_config::{Config, Settings};

use crate::diagnose::world::World;

/// A configuration that could be read.
#[derive(Debug)]
pub(in crate::diagnose) struct Read {
    /// Its content; keys and directories are not checked.
    pub(in crate::diagnose) config: Config,
    /// The settings, or their defaults if they can't be read.
    pub(in crate::diagnose) settings: Settings,
    /// Where the settings are, or would be.
    pub(in crate::diagnose) settings_file: PathBuf,
    /// The files that it consists of, each once.
    pub(in crate::diagnose) files: Vec<PathBuf>,
}

/// A configuration and the host that it is for.
#[derive(Clone, Copy)]
pub(in crate::diagnose) struct Case<'c> {
    pub(in crate::diagnose) read: &'c Read,
    pub(in crate::diagnose) world: &'c dyn World,
    /// Storage Daemons that the user has named.
    pub(in crate::diagnose) storages: &'c [(String, u16)],
}

impl<'c> Case<'c> {
    /// The configuration.
    pub(super) const fn config(&self) -> &'c Config {
        &self.read.config
    }
}
