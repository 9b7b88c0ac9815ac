//! One step down: from an open directory to the directory of a name in it, and which symbolic links
//! are followed.
//!
//! The rule for links. The stock daemon follows every link that leads to a directory, which lets a
//! link on the volume or one of another user choose where root writes. Here a link is followed when
//!
//! 1. it was there before the job began, and
//! 2. only root and the user of this process could have put it there (it belongs to one of them and
//!    so does its directory, which others can't write to or which is sticky), or its owner also
//!    owns the directory that it leads to, and so could have written there without this process,
//!    and
//! 3. it does not lead out of the directory that the operator gave as `where`, however old it is.
//!    That directory itself may be behind a link. A link that an earlier job restored gets no more
//!    trust than one of another user.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use fd_records::Stat;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::geteuid;
use std::os::unix::ffi::OsStrExt as _;

/// How many links one step may go through, as the kernel's own limit.
const MOST_LINKS: u32 = 40;

/// How many directories above what a link leads to are examined.
const MOST_LEVELS: u32 = 16_384;

/// Why a symbolic link is not followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkRefusal {
    /// This job made it, or it was changed since the job began.
    NewerThanJob,
    /// It counts as new because its time of change is in the future.
    OfTheFuture,
    /// It belongs to this user, but what it leads to does not.
    Foreign(u32),
    /// A user to whom what it leads to does not belong may have moved it here.
    Moved,
    /// It leads out of the directory that everything is to be restored in.
    LeadsOut,
}

/// Why a step fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepError {
    /// The name does not exist.
    Missing,
    /// What is there is no directory, nor a link to one.
    NotDirectory,
    /// There is a link that leads nowhere.
    Dangling,
    /// There is a link that must not be followed.
    Refused(LinkRefusal),
    /// The system refuses.
    System(Errno),
}

/// A directory that was reached.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) handle: OwnedFd,
    /// Whether the handle is good for more than reaching what is in it. It is not where the
    /// directory may not be read.
    pub(crate) readable: bool,
    /// Whether a link led there.
    pub(crate) through_link: bool,
}

/// The user of this process and the start of the job: what decides about links.
#[derive(Clone, Debug)]
pub struct LinkRule {
    user: u32,
    /// When the job began, in seconds and nanoseconds since 1970. A link whose inode changed then
    /// or later is not followed.
    began: (i64, i64),
    /// The same by the clock of storage that is behind: what the job has made first, by device.
    behind: BTreeMap<u64, (i64, i64)>,
}

impl LinkRule {
    /// The rule of a job that begins now. Where limits apply to the place of a restore, this is
    /// before the place is looked at, so that no link that comes later is an old one.
    pub fn from_now() -> Self {
        Self { user: geteuid().as_raw(), began: now(), behind: BTreeMap::new() }
    }

    #[cfg(test)]
    pub(super) fn be_ahead_of_storage(&mut self, seconds: i64) {
        self.began.0 += seconds;
    }

    /// When the job began by the clock of this device.
    fn since(&self, device: u64) -> (i64, i64) {
        self.behind.get(&device).copied().unwrap_or(self.began)
    }

    /// Whether an object with this status and, where the file system records it, this time of birth
    /// existed before the job. The status of a special file changes when a process writes to it.
    pub(super) fn precedes(&self, stat: &FileStat, born: Option<(i64, i64)>) -> bool {
        let since = self.since(stat.st_dev);
        (stat.st_ctime, stat.st_ctime_nsec) < since || born.is_some_and(|born| born < since)
    }

    /// Whether an object was made since the job began. Where its time of birth is recorded, that
    /// alone decides: some file systems show a time that was set as that of the last change.
    pub(super) fn is_of_its_time(&self, stat: &FileStat, born: Option<(i64, i64)>) -> bool {
        born.unwrap_or((stat.st_ctime, stat.st_ctime_nsec)) >= self.since(stat.st_dev)
    }

    /// Takes the status of an object that the job has made into account. On a server whose clock is
    /// behind it looks older than the job, and so would those that are made later.
    pub(super) fn learn(&mut self, made: &FileStat) {
        self.learn_of(made.st_dev, (made.st_ctime, made.st_ctime_nsec));
    }

