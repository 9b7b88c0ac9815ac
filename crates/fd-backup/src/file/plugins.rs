//! The plugins that a FileSet names. None can be loaded yet: the messages say so, in the stock
//! daemon's words.

use std::sync::Arc;

use fd_plugins::JobPlugins;
use fd_records::FileType;
use fd_walk::Entry;

use crate::texts::{self, PluginPlace};

/// The message about a plugin command without a plugin.
pub(crate) fn missing_command(plugins: &JobPlugins, place: PluginPlace, command: &[u8]) -> Vec<u8> {
    if plugins.is_empty() { texts::plugin_not_loaded(place, command) } else { texts::plugin_not_found(place, command) }
}

/// The messages about the plugin of an Options block: one or two.
pub(crate) fn missing_options(plugins: &JobPlugins, command: &[u8]) -> (Option<Vec<u8>>, Vec<u8>) {
    let first = plugins.is_empty().then(|| texts::plugin_not_loaded(PluginPlace::Options, command));
    (first, texts::plugin_not_found(PluginPlace::Options, command))
}

/// The plugin of the options that would save this entry: files only, and all files of an Include if
/// its last block with a plugin names it (reference 07 §5.7).
pub(crate) fn options_plugin(entry: &Entry) -> Option<Arc<[u8]>> {
    let plugin = entry.options.plugin.as_ref()?;
    matches!(entry.file_type, FileType::Regular | FileType::EmptyFile).then(|| Arc::clone(plugin))
}
