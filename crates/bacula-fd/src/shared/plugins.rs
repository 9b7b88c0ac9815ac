//! The plugins that are loaded, and those of a connection.

use std::sync::Arc;

use fd_messages::MessageType;
use fd_os::lock::Mutex;
use fd_plugins::{Host, JobFacts, JobPlugins, Plugin, PluginInfo};

use crate::shared::facts::Facts;
use crate::shared::held::Held;

/// The name of each plugin: its file without the end.
pub(crate) fn names(plugins: &[Arc<dyn Plugin>]) -> Vec<Vec<u8>> {
    plugins.iter().map(|plugin| name_of(plugin.info()).to_vec()).collect()
}

/// `name(version)` of each plugin.
pub(crate) fn names_and_versions(plugins: &[Arc<dyn Plugin>]) -> Vec<Vec<u8>> {
    let name = |plugin: &Arc<dyn Plugin>| [name_of(plugin.info()), b"(", &plugin.info().version, b")"].concat();
    plugins.iter().map(name).collect()
}

/// Unlike the name that commands use, it ends at the last end of a plugin's file.
fn name_of(info: &PluginInfo) -> &[u8] {
    info.file.strip_suffix(PluginInfo::FILE_END).unwrap_or(&info.file)
}

/// The plugins of one connection, which may be a job's.
#[derive(Debug)]
pub(crate) struct Plugged {
    /// Their contexts.
    pub plugins: Arc<JobPlugins>,
    /// What they may ask.
    pub facts: Arc<Facts>,
    /// What they have said while a cancel was told.
    said: Mutex<Vec<(MessageType, Vec<u8>)>>,
}

impl Plugged {
    /// These plugins.
    pub(crate) fn new(plugins: JobPlugins, facts: Arc<Facts>) -> Self {
        Self { plugins: Arc::new(plugins), facts, said: Mutex::default() }
    }

    /// Tells them once that the job is canceled. Any thread may do so.
    pub(crate) fn cancel(&self) {
        let mut host = Aside { facts: &self.facts, said: Held::default() };
        self.plugins.cancel(&mut host);
        self.said.lock().extend(host.said.into_messages());
    }

    /// Takes what they have said meanwhile.
    pub(crate) fn take_said(&self) -> Vec<(MessageType, Vec<u8>)> {
        std::mem::take(&mut *self.said.lock())
    }
}

/// The host of calls on another thread than the connection's.
struct Aside<'f> {
    facts: &'f Facts,
    said: Held,
}

impl Host for Aside<'_> {
    fn facts(&self) -> &dyn JobFacts {
        self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.said.push(kind, text);
    }
}
