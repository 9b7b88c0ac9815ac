//! Which directories a Director may read: `AllowedBackupDirectories` and
//! `ExcludedBackupDirectories` (reference 03 §4.3).

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::{Arc, OnceLock};

use fd_fileset::{lies_in, plain_path};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;

use crate::directory;
use crate::held::{Held, errno};
use crate::names::{with_slash, without_slashes};
use crate::root::Root;

/// The path without links, `.` and `..`, as the kernel resolves it. Components that don't exist
/// stay as they are written.
pub fn real_path(path: &[u8]) -> Vec<u8> {
    let mut end = path.len();
    loop {
        let (there, rest) = path.split_at_checked(end).unwrap_or((path, &[]));
        if let Ok(real) = fs::canonicalize(OsStr::from_bytes(there)) {
            return plain_path(&[real.into_os_string().into_vec().as_slice(), b"/", rest].concat());
        }
        match without_slashes(there).iter().rposition(|byte| *byte == b'/') {
            Some(slash) if slash > 0 => end = slash,
            _ => return plain_path(path),
        }
    }
}

/// The path of an entry itself: links on the way are resolved, but not the entry if it is a link.
/// With a slash or dots at its end, the kernel resolves that, too.
fn real_entry(path: &[u8]) -> Vec<u8> {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match path.strip_suffix(last) {
        Some(parent) if !matches!(last, b"" | b"." | b"..") && !parent.is_empty() => {
            plain_path(&[real_path(parent).as_slice(), b"/", last].concat())
        }
        _ => real_path(path),
    }
}

/// Which directories the Director of a job may read. Allowed directories are compared by components
/// and without links, so that `/data` does not include `/database`. Excluded ones are byte prefixes
/// as they are written, as in the stock daemon; what they lead to is excluded by components.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DirectoryLimits {
    allowed: Vec<Vec<u8>>,
    excluded: Vec<Vec<u8>>,
    real: Arc<OnceLock<RealLimits>>,
}

/// With links resolved.
#[derive(PartialEq, Eq, Debug)]
struct RealLimits {
    /// If not empty, only these directories and those above them.
    allowed: Vec<Vec<u8>>,
    /// Prefixes of paths that are never read.
    excluded: Vec<Vec<u8>>,
    /// What such a path leads to, where that is another one.
    excluded_whole: Vec<Vec<u8>>,
}

/// Why [`DirectoryLimits`] rejects a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutOfLimits {
    /// It has an excluded prefix: no message.
    Excluded,
    /// It is not in an allowed directory: a message for directories.
    NotAllowed,
}

impl DirectoryLimits {
    /// The limits as configured. Links in them are resolved by the first check: that may take as
    /// long as storage takes, which a walk waits for.
    pub fn new(allowed: &[Vec<u8>], excluded: &[Vec<u8>]) -> Self {
        Self { allowed: allowed.to_vec(), excluded: excluded.to_vec(), real: Arc::default() }
    }

    pub(crate) fn are_none(&self) -> bool {
        self.allowed.is_empty() && self.excluded.is_empty()
    }

    fn real(&self) -> &RealLimits {
        self.real.get_or_init(|| {
            let (mut excluded, mut excluded_whole) = (self.excluded.clone(), Vec::new());
            for item in &self.excluded {
                let real = real_path(item);
                if item.ends_with(b"/") {
                    // What is in the directory, and not the directory.
                    excluded.push(with_slash(&real));
                } else if fs::symlink_metadata(OsStr::from_bytes(&real)).is_err() {
                    // The beginning of names.
                    excluded.push(real);
                } else if real != *item {
                    excluded_whole.push(real);
                }
            }
            // A link stands for its target, and for itself.
            let allowed = self.allowed.iter().flat_map(|path| [real_path(path), real_entry(path)]);
            RealLimits { allowed: allowed.collect(), excluded, excluded_whole }
        })
    }

    /// The real path of a name of the FileSet; not computed without limits.
    pub(crate) fn real_top(&self, name: &[u8]) -> RealTop {
        if self.are_none() {
            return RealTop::default();
        }
        RealTop::new(name, &real_entry(name))
    }

    /// The same of a name whose directory can't be reached. What is told of it must not depend on
    /// what is on the way there: it is the name as it is written, if the limits accept that.
    pub(crate) fn unreached_top(&self, name: &[u8]) -> RealTop {
        let written = RealTop::new(name, &plain_path(name));
        if self.are_none() || self.check(name, &written).is_err() { self.real_top(name) } else { written }
    }

