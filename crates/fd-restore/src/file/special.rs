//! Devices and fifos that data is written to: which are permitted, and how they are opened.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use fd_messages::CancelToken;
use fd_records::Stat;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat};
use nix::sys::stat::{Mode, fstat};

use crate::texts::NoData;
use crate::tree::{Directories, OutputPath};

/// How long a fifo may be without a reader.
const FIFO_PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two attempts to open it.
const FIFO_PAUSE: Duration = Duration::from_millis(50);

/// Whether a mode is that of a special file that takes data.
pub(crate) const fn takes_data(mode: u32) -> bool {
    matches!(mode & Stat::MODE_TYPE, Stat::MODE_FIFO | Stat::MODE_CHARACTER | Stat::MODE_BLOCK)
}

/// Why a special file was not opened.
pub(crate) enum NotOpened {
    /// The data must not be written to it.
    Refused(NoData),
    /// The system refuses.
    System(Errno),
}

impl From<Errno> for NotOpened {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Opens `name` in the current directory for the data of a record with this mode, if the data may
/// be written to it. `there` is a handle of it.
pub(crate) fn open_for_data(
    directories: &Directories,
    path: &OutputPath,
    name: &[u8],
    mode: u32,
    there: &File,
    cancel: &CancelToken,
) -> Result<OwnedFd, NotOpened> {
    let found = fstat(there)?;
    if (found.st_mode ^ mode) & Stat::MODE_TYPE != 0 {
        return Err(NotOpened::Refused(NoData::OtherType { there: found.st_mode, record: mode }));
    }
    if path.floor().is_some() {
        return Err(NotOpened::Refused(NoData::BelowWhere));
    }
    if !directories.is_old(there).unwrap_or(false) {
        return Err(NotOpened::Refused(NoData::New));
    }
    let file =
        open(directories.handle().ok_or(Errno::EBADF)?, name, mode & Stat::MODE_TYPE == Stat::MODE_FIFO, cancel)?;
    let opened = fstat(&file)?;
    // Another process may have replaced it.
    if (opened.st_dev, opened.st_ino) == (found.st_dev, found.st_ino) { Ok(file) } else { Err(Errno::ESTALE.into()) }
}

/// Opens a device or fifo for writing. A fifo needs a reader, for which this waits a minute; its
/// handle does not block.
fn open(here: BorrowedFd<'_>, name: &[u8], is_fifo: bool, cancel: &CancelToken) -> Result<OwnedFd, Errno> {
    // Without blocking, so that a canceled job does not hang in it.
    let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let end = Instant::now() + FIFO_PATIENCE;
    let file = loop {
        match openat(here, name, flags, Mode::empty()) {
            Err(Errno::ENXIO) if is_fifo => {}
            other => break other?,
        }
        if Instant::now() >= end || cancel.is_canceled() {
            // The error that the stock daemon's timer causes.
            return Err(Errno::EINTR);
        }
        std::thread::sleep(FIFO_PAUSE);
    };
    if !is_fifo {
        // Not every device that does not block can be waited for.
        let status = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
        fcntl(&file, FcntlArg::F_SETFL(status - OFlag::O_NONBLOCK))?;
    }
    Ok(file)
}
