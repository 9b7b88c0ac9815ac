//! Paths of open objects in `/proc`, and what takes their place where `/proc` is not mounted: in a
//! rescue system's root, in a jail.
//!
//! Some calls take no handle (`O_PATH`). With `/proc` they get the path of the handle there, which
//! leads to that very object.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sched::CloneFlags;
use nix::sys::stat::{fstat, fstatat};

/// A path of an open object: following it leads to the very object that is open, even if that is a
/// symbolic link or its own path means another object by now.
pub(crate) fn descriptor_path(file: BorrowedFd<'_>) -> Vec<u8> {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes()
}

/// Whether open objects have paths in `/proc`.
pub fn has_proc() -> bool {
    rustix::fs::access(c"/proc/self/fd", rustix::fs::Access::EXISTS).is_ok()
}

/// Does `work` in a directory, so that a name alone leads to what is in it: for the calls that take
/// no directory. Another thread does it, because the other threads' directory must not change.
pub(crate) fn inside<T: Send>(
    directory: BorrowedFd<'_>,
    work: impl FnOnce() -> Result<T, Errno> + Send,
) -> Result<T, Errno> {
    let there = || {
        nix::sched::unshare(CloneFlags::CLONE_FS)?;
        nix::unistd::fchdir(directory)?;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("directory".to_owned()).spawn_scoped(scope, there);
        thread.map_err(|_| Errno::EAGAIN)?.join().unwrap_or(Err(Errno::EIO))
    })
}

/// Fails unless the name leads to the object, and no other user can change that: the name is used
/// in its place.
///
/// # Errors
/// `ENXIO` where others may change names. The kernel's; `ENOENT` if the name leads elsewhere.
pub(crate) fn must_be(object: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let of_others = |mode: u32| mode & 0o022 != 0;
    let folder = fstat(directory)?;
    let us = nix::unistd::geteuid().as_raw();
    if of_others(folder.st_mode) || ![0, us].contains(&folder.st_uid) {
        return Err(Errno::ENXIO);
    }
    let (held, there) = (fstat(object)?, fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?);
    if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino) { Ok(()) } else { Err(Errno::ENOENT) }
}
