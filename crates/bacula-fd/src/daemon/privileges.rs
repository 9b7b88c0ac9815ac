//! Becoming another user and group (reference 06 §5.3).

use std::ffi::CString;

use fd_config::StockMessage;
use fd_os::error_text;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Group, Uid, User, getuid, initgroups, setgid, setresuid, setuid};

use crate::texts;

/// Why the daemon can't become another user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PrivilegeError {
    /// The place that the stock daemon names.
    place: &'static str,
    text: String,
}

impl PrivilegeError {
    /// Why, without its frame.
    pub(crate) fn reason(&self) -> &str {
        &self.text
    }

    /// As the stock daemon prints it; the daemon of this name ends with status 1.
    pub(crate) fn message(&self, daemon: &str) -> StockMessage {
        StockMessage::termination(daemon, self.place, self.text.as_bytes())
    }
}

/// Makes an error of the place and the text for a failed call.
fn failed(place: &'static str, text: impl FnOnce(&str) -> String) -> impl FnOnce(Errno) -> PrivilegeError {
    move |errno| PrivilegeError { place, text: text(&error_text(errno as i32)) }
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
        .map_err(|_| failed("priv.c:59", |why| texts::no_user(&identity.user, why))(Errno::EINVAL))?;
    let place = if group.is_some() { "priv.c:86" } else { "priv.c:89" };
    initgroups(&name, identity.gid).map_err(failed(place, |why| texts::no_initgroups(group, &identity.user, why)))?;
    // The next two errors could not be provoked in the stock daemon: their lines are unknown.
    if let Some(group) = group {
        setgid(identity.gid).map_err(failed("priv.c", |why| texts::group_not_set(group, why)))?;
    }
    if !keep_read_all {
        return setuid(identity.uid).map_err(failed("priv.c:126", |_| texts::user_not_set(&identity.user)));
    }
    prctl::set_keepcaps(true).map_err(failed("priv.c", |why| texts::call_failed("prctl", why)))?;
    setresuid(identity.uid, identity.uid, identity.uid)
        .map_err(failed("priv.c:110", |why| texts::call_failed("setreuid", why)))?;
    fd_os::daemonize::keep_only_read_capability()
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))
        .map_err(failed("priv.c:118", |why| texts::call_failed("cap_set_proc", why)))
}

/// The user and group to become.
struct Identity {
    user: String,
    uid: Uid,
    gid: Gid,
}

fn identity(user: Option<&str>, group: Option<&str>) -> Result<Identity, PrivilegeError> {
    let entry = match user {
        Some(user) => found(User::from_name(user)).map_err(failed("priv.c:59", |why| texts::no_user(user, why)))?,
        None => found(User::from_uid(getuid())).map_err(failed("priv.c:65", texts::no_password_entry))?,
    };
    let gid = match group {
        Some(group) => {
            found(Group::from_name(group)).map_err(failed("priv.c:78", |why| texts::no_group(group, why)))?.gid
        }
        None => entry.gid,
    };
    Ok(Identity { user: entry.name, uid: entry.uid, gid })
}

/// An entry; one that is missing is error 0, `Success`, as in the stock daemon.
fn found<T>(entry: nix::Result<Option<T>>) -> nix::Result<T> {
    entry?.ok_or(Errno::UnknownErrno)
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
