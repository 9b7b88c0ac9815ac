//! The plugins that a FileSet names. None can be loaded yet: the messages say so, in the stock
//! daemon's words.

use std::sync::Arc;

use fd_records::FileType;
use fd_walk::Entry;

use crate::texts::{self, PluginPlace};

/// The names of the plugins in the Plugin Directory (`bpipe` for `bpipe-fd.so`). They decide the
/// message only: if there are other plugins, the stock daemon searches for the right one and
/// doesn't find it.
#[derive(Clone, Debug, Default)]
pub struct PluginNames(Arc<[Vec<u8>]>);

impl PluginNames {
    /// These names.
    pub fn new(names: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether there is no plugin.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are plugins, but not the one of this command, which the stock daemon would
    /// load.
    fn are_others(&self, command: &[u8]) -> bool {
        let name = command.split(|byte| *byte == b':').next().unwrap_or_default();
        !self.is_empty() && !self.0.iter().any(|known| known == name)
    }

    /// The message about a plugin command.
    pub(crate) fn missing_command(&self, place: PluginPlace, command: &[u8]) -> Vec<u8> {
        if self.are_others(command) {
            texts::plugin_not_found(place, command)
        } else {
            texts::plugin_not_loaded(place, command)
        }
    }

    /// The messages about the plugin of an Options block: one or two.
    pub(crate) fn missing_options(&self, command: &[u8]) -> (Option<Vec<u8>>, Vec<u8>) {
        let first = (!self.are_others(command)).then(|| texts::plugin_not_loaded(PluginPlace::Options, command));
        (first, texts::plugin_not_found(PluginPlace::Options, command))
    }
}

/// The plugin of the options that would save this entry: files only, and all files of an Include if
/// its last block with a plugin names it (reference 07 §5.7).
pub(crate) fn options_plugin(entry: &Entry) -> Option<Arc<[u8]>> {
    let plugin = entry.options.plugin.as_ref()?;
    matches!(entry.file_type, FileType::Regular | FileType::EmptyFile).then(|| Arc::clone(plugin))
}