    /// The same of when the job has made it there, in seconds and nanoseconds.
    pub(super) fn learn_of(&mut self, device: u64, made: (i64, i64)) {
        if made < self.since(device) {
            self.behind.insert(device, made);
        }
    }

    /// Goes from `directory` to the directory called `name`.
    pub(crate) fn step(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Result<Reached, StepError> {
        self.step_with(directory, name, &mut MOST_LINKS.clone())
    }

    fn step_with(&self, directory: BorrowedFd<'_>, name: &[u8], links: &mut u32) -> Result<Reached, StepError> {
        match open_here(directory, name) {
            Err(StepError::System(Errno::ENOENT)) => Err(StepError::Missing),
            Err(StepError::System(Errno::ENOTDIR | Errno::ELOOP)) => self.follow(directory, name, links),
            reached => reached,
        }
    }

    /// Follows the link called `name`, if it is one and may be followed.
    fn follow(&self, directory: BorrowedFd<'_>, name: &[u8], links: &mut u32) -> Result<Reached, StepError> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // From here on the link is held: what is examined is what is followed.
        let link = openat(directory, name, flags, Mode::empty()).map_err(StepError::System)?;
        let stat = fstat(&link).map_err(StepError::System)?;
        if stat.st_mode & Stat::MODE_TYPE != Stat::MODE_SYMLINK {
            return Err(StepError::NotDirectory);
        }
        if (stat.st_ctime, stat.st_ctime_nsec) >= self.since(stat.st_dev) {
            return Err(StepError::Refused(newness(stat.st_ctime, now().0)));
        }
        *links = links.checked_sub(1).ok_or(StepError::Dangling)?;
        let here = fstat(directory).map_err(StepError::System)?;
        let is_moved_by_owner_only = self.guards_names_of(stat.st_uid, &here);
        let trusted = self.is_ours(&stat) && is_moved_by_owner_only;
        let target = readlinkat(&link, &b""[..]).map_err(StepError::System)?;
        let reached = match self.walk(directory, target.as_bytes(), links) {
            Err(StepError::Missing) => Err(StepError::Dangling),
            other => other,
        }?;
        if !trusted {
            // Then its owner, who could write there all the same, must be the one that has put it
            // here.
            if fstat(&reached.handle).map_err(StepError::System)?.st_uid != stat.st_uid {
                return Err(StepError::Refused(LinkRefusal::Foreign(stat.st_uid)));
            }
            if !is_moved_by_owner_only {
                return Err(StepError::Refused(LinkRefusal::Moved));
            }
        }
        Ok(reached)
    }

    /// Walks the target of a link, each component by this same rule.
    fn walk(&self, from: BorrowedFd<'_>, target: &[u8], links: &mut u32) -> Result<Reached, StepError> {
        let start = if target.starts_with(b"/") { &b"/"[..] } else { b"." };
        let mut reached = open_here(from, start)?;
        for name in target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
            let here = reached.handle.as_fd();
            reached = if name == b".." { open_here(here, name)? } else { self.step_with(here, name, links)? };
        }
        Ok(Reached { through_link: true, ..reached })
    }

    /// Whether this can be the directory that was just made. One that another user has put in its
    /// place has another owner, or is older.
    pub(super) fn is_fresh(&self, directory: &FileStat) -> bool {
        directory.st_uid == self.user && (directory.st_mtime, directory.st_mtime_nsec) >= self.began
    }

    /// Whether it belongs to root or to the user of this process.
    pub(super) fn is_ours(&self, stat: &FileStat) -> bool {
        stat.st_uid == 0 || stat.st_uid == self.user
    }

    /// Whether only this process's user and root can change the names in this directory.
    pub(super) fn keeps_its_names(&self, directory: &FileStat) -> bool {
        self.is_ours(directory) && directory.st_mode & 0o022 == 0
    }

    /// Whether only they and this user can change the names there of what belongs to this user. In
    /// a sticky directory others can change those of what the job gives away.
    pub(super) fn guards_names_of(&self, user: u32, directory: &FileStat) -> bool {
        let is_theirs = self.is_ours(directory) || directory.st_uid == user;
        is_theirs && (directory.st_mode & 0o022 == 0 || directory.st_mode & 0o1000 != 0)
    }
}

