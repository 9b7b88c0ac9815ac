//! Becoming another user and group (reference 06 §5.3).

use std::ffi::CString;

use fd_config::StockMessage;
use fd_os::error_text;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Group, Uid, User, getuid, initgroups, setgid, setresuid, setuid};

/// Why the daemon can't become another user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PrivilegeError {
    /// `-u`: no such user.
    #[error("Could not find userid={user}: ERR={}", error_text(*errno as i32))]
    NoUser {
        /// The name.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// Without `-u`: the current user has no entry.
    #[error("Could not find password entry. ERR={}", error_text(*errno as i32))]
    NoEntry {
        /// The reason.
        errno: Errno,
    },
    /// `-g`: no such group.
    #[error("Could not find group={group}: ERR={}", error_text(*errno as i32))]
    NoGroup {
        /// The name.
        group: String,
        /// The reason.
        errno: Errno,
    },
    /// The supplementary groups can't be set, with `-g`.
    #[error("Could not initgroups for group={group}, userid={user}: ERR={}", error_text(*errno as i32))]
    InitGroupsOfGroup {
        /// The group.
        group: String,
        /// The user.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// The supplementary groups can't be set.
    #[error("Could not initgroups for userid={user}: ERR={}", error_text(*errno as i32))]
    InitGroups {
        /// The user.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// setgid failed.
    #[error("Could not set group={group}: ERR={}", error_text(*errno as i32))]
    SetGroup {
        /// The group.
        group: String,
        /// The reason.
        errno: Errno,
    },
    /// prctl failed.
    #[error("prctl failed: ERR={}", error_text(*errno as i32))]
    KeepCapabilities {
        /// The reason.
        errno: Errno,
    },
    /// setreuid failed.
    #[error("setreuid failed: ERR={}", error_text(*errno as i32))]
    SetUserKeeping {
        /// The reason.
        errno: Errno,
    },
    /// The capability can't be kept.
    #[error("cap_set_proc failed: ERR={}", error_text(*errno as i32))]
    SetCapabilities {
        /// The reason.
        errno: Errno,
    },
    /// setuid failed.
    #[error("Could not set specified userid: {user}")]
    SetUser {
        /// The user.
        user: String,
    },
}

impl PrivilegeError {
    /// As the stock daemon prints it; the daemon of this name ends with status 1.
    pub(crate) fn message(&self, daemon: &str) -> StockMessage {
        let place = match self {
            Self::NoUser { .. } => "priv.c:59",
            Self::NoEntry { .. } => "priv.c:65",
            Self::NoGroup { .. } => "priv.c:78",
            Self::InitGroupsOfGroup { .. } => "priv.c:86",
            Self::InitGroups { .. } => "priv.c:89",
            // These two could not be provoked in the stock daemon.
            Self::SetGroup { .. } | Self::KeepCapabilities { .. } => "priv.c",
            Self::SetUserKeeping { .. } => "priv.c:110",
            Self::SetCapabilities { .. } => "priv.c:118",
            Self::SetUser { .. } => "priv.c:126",
        };
        StockMessage::termination(daemon, place, self.to_string().as_bytes())
    }
}

/// Becomes `user` and `group`. Without both it does nothing. With `keep_read_all` the calling
/// thread, and those that it starts later, may still read every file. Call it before there are
/// other threads.
///
/// `-u` alone keeps the group of the caller: that is how the stock daemon does it, and start
/// scripts depend on it.
///
/// # Errors
/// [`PrivilegeError`]; what was done until then stays done, so the daemon must end.
pub(crate) fn drop_privileges(
    user: Option<&str>,
    group: Option<&str>,
    keep_read_all: bool,
) -> Result<(), PrivilegeError> {
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    let identity = identity(user, group)?;
    let name = CString::new(identity.user.as_str())
        .map_err(|_| PrivilegeError::NoUser { user: identity.user.clone(), errno: Errno::EINVAL })?;
    initgroups(&name, identity.gid).map_err(|errno| match group {
        Some(group) => {
            PrivilegeError::InitGroupsOfGroup { group: group.to_owned(), user: identity.user.clone(), errno }
        }
        None => PrivilegeError::InitGroups { user: identity.user.clone(), errno },
    })?;
    if let Some(group) = group {
        setgid(identity.gid).map_err(|errno| PrivilegeError::SetGroup { group: group.to_owned(), errno })?;
    }
    if !keep_read_all {
        return setuid(identity.uid).map_err(|_| PrivilegeError::SetUser { user: identity.user });
    }
    prctl::set_keepcaps(true).map_err(|errno| PrivilegeError::KeepCapabilities { errno })?;
    setresuid(identity.uid, identity.uid, identity.uid).map_err(|errno| PrivilegeError::SetUserKeeping { errno })?;
    fd_os::daemonize::keep_only_read_capability().map_err(|error| PrivilegeError::SetCapabilities {
        errno: Errno::from_raw(error.raw_os_error().unwrap_or_default()),
    })
}

/// The user and group to become.
struct Identity {
    user: String,
    uid: Uid,
    gid: Gid,
}

fn identity(user: Option<&str>, group: Option<&str>) -> Result<Identity, PrivilegeError> {
    let found = match user {
        Some(user) => User::from_name(user)
            .and_then(|found| found.ok_or(Errno::UnknownErrno))
            .map_err(|errno| PrivilegeError::NoUser { user: user.to_owned(), errno })?,
        None => User::from_uid(getuid())
            .and_then(|found| found.ok_or(Errno::UnknownErrno))
            .map_err(|errno| PrivilegeError::NoEntry { errno })?,
    };
    let gid = match group {
        Some(group) => {
            Group::from_name(group)
                .and_then(|found| found.ok_or(Errno::UnknownErrno))
                .map_err(|errno| PrivilegeError::NoGroup { group: group.to_owned(), errno })?
                .gid
        }
        None => found.gid,
    };
    Ok(Identity { user: found.name, uid: found.uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_reported_in_the_stock_words() {
        let error = drop_privileges(Some("nosuch"), Some("nosuch"), false).unwrap_err();
        let expected = "x-fd: ERROR TERMINATION at priv.c:59\nCould not find userid=nosuch: ERR=Success\n";
        assert_eq!(String::from_utf8_lossy(error.message("x-fd").text()), expected);
        let error = drop_privileges(None, Some("nosuch"), false).unwrap_err();
        let expected = "x-fd: ERROR TERMINATION at priv.c:78\nCould not find group=nosuch: ERR=Success\n";
        assert_eq!(String::from_utf8_lossy(error.message("x-fd").text()), expected);
        assert_eq!(drop_privileges(None, None, false), Ok(()));
    }
}
