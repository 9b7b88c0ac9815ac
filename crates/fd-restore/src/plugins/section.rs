//! Whose the records between two plugin-name records are (reference 07 §7.4).

use fd_messages::MessageType;
use fd_plugins::Lookup;

use super::access::PluginAccess;
use super::current::CurrentPlugin;
use crate::report::Report;
use crate::texts;

/// Whose the records are that come now.
pub(crate) enum Section<'j> {
    /// They are not of a plugin.
    Outside,
    /// A plugin has saved them, and the daemon restores them as ordinary files.
    Core,
    /// The plugin that has saved them has failed in this job: nothing is restored. A part of what
    /// it keeps together would look like the whole.
    Lost,
    /// This plugin restores them.
    Plugin(Box<CurrentPlugin<'j>>),
}

impl<'j> Section<'j> {
    /// The records of this command begin.
    pub(crate) fn begin(access: Option<&'j PluginAccess>, command: &[u8], report: &mut Report<'_>) -> Self {
        // Without any plugin the stock daemon says nothing.
        let Some(access) = access else { return Self::Core };
        match access.plugins.named(command) {
            Lookup::Found(plugin) if plugin.offers().restore => CurrentPlugin::begin(plugin, access, command, report)
                .map_or_else(
                    |lost| if lost { Self::Lost } else { Self::Core },
                    |plugin| Self::Plugin(Box::new(plugin)),
                ),
            Lookup::Failed => Self::Lost,
            Lookup::NotFound => {
                report.now(MessageType::Warning, &texts::plugin_not_found(command));
                Self::Core
            }
            Lookup::Malformed => {
                report.now(MessageType::Error, &texts::malformed_command(command));
                Self::Core
            }
            Lookup::Found(_) | Lookup::Disabled | Lookup::NoPlugins | Lookup::Nameless => Self::Core,
        }
    }

    /// The plugin that restores what comes.
    pub(crate) fn plugin(&mut self) -> Option<&mut CurrentPlugin<'j>> {
        match self {
            Self::Plugin(plugin) => Some(plugin),
            Self::Outside | Self::Core | Self::Lost => None,
        }
    }

    /// Whether a plugin takes the data of the current file.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Plugin(plugin) if plugin.is_open())
    }

    /// Whether the plugin has failed.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Plugin(plugin) => plugin.is_lost(),
            Self::Lost => true,
            Self::Outside | Self::Core => false,
        }
    }

    /// Whether the records are those of a plugin, whoever restores them.
    pub(crate) const fn is_of_plugin(&self) -> bool {
        !matches!(self, Self::Outside)
    }
}