/// The time by the clock that file systems stamp with; where it can't be read, no link is old
/// enough.
fn now() -> (i64, i64) {
    clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_or((i64::MIN, 0), |now| (now.tv_sec(), now.tv_nsec()))
}

/// Why a link is not followed that was changed at this time, in seconds as `now`. It is refused in
/// any case: after a step of the clock one that is new may be of the future.
fn newness(changed: i64, now: i64) -> LinkRefusal {
    // What file systems stamp may be ahead of a clock that is read roughly.
    if changed > now.saturating_add(1) { LinkRefusal::OfTheFuture } else { LinkRefusal::NewerThanJob }
}

/// A directory that links must not lead out of, by device and inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Floor(u64, u64);

impl Floor {
    pub(super) fn of(directory: BorrowedFd<'_>) -> Result<Self, Errno> {
        fstat(directory).map(|stat| Self(stat.st_dev, stat.st_ino))
    }

    /// Whether `directory` is this one or lies below it. Where that can't be seen it does not.
    pub(super) fn is_above(self, directory: BorrowedFd<'_>) -> bool {
        let Ok(mut place) = Self::of(directory) else { return false };
        let mut held: Option<OwnedFd> = None;
        for _ in 0..MOST_LEVELS {
            if place == self {
                return true;
            }
            let here = held.as_ref().map_or(directory, AsFd::as_fd);
            let Ok(parent) = open_directory(here, b"..", OFlag::O_PATH) else { return false };
            let Ok(above) = Self::of(parent.as_fd()) else { return false };
            if above == place {
                // The root directory is its own parent.
                return false;
            }
            (held, place) = (Some(parent), above);
        }
        false
    }
}

/// Opens a directory that is not behind a link, to be read if that is permitted.
fn open_here(from: BorrowedFd<'_>, name: &[u8]) -> Result<Reached, StepError> {
    let (opened, readable) = match open_directory(from, name, OFlag::O_RDONLY) {
        Err(Errno::EACCES) => (open_directory(from, name, OFlag::O_PATH), false),
        opened => (opened, true),
    };
    let handle = opened.map_err(StepError::System)?;
    Ok(Reached { handle, readable, through_link: false })
}

/// Opens a directory without following a link.
pub(super) fn open_directory(from: BorrowedFd<'_>, name: &[u8], access: OFlag) -> Result<OwnedFd, Errno> {
    let flags = access | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(from, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use nix::fcntl::AT_FDCWD;
    use nix::sys::stat::{UtimensatFlags, lstat, utimensat};
    use nix::sys::time::TimeSpec;

    use super::*;

    #[test]
    fn a_link_of_the_future_is_refused_for_the_sake_of_the_clock() {
        assert_eq!(newness(1001, 1000), LinkRefusal::NewerThanJob);
        assert_eq!(newness(1002, 1000), LinkRefusal::OfTheFuture);
    }

    /// It may be another user's, who has put it in the place of what the job has made.
    #[test]
    fn an_old_object_makes_no_old_directory_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut rule = LinkRule::from_now();
        let hour = TimeSpec::new(rule.began.0 - 3600, 0);
        utimensat(AT_FDCWD, folder.path(), &hour, &hour, UtimensatFlags::FollowSymlink).unwrap();
        let old = lstat(folder.path()).unwrap();
        let mut older = old;
        older.st_ctime = rule.began.0 - 7200;
        rule.learn(&older);
        assert!(!rule.is_fresh(&old));
    }

    #[test]
    fn storage_whose_clock_is_behind_says_nothing_about_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut rule = LinkRule::from_now();
        let mut made = lstat(folder.path()).unwrap();
        made.st_ctime = rule.began.0 - 7200;
        rule.learn(&made);
        assert!(rule.is_of_its_time(&made, None) && !rule.precedes(&made, None));
        made.st_dev += 1;
        assert!(!rule.is_of_its_time(&made, None) && rule.precedes(&made, None));
    }
}
