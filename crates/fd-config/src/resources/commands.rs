//! `DisableCommand`: which of the Director's commands are refused.

/// The daemon's commands in the order of its table (reference 06 §3.7); trailing blanks and `=` belong to the names.
pub const COMMANDS: [&str; 34] = [
    "backup",
    "cancel",
    "setdebug=",
    "setbandwidth=",
    "snapshot",
    "estimate",
    "Hello",
    "fileset",
    "JobId=",
    "level = ",
    "restore ",
    "endrestore",
    "session",
    "status",
    ".status",
    "storage ",
    "verify",
    "component",
    "RunBeforeNow",
    "RunBeforeJob",
    "RunAfterJob",
    "Run",
    "accurate",
    "restoreobject",
    "sm_dump",
    "stop",
    "proxy",
    "caps",
    "testnetwork",
    "PluginFeatures",
    "restorefilelist",
    "statistics",
    "query",
    "pluginoptions",
];

/// A set of [`COMMANDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DisabledCommands(u64);

impl DisabledCommands {
    /// Disables the first command that begins with `item`, ignoring case, and only that one. `false`: there is none.
    pub(crate) fn disable(&mut self, item: &[u8]) -> bool {
        let found = COMMANDS.iter().position(|command| {
            command.as_bytes().get(..item.len()).is_some_and(|head| head.eq_ignore_ascii_case(item))
        });
        if let Some(index) = found {
            self.0 |= 1 << index;
        }
        found.is_some()
    }

    /// Whether this command, spelled as in [`COMMANDS`], is disabled.
    pub fn contains(self, command: &str) -> bool {
        COMMANDS.iter().position(|known| *known == command).is_some_and(|index| self.0 & (1 << index) != 0)
    }

    /// What is disabled here or there: the `FileDaemon`'s list and the calling Director's both count.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether nothing is disabled.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_disables_the_first_match_only() {
        let mut disabled = DisabledCommands::default();
        assert!(disabled.disable(b"RUN"));
        assert!(disabled.contains("RunBeforeNow"));
        assert!(!disabled.contains("RunBeforeJob"));
        assert!(!disabled.contains("Run"));
        assert!(disabled.disable(b"s"));
        assert!(disabled.contains("setdebug="));
        assert!(disabled.disable(b""));
        assert!(disabled.contains("backup"));
        assert!(!disabled.disable(b"foo"));
        assert!(!disabled.disable(b"backup now"));
    }
}
