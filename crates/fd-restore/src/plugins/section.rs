//! Whose the records between two plugin-name records are (reference 07 §7.4).

use fd_messages::MessageType;
use fd_plugins::{CommandOfVolume, Lookup, permits_program};

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
    /// No plugin gets them: they are of a command that only the volume says. Nothing is restored.
    Refused,
    /// This plugin restores them.
    Plugin(Box<CurrentPlugin<'j>>),
}

impl<'j> Section<'j> {
    /// The records of this command begin. `is_told`: so did those before, and what is the same for
    /// all of them has been said.
    pub(crate) fn begin(
        access: Option<&'j PluginAccess>,
        command: &[u8],
        is_told: bool,
        report: &mut Report<'_>,
    ) -> Self {
        // Without any plugin the stock daemon says nothing.
        let Some(access) = access else { return Self::Core };
        match access.plugins.named(command) {
            Lookup::Found(mut plugin) if plugin.offers().restore => {
                let program = plugin.call(|instance| Ok(instance.program_of_volume(command))).ok().flatten();
                if let Some(refusal) = refusal(access, command, program.as_deref()) {
                    if !is_told {
                        report.now(MessageType::Error, &refusal);
                    }
                    return Self::Refused;
                }
                if program.is_none() && !is_told {
                    report.now(MessageType::Info, &texts::volume_asks_plugin(plugin.info().name(), command));
                }
                CurrentPlugin::begin(plugin, access, command, program, report).map_or_else(
                    |lost| if lost { Self::Lost } else { Self::Core },
                    |plugin| Self::Plugin(Box::new(plugin)),
                )
            }
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
            Self::Outside | Self::Core | Self::Lost | Self::Refused => None,
        }
    }

    /// Whether the plugin has failed.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Plugin(plugin) => plugin.is_lost(),
            Self::Lost => true,
            Self::Outside | Self::Core | Self::Refused => false,
        }
    }

    /// Whether another file can only come behind a record that ends this: a plugin that has got a
    /// file reports a second one itself.
    pub(crate) const fn waits_for_end(&self) -> bool {
        match self {
            Self::Outside => false,
            Self::Core | Self::Lost | Self::Refused => true,
            Self::Plugin(plugin) => !plugin.has_file(),
        }
    }

    /// Whether the command was refused.
    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }

    /// Whether the records are those of a plugin, whoever restores them.
    pub(crate) const fn is_of_plugin(&self) -> bool {
        !matches!(self, Self::Outside)
    }
}

/// Why a command of the volume is not run; `None` if it may be. `program` is what it would run.
fn refusal(access: &PluginAccess, command: &[u8], program: Option<&[u8]>) -> Option<Vec<u8>> {
    let allowed = access.facts.allowed_programs();
    match access.facts.command_of_volume(command) {
        CommandOfVolume::Ordered => None,
        CommandOfVolume::Never => Some(texts::commands_of_volumes_are_off(command)),
        CommandOfVolume::Unknown if program.is_some_and(|program| permits_program(program, allowed)) => None,
        CommandOfVolume::Unknown => Some(texts::unknown_command(command)),
    }
}
