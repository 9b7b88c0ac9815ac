//! The pid file (reference 06 §5.2).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fd_config::StockMessage;
use fd_os::error_text;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

use crate::security::own_file;

/// The pid file of a running daemon, locked as long as this lives. It stays on disk unless
/// [`Self::remove`] is called, as the stock daemon's does after an error.
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
    /// The file is locked and names no process, or can't be locked.
    #[error("Cannot lock pid file. {} ERR={}", path.display(), error_text(*errno as i32))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The reason.
        errno: Errno,
    },
    /// The file can't be opened.
    #[error("Cannot not open pid file. {} ERR={}", path.display(), error_text(*errno as i32))]
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
    /// `DIRECTORY/bacula-fd.PORT.pid` with the number of this process (reference 06 §5.2). A file
    /// without a lock is taken over; unlike in the stock daemon nothing of its content stays. Where
    /// the number can't be written, the file is empty: a host whose disk is full is to be restored.
    ///
    /// # Errors
    /// [`PidFileError`]; the file is left as it was.
    pub(crate) fn create(directory: &Path, port: u16) -> Result<Self, PidFileError> {
        let path = own_file::path(directory, port, "pid");
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
        // A longer number of a daemon that was killed would leave digits behind: to a script that
        // reads the file, another process.
        if let Err(error) = file.write_all_at(line.as_bytes(), 0).and_then(|()| file.set_len(line.len() as u64)) {
            tracing::warn!(%error, path = %path.display(), "the pid file can't be written");
            // Half a number is another process. If this fails as well, nothing else can be done.
            let _ = file.set_len(0);
        }
        Ok(Self { path, _locked: file })
    }

    /// The process that holds the pid file of this directory and port, if one does. Nothing is
    /// changed.
    pub(crate) fn holder(directory: &Path, port: u16) -> Option<i32> {
        let mut file = own_file::read(&own_file::path(directory, port, "pid")).ok()?;
        let mut found = first_byte();
        fcntl(&file, FcntlArg::F_GETLK(&mut found)).ok()?;
        let is_held = i32::from(found.l_type) != nix::libc::F_UNLCK;
        if is_held { running(&mut file) } else { None }
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

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or_default())
}

/// An exclusive lock on the first byte, without waiting. It is that of the open file: a lock of the
/// process, which is all that Linux had before 3.15, ends when a backup has read the file.
fn lock(file: &File) -> Result<(), Errno> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&first_byte())) {
        Err(Errno::EINVAL) => fcntl(file, FcntlArg::F_SETLK(&first_byte())),
        locked => locked,
    }
    .map(drop)
}

/// Which lock.
fn first_byte() -> nix::libc::flock {
    nix::libc::flock {
        l_type: nix::libc::c_short::try_from(nix::libc::F_WRLCK).unwrap_or_default(),
        l_whence: nix::libc::c_short::try_from(nix::libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    }
}

fn running(file: &mut File) -> Option<i32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests;
