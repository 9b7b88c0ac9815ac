//! Files in the working directory that nobody but the daemon makes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// Opens the file for reading and writing if it is one that the daemon would make: a regular file of its own user, with
/// one name and this mode. Otherwise, or if there is none, a new one is made in its place.
///
/// # Errors
/// When what stands there can't be removed, or nothing can be created.
pub(crate) fn open(path: &Path, mode: u32) -> io::Result<File> {
    if let Ok(file) = open_own(path, mode) {
        return Ok(file);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

fn open_own(path: &Path, mode: u32) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    let is_own = about.is_file() && about.nlink() == 1 && about.uid() == geteuid().as_raw();
    if is_own && about.mode() & 0o7777 == mode { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}
