//! The process: background, pid file, signals, privileges (reference 06 §5).
//!
//! Each step is a function or a small type; their order is the business of the start (reference 06 §5.1).

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fd_config::StockMessage;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Gid, Group, Uid, User, getuid, initgroups, setgid, setresuid, setuid};

use crate::security::own_file;

pub(crate) use fd_os::daemonize::Role;

/// Goes to the background (reference 06 §5.1 step 4). To be called before anything is opened and before there is a
/// second thread. With `keep_output` standard input, output and error stay what they are, for debugging.
///
/// # Errors
/// When the system does not let us.
pub(crate) fn go_background(keep_output: bool) -> io::Result<Role> {
    fd_os::daemonize::into_background(if keep_output { 3 } else { 0 })
}

/// The system's words for an error; a look-up that found nothing and failed in nothing has number 0, `Success`.
fn words(errno: Errno) -> String {
    fd_os::error_text(errno as i32)
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

/// The pid file of a running daemon, locked as long as this lives. It stays on disk unless [`Self::remove`] is called, as
/// the stock daemon's does after an error.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
    _locked: File,
}

/// Why there is no pid file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PidFileError {
    /// Another daemon holds the lock.
    #[error("bacula-fd is already running. pid={pid}, check file {}", path.display())]
    AlreadyRunning {
        /// Its process.
        pid: i32,
        /// The file.
        path: PathBuf,
    },
    /// The file is locked, and does not say by whom, or can't be locked or written.
    #[error("Cannot lock pid file. {} ERR={}", path.display(), words(*errno))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The reason.
        errno: Errno,
    },
    /// The file can't be opened.
    #[error("Cannot not open pid file. {} ERR={}", path.display(), words(*errno))]
    NotOpened {
        /// The file.
        path: PathBuf,
        /// The reason.
        errno: Errno,
    },
}

impl PidFileError {
    /// As the stock daemon prints it; the daemon of this name ends with status 1.
    pub(crate) fn message(&self, daemon: &str) -> StockMessage {
        StockMessage::termination(daemon, "bsys.c:705", self.to_string().as_bytes())
    }
}

impl PidFile {
    /// `DIRECTORY/bacula-fd.PORT.pid` with the number of this process (reference 06 §5.2). A file that nobody locks is
    /// taken over.
    ///
    /// # Errors
    /// [`PidFileError`]; the file is left as it was.
    pub(crate) fn create(directory: &Path, port: u16) -> Result<Self, PidFileError> {
        let path = directory.join(format!("bacula-fd.{port}.pid"));
        // Not truncated: if another daemon holds it, its number must stay.
        let opened = own_file::open_any_mode(&path, 0o640);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => return Err(PidFileError::NotOpened { path, errno: errno_of(&error) }),
        };
        if let Err(errno) = lock(&file) {
            return Err(match running(&mut file) {
                Some(pid) => PidFileError::AlreadyRunning { pid, path },
                None => PidFileError::Locked { path, errno },
            });
        }
        let line = format!("{}\n", std::process::id());
        match file.write_all_at(line.as_bytes(), 0) {
            Ok(()) => Ok(Self { path, _locked: file }),
            Err(error) => Err(PidFileError::Locked { path, errno: errno_of(&error) }),
        }
    }

    /// Where it is.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: the daemon ends in good order.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// An exclusive lock on the first byte, without waiting.
fn lock(file: &File) -> Result<(), Errno> {
    let request = nix::libc::flock {
        l_type: nix::libc::c_short::try_from(nix::libc::F_WRLCK).unwrap_or_default(),
        l_whence: nix::libc::c_short::try_from(nix::libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_SETLK(&request)).map(|_| ())
}

fn running(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|pid| *pid > 0)
}

/// The signals of the daemon, taken from a descriptor by a thread that waits for them (reference 06 §5.5).
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
}

/// Signals that end the daemon; the exit status is their number.
const ENDING: [Signal; 13] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGALRM,
    Signal::SIGIO,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGURG,
    Signal::SIGVTALRM,
    Signal::SIGSTKFLT,
    Signal::SIGPWR,
];
/// Signals that are taken and do nothing. There is no reload.
const IGNORED: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGCONT, Signal::SIGPROF, Signal::SIGWINCH, Signal::SIGPIPE, Signal::SIGUSR2];

impl Signals {
    /// Blocks the signals in this thread and all that it starts later, so that only [`Self::wait`] sees them. Children
    /// that `std::process::Command` starts get them unblocked.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn install() -> io::Result<Self> {
        let mask: SigSet = ENDING.into_iter().chain(IGNORED).collect();
        mask.thread_block()?;
        Ok(Self { descriptor: SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for a signal that ends the daemon and gives its number, which is the exit status. After the first one the
    /// caller ends in good order; a second one, while it does so, should end the process with status 1.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn wait(&self) -> io::Result<i32> {
        loop {
            match self.descriptor.read_signal() {
                Ok(Some(info)) => {
                    let number = i32::try_from(info.ssi_signo).unwrap_or_default();
                    if ENDING.iter().any(|ending| *ending as i32 == number) {
                        return Ok(number);
                    }
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Why the daemon can't become another user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PrivilegeError {
    /// `-u`: no such user.
    #[error("Could not find userid={user}: ERR={}", words(*errno))]
    NoUser {
        /// The name.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// Without `-u`: the current user has no entry.
    #[error("Could not find password entry. ERR={}", words(*errno))]
    NoEntry {
        /// The reason.
        errno: Errno,
    },
    /// `-g`: no such group.
    #[error("Could not find group={group}: ERR={}", words(*errno))]
    NoGroup {
        /// The name.
        group: String,
        /// The reason.
        errno: Errno,
    },
    /// The supplementary groups can't be set, with `-g`.
    #[error("Could not initgroups for group={group}, userid={user}: ERR={}", words(*errno))]
    InitGroupsOfGroup {
        /// The group.
        group: String,
        /// The user.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// The supplementary groups can't be set.
    #[error("Could not initgroups for userid={user}: ERR={}", words(*errno))]
    InitGroups {
        /// The user.
        user: String,
        /// The reason.
        errno: Errno,
    },
    /// setgid failed.
    #[error("Could not set group={group}: ERR={}", words(*errno))]
    SetGroup {
        /// The group.
        group: String,
        /// The reason.
        errno: Errno,
    },
    /// prctl failed.
    #[error("prctl failed: ERR={}", words(*errno))]
    KeepCapabilities {
        /// The reason.
        errno: Errno,
    },
    /// setreuid failed.
    #[error("setreuid failed: ERR={}", words(*errno))]
    SetUserKeeping {
        /// The reason.
        errno: Errno,
    },
    /// The capability can't be kept.
    #[error("cap_set_proc failed: ERR={}", words(*errno))]
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

/// Becomes `user` and `group` (reference 06 §5.3). Without both it does nothing. With `keep_read_all` the calling thread,
/// and those that it starts later, may still read every file. Call it before there are other threads.
///
/// `-u` alone keeps the group of the caller: that is how the stock daemon does it, and start scripts count on it.
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
    fd_os::daemonize::keep_only_read_capability()
        .map_err(|error| PrivilegeError::SetCapabilities { errno: errno_of(&error) })
}

/// Who the daemon will be.
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
mod tests;
