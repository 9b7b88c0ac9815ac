//! Files that the daemon writes on this host, opened so that no other user can choose which file
//! that is.
//!
//! The working and pid directories may belong to another user than the daemon's, and that user can
//! put links and FIFOs there. So nothing here follows a link in such a place, waits for the other
//! end of a FIFO, or writes to a file that has another name elsewhere.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// `DIRECTORY/bacula-fd.PORT.WHAT`: a file of the daemon that listens on this port.
pub(crate) fn path(directory: &Path, port: u16, what: &str) -> PathBuf {
    directory.join(format!("bacula-fd.{port}.{what}"))
}

/// All of a file.
///
/// # Errors
/// The system's, and [`io::ErrorKind::FileTooLarge`] for one of more bytes than `most`.
pub(crate) fn content(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if read as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

/// Whether there is no file of this name, by the error of opening it. A link that leads nowhere is
/// one: what it leads to may be on a file system that is not mounted yet.
pub(crate) fn is_missing(error: &io::Error, path: &Path) -> bool {
    let is_not_found = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    is_not_found(error) && fs::symlink_metadata(path).is_err_and(|error| is_not_found(&error))
}

/// Opens the file for reading and writing if it is one that the daemon would make: a regular file
/// of its own user, with one name and this mode. Otherwise, or if there is none, a new one is made
/// in its place.
///
/// # Errors
/// When what is there can't be looked at for the moment ([`lacks_something`]), or can't be removed,
/// or nothing can be created.
pub(crate) fn open(path: &Path, mode: u32) -> io::Result<File> {
    let is_good = |about: &Metadata| is_own(about) && about.mode() & 0o7777 == mode;
    open_or_create(OpenOptions::new().read(true).write(true), path, mode, is_good)
}

/// The same, whatever the mode of the file that is there: an operator may have changed it. For root
/// a file of another user is as good: the previous daemon may have run as that user.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_any_mode(path: &Path, mode: u32) -> io::Result<File> {
    open_or_create(OpenOptions::new().read(true).write(true), path, mode, is_plain)
}

/// [`open_any_mode`] for a file that only grows.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_to_append(path: &Path, mode: u32) -> io::Result<File> {
    open_or_create(OpenOptions::new().read(true).append(true), path, mode, is_plain)
}

/// Makes a new file of this mode in the place of whatever is there.
///
/// # Errors
/// As [`open`].
pub(crate) fn create(path: &Path, mode: u32) -> io::Result<File> {
    create_anew(OpenOptions::new().read(true).write(true), path, mode)
}

/// Puts a file of this mode and content in the place of whatever is there, so that after a loss of
/// power there is the old file or the new one.
///
/// # Errors
/// As [`open`], and when it can't be written.
pub(crate) fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    let new = in_the_making(path);
    let mut file = create(&new, mode)?;
    file.write_all(content)?;
    file.sync_data()?;
    fs::rename(&new, path)?;
    // Without it the name may lead to the old file, or to none, after a loss of power.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// The file that becomes the one of this name. That of a daemon that was killed while it wrote is
/// left.
pub(crate) fn in_the_making(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Opens a file of the daemon's for reading.
///
/// # Errors
/// When there is none, or what is there is not the daemon's.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    open_checked(OpenOptions::new().read(true), path, is_plain)
}

/// Opens a file of the daemon's own user, with one name and this mode, for reading.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_private(path: &Path, mode: u32) -> io::Result<File> {
    open_checked(OpenOptions::new().read(true), path, |about| is_own(about) && about.mode() & 0o7777 == mode)
}

/// How a place that the configuration names is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writing {
    /// Behind what is there.
    Append,
    /// Instead of what is there.
    Anew,
}

/// Opens a place that the operator has chosen, such as a log in `/var/log`, `/dev/null` or
/// `/dev/stdout`. In a directory that only root and the daemon's user can write to it may be a link
/// or a FIFO that is being read; elsewhere it has to be a regular file with one name, or a
/// character device. A FIFO without a reader is an error at once.
///
/// # Errors
/// The system's, and [`io::ErrorKind::PermissionDenied`] for what may not be written to.
pub(crate) fn open_output(path: &Path, writing: Writing, mode: u32) -> io::Result<File> {
    let trusted = is_trusted(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let mut options = OpenOptions::new();
    options.write(true).append(writing == Writing::Append).create(true).mode(mode);
    let no_follow = if trusted { OFlag::empty() } else { OFlag::O_NOFOLLOW };
    let flags = no_follow | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = options.custom_flags(flags.bits()).open(path)?;
    let about = file.metadata()?;
    let is_safe = about.is_file() && about.nlink() == 1 || about.file_type().is_char_device();
    if !(trusted || is_safe) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if writing == Writing::Anew && about.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Whether only root and the daemon's user can create files in this directory.
fn is_trusted(directory: &Path) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    fs::metadata(directory)
        .is_ok_and(|about| (about.uid() == 0 || about.uid() == geteuid().as_raw()) && about.mode() & OTHERS_WRITE == 0)
}

fn is_own(about: &Metadata) -> bool {
    about.is_file() && about.nlink() == 1 && about.uid() == geteuid().as_raw()
}

fn is_plain(about: &Metadata) -> bool {
    is_own(about) || (about.is_file() && about.nlink() == 1 && geteuid().is_root())
}

/// Whether a file could not be opened or read for want of something that it is not to blame for, as
/// a descriptor, or a lease on a file of its own: the next try may find it good.
pub(crate) fn lacks_something(error: &io::Error) -> bool {
    const TO_BLAME: [Errno; 7] =
        [Errno::ENOENT, Errno::ELOOP, Errno::ENXIO, Errno::EISDIR, Errno::ENOTDIR, Errno::EACCES, Errno::EPERM];
    error.raw_os_error().is_some_and(|errno| !TO_BLAME.contains(&Errno::from_raw(errno)))
}

fn open_or_create(
    options: &mut OpenOptions,
    path: &Path,
    mode: u32,
    is_good: impl Fn(&Metadata) -> bool,
) -> io::Result<File> {
    match open_checked(&mut options.clone(), path, is_good) {
        Err(error) if !lacks_something(&error) => create_anew(options, path, mode),
        opened => opened,
    }
}

fn open_checked(options: &mut OpenOptions, path: &Path, is_good: impl Fn(&Metadata) -> bool) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = options.custom_flags(flags.bits()).open(path).map_err(|error| blamed(error, path))?;
    if is_good(&file.metadata()?) { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Whoever runs a file of theirs, or has a lease on it, must not keep the daemon from its own name.
fn blamed(error: io::Error, path: &Path) -> io::Error {
    const HELD: [i32; 2] = [Errno::ETXTBSY as i32, Errno::EAGAIN as i32];
    let is_held = error.raw_os_error().is_some_and(|errno| HELD.contains(&errno));
    let is_foreign = || fs::symlink_metadata(path).is_ok_and(|about| !is_own(&about));
    if is_held && is_foreign() { io::ErrorKind::PermissionDenied.into() } else { error }
}

fn create_anew(options: &mut OpenOptions, path: &Path, mode: u32) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    options.create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests;
