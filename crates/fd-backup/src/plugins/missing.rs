//! Messages about plugins that are not there (reference 07 §4, §5.2).

use fd_messages::MessageType;
use fd_plugins::{JobPlugins, Lookup, NamedPlugin};

use crate::texts::{self, PluginPlace};

/// The plugin of a command, or what is said instead.
pub(crate) enum Named<'j> {
    /// This one.
    Plugin(NamedPlugin<'j>),
    /// None, and nothing is said: the command has no name.
    Silent,
    /// It is there and takes no part in the job.
    TakesNoPart,
    /// None, and this is said.
    Missing(MessageType, Vec<u8>),
}

/// The plugin of a command of the FileSet.
pub(crate) fn named<'j>(plugins: &'j JobPlugins, place: PluginPlace, command: &[u8]) -> Named<'j> {
    match plugins.named(command) {
        Lookup::Found(plugin) => Named::Plugin(plugin),
        Lookup::Failed => Named::Missing(MessageType::Fatal, texts::plugin_failed_before(command)),
        _ if plugins.is_empty() => Named::Missing(MessageType::Fatal, texts::plugin_not_loaded(place, command)),
        Lookup::Nameless => Named::Silent,
        Lookup::Disabled => Named::TakesNoPart,
        Lookup::NotFound | Lookup::NoPlugins => {
            Named::Missing(MessageType::Fatal, texts::plugin_not_found(place, command))
        }
        Lookup::Malformed => Named::Missing(MessageType::Error, texts::malformed_command(command)),
    }
}
