//! FIFOs that a daemon reads: with the writing end a test decides how far a job comes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::error::{BedError, Result};
use crate::patience::{PATIENCE, wait_for};

/// Makes a FIFO that only we may open.
pub fn make_fifo(path: &Path) -> Result<()> {
    mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(BedError::file_errno("create", path))
}

/// Opens a FIFO for writing as soon as it has a reader.
pub fn fifo_writer(fifo: &Path) -> Result<File> {
    let open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(fifo);
    let writer = wait_for("the daemon to open the FIFO", PATIENCE, || Ok(open().map_err(|error| error.to_string())))?;
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).map_err(BedError::file_errno("make wait", fifo))?;
    Ok(writer)
}
