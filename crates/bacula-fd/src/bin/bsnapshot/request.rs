//! What the daemon wants: the environment variables (reference 07 §12.4).

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::arguments::Arguments;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// File systems below a mount point that `/proc/mounts` doesn't list.
    Subvolumes,
    /// Whether there can be a snapshot of a mount point.
    Support,
    /// Make one.
    Create,
    /// Make its files readable somewhere.
    Mount,
    /// Undo that.
    Unmount,
    /// Delete it.
    Delete,
    /// All snapshots of a device that this program has made.
    List,
    /// One of them.
    Query,
    /// `-t`: what could be done on this host.
    Check,
}

impl Action {
    const NAMES: [(&str, Self); 9] = [
        ("subvolumes", Self::Subvolumes),
        ("support", Self::Support),
        ("create", Self::Create),
        ("mount", Self::Mount),
        ("unmount", Self::Unmount),
        ("delete", Self::Delete),
        ("list", Self::List),
        ("query", Self::Query),
        ("check", Self::Check),
    ];

    pub(crate) fn named(name: &OsStr) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| name == *known).map(|(_, action)| action)
    }

    /// Whether it is not to be done without the configuration.
    pub(crate) const fn needs_settings(self) -> bool {
        !matches!(self, Self::Subvolumes | Self::Support | Self::Unmount | Self::Delete)
    }

    /// Whether a job's snapshot may come of it. What is there may be removed at any time.
    pub(crate) const fn starts_something(self) -> bool {
        !matches!(self, Self::Unmount | Self::Delete)
    }
}

/// One action with all that is said about it. What is not said is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// `SNAPSHOT_ACTION`; none if it is missing or unknown.
    pub(crate) action: Option<Action>,
    /// `SNAPSHOT_NAME`: the job's unique name.
    pub(crate) name: OsString,
    /// `SNAPSHOT_VOLUME`: what `create` has answered.
    pub(crate) volume: OsString,
    /// `SNAPSHOT_DEVICE`: what is mounted, or what `support` has answered.
    pub(crate) device: OsString,
    /// `SNAPSHOT_TYPE`: what `support` has answered.
    pub(crate) kind: OsString,
    /// `SNAPSHOT_FSTYPE`.
    pub(crate) file_system: OsString,
    /// `SNAPSHOT_MOUNTPOINT`.
    pub(crate) mount_point: PathBuf,
    /// `SNAPSHOT_SNAPMOUNTPOINT`: what `mount` has answered.
    pub(crate) snapshot_mount_point: PathBuf,
}

impl Request {
    /// Reads it; options come before variables.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<OsString>, arguments: &Arguments) -> Self {
        let get = |name: &str| variable(&format!("SNAPSHOT_{name}")).unwrap_or_default();
        Self {
            action: if arguments.check { Some(Action::Check) } else { Action::named(&get("ACTION")) },
            name: get("NAME"),
            volume: arguments.volume.clone().unwrap_or_else(|| get("VOLUME")),
            device: get("DEVICE"),
            kind: arguments.kind.clone().unwrap_or_else(|| get("TYPE")),
            file_system: get("FSTYPE"),
            mount_point: get("MOUNTPOINT").into(),
            snapshot_mount_point: get("SNAPMOUNTPOINT").into(),
        }
    }
}
