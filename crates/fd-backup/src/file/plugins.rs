//! The plugins of the FileSet. None is loaded yet, so whoever asks for one is told so, in the stock daemon's words.

use std::sync::Arc;

use fd_records::FileType;
use fd_walk::Entry;

use crate::texts::{self, PluginPlace};

/// The names of the plugins that the Plugin Directory holds (`bpipe` of `bpipe-fd.so`). They decide only about the words:
/// where there are others, the stock daemon looks for the one that is asked for and finds it not.
#[derive(Clone, Debug, Default)]
pub struct PluginNames(Arc<[Vec<u8>]>);

impl PluginNames {
    /// These names.
    pub fn new(names: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether there is no plugin at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are plugins, and not the one of this command, which would be loaded.
    fn are_others(&self, command: &[u8]) -> bool {
        let name = command.split(|byte| *byte == b':').next().unwrap_or_default();
        !self.is_empty() && !self.0.iter().any(|known| known == name)
    }

    /// What is told about a plugin command.
    pub(crate) fn lacks_command(&self, place: PluginPlace, command: &[u8]) -> Vec<u8> {
        if self.are_others(command) {
            texts::plugin_not_found(place, command)
        } else {
            texts::plugin_not_loaded(place, command)
        }
    }

    /// What is told about the plugin of an Options block: one message or two.
    pub(crate) fn lacks_options(&self, command: &[u8]) -> (Option<Vec<u8>>, Vec<u8>) {
        let first = (!self.are_others(command)).then(|| texts::plugin_not_loaded(PluginPlace::Options, command));
        (first, texts::plugin_not_found(PluginPlace::Options, command))
    }
}

/// The plugin that the Options want to save this entry: files only, and all of an Include whose last block with a plugin
/// names it (reference 07 §5.7).
pub(crate) fn options_plugin(entry: &Entry) -> Option<Arc<[u8]>> {
    let plugin = entry.options.plugin.as_ref()?;
    matches!(entry.file_type, FileType::Regular | FileType::EmptyFile).then(|| Arc::clone(plugin))
}