    /// Opens a file of this host that says what a job saves, without waiting for a writer. The
    /// inner error: the limits are against it, because the Director would learn from messages what
    /// is in it. Of `commands` of plugins each is told, of names only those in allowed directories.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open_list(&self, path: &[u8], commands: bool) -> Result<Result<OwnedFd, OutOfLimits>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if self.excluded.is_empty() && (self.allowed.is_empty() || !commands) {
            return rustix::fs::open(path, flags, Mode::empty()).map(Ok);
        }
        let refused = |top| self.check(path, &top).err().filter(|out| commands || *out == OutOfLimits::Excluded);
        let real = fs::canonicalize(OsStr::from_bytes(path)).map_err(|error| errno(&error));
        let held = match real.and_then(|real| Held::open(real.as_os_str().as_bytes())) {
            Ok(held) => held,
            // Whether it is there is not told, either, nor what is on the way there.
            Err(errno) => {
                let errno = if errno == Errno::NOTDIR { Errno::NOENT } else { errno };
                return refused(self.unreached_top(path)).map_or(Err(errno), |out| Ok(Err(out)));
            }
        };
        if let Some(out) = refused(RealTop::new(path, &held.real)) {
            return Ok(Err(out));
        }
        let (directory, last) = held.target();
        let opened = rustix::fs::openat(directory, last, flags | OFlags::NOFOLLOW, Mode::empty())?;
        // A restore may have made it, of any disk.
        match FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) {
            FileType::BlockDevice | FileType::CharacterDevice => Err(Errno::PERM),
            _ => Ok(Ok(opened)),
        }
    }

    /// Whether the limits accept a path that is not walked.
    pub fn accepts(&self, path: &[u8]) -> bool {
        self.check(path, &RealTop::default()).is_ok()
    }

    /// Whether a directory that is not walked holds this file, and the Director may know that. With
    /// limits no link is followed, and `..` leads to nothing above the directory.
    pub fn shows(&self, directory: &[u8], file: &[u8]) -> bool {
        if self.are_none() {
            return directory::exists(&[without_slashes(directory), b"/", file].concat());
        }
        let held = Held::open(&[directory, b"/."].concat());
        held.is_ok_and(|held| self.let_see(held.target().0, directory, &RealTop::new(directory, &held.real), file))
    }

    /// Whether the open directory at `path`, which is `top` or below it, holds this file, and the
    /// Director may know that. Dots lead to nothing above the directory, and links to nothing: a
    /// restore may have made them.
    pub(crate) fn let_see(&self, directory: BorrowedFd<'_>, path: &[u8], top: &RealTop, file: &[u8]) -> bool {
        let below = plain_path(&[b"/", file].concat());
        if self.check(&[without_slashes(path), &below].concat(), top).is_err() {
            return false;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = Root::new(directory, 1, &Arc::default()).and_then(|root| root.open(&below, flags));
        let found = opened.and_then(fstat);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Symlink)
    }

    /// Whether the data of this block device, a name of the FileSet, may be read. It may hold
    /// anything, and a restore makes a device of any number: so an allowed directory is not enough.
    pub(crate) fn let_read_device(&self, path: &[u8], top: &RealTop) -> bool {
        let real = top.real(path);
        self.are_none() || lies_in(&real, b"/dev") || self.real().allowed.iter().any(|allowed| **allowed == *real)
    }

    /// Whether the limits accept this path, which is `top` or below it.
    pub(crate) fn check(&self, path: &[u8], top: &RealTop) -> Result<(), OutOfLimits> {
        if self.are_none() {
            return Ok(());
        }
        let (limits, real) = (self.real(), top.real(path));
        if limits.excludes(path) || limits.excludes(&real) {
            return Err(OutOfLimits::Excluded);
        }
        let real = without_slashes(&real);
        let real = if real.is_empty() { b"/" } else { real };
        let leads_there = |allowed: &Vec<u8>| lies_in(allowed, real) || lies_in(real, allowed);
        if limits.allowed.is_empty() || limits.allowed.iter().any(leads_there) {
            return Ok(());
        }
        Err(OutOfLimits::NotAllowed)
    }
}

impl RealLimits {
    fn excludes(&self, path: &[u8]) -> bool {
        self.excluded.iter().any(|prefix| path.starts_with(prefix))
            || self.excluded_whole.iter().any(|excluded| lies_in(path, excluded))
    }
}

/// The real path of a name of the FileSet, if it differs from the name.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct RealTop {
    real: Option<Vec<u8>>,
    /// Length of the name as it is written, without slashes at its end.
    written: usize,
}

impl RealTop {
    /// Of this name with this real path.
    pub(crate) fn new(name: &[u8], real: &[u8]) -> Self {
        let (real, written) = (without_slashes(real), without_slashes(name));
        Self { real: (real != written).then(|| real.to_vec()), written: written.len() }
    }

    /// The real path of `path`, which begins with the name. The walk follows no links below a name.
    fn real<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        match &self.real {
            Some(real) => Cow::Owned([real.as_slice(), path.get(self.written..).unwrap_or_default()].concat()),
            None => Cow::Borrowed(path),
        }
    }
}

#[cfg(test)]
mod tests;
