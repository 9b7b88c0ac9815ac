//! Asks plugins about files of the catalog that the job has not seen (reference 07 §5.11).

use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_messages::JobLog;
use fd_plugins::{Gone, JobPlugins, Status};

use crate::shared::backup_host::{BackupHost, Surroundings, Way};

/// Why the plugins could not be asked.
pub(crate) enum CheckError {
    /// A plugin is gone.
    Gone(Gone),
    /// A plugin has said that the job can't go on, with this text.
    Fatal(Vec<u8>),
}

/// See the module.
pub(crate) struct FileCheck<'c> {
    plugins: &'c JobPlugins,
    surroundings: Surroundings<'c>,
    log: &'c dyn JobLog,
    /// Files of the job.
    pub(crate) files: u32,
    options: Arc<EffectiveOptions>,
}

impl<'c> FileCheck<'c> {
    pub(crate) fn new(plugins: &'c JobPlugins, surroundings: Surroundings<'c>, log: &'c dyn JobLog) -> Self {
        Self { plugins, surroundings, log, files: 0, options: Arc::default() }
    }

    /// Whether a plugin says that this file still exists: then it does not count as deleted.
    pub(crate) fn exists(&self, name: &[u8]) -> Result<bool, CheckError> {
        if self.plugins.is_empty() {
            return Ok(false);
        }
        let say = |kind, text: &[u8]| self.log.message(kind, text);
        let mut host = BackupHost::new(self.surroundings, 0, &self.options, Way::Direct(&say));
        host.files = self.files;
        let found = self.plugins.find_map(&mut host, |offers, instance, host| {
            let seen = offers.check_file && instance.check_file(host, name)? == Status::Seen;
            Ok(seen.then_some(()))
        });
        match host.fatal {
            Some(text) => Err(CheckError::Fatal(text)),
            None => Ok(found.map_err(CheckError::Gone)?.is_some()),
        }
    }
}
