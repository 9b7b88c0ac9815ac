//! An object whose metadata is set, held by a descriptor so that no path can lead elsewhere, and
//! the plain attributes.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use fd_records::Stat;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, UtimensatFlags};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid};

use crate::no_proc::{descriptor_path, has_proc, inside, must_be};

/// What the kernel calls the ACL of an object.
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
/// What it calls the ACL that a directory gives to what is made in it.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// What metadata is applied to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// An open file or directory.
    Open(BorrowedFd<'a>),
    /// A handle that only identifies a directory (`O_PATH`).
    PinnedDirectory(BorrowedFd<'a>),
    /// A handle that only identifies an object (`O_PATH`), of any type; a symbolic link is itself
    /// the target.
    Pinned {
        /// The handle.
        object: BorrowedFd<'a>,
        /// The directory in which it was found. The name is used where there is no `/proc`.
        directory: BorrowedFd<'a>,
        /// Its name there (without `/`).
        name: &'a [u8],
    },
    /// What stands under this name (without `/`) in an open directory whose names no other user can
    /// change; a symbolic link is itself the target.
    Named {
        /// The directory.
        directory: BorrowedFd<'a>,
        /// The name in it.
        name: &'a [u8],
    },
}

/// What of the plain attributes could not be set, each with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AttributeFailures {
    /// Owner and group.
    pub owner: Option<Errno>,
    /// Permission bits.
    pub mode: Option<Errno>,
    /// Times of last access and change.
    pub times: Option<Errno>,
    /// Set-id bits are left out: the owner is another.
    pub left_out: bool,
}

/// Owner and group that the system gives to files that this process makes, as a rule: its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsualOwner {
    uid: u32,
    gid: u32,
    /// How many more files are not examined, since a file had another owner: some directories pass
    /// on theirs.
    doubt: u32,
}

/// So many files are not examined then.
const DOUBT: u32 = 64;

impl Default for UsualOwner {
    fn default() -> Self {
        Self { uid: nix::unistd::geteuid().as_raw(), gid: nix::unistd::getegid().as_raw(), doubt: 0 }
    }
}

impl UsualOwner {
    /// How a new file looks, if it has its owner already.
    fn found(&mut self, target: &Target<'_>, wanted: &Stat) -> Option<FileStat> {
        self.doubt = self.doubt.saturating_sub(1);
        if (wanted.uid, wanted.gid) != (self.uid, self.gid) || self.doubt > 0 {
            return None;
        }
        let found = target.stat().ok().filter(|found| (found.st_uid, found.st_gid) == (wanted.uid, wanted.gid));
        if found.is_none() {
            self.doubt = DOUBT;
        }
        found
    }
}

/// The bits of a mode that chmod sets.
const PERMISSIONS: u32 = 0o7777;
/// Set-user-id.
const SET_USER: u32 = 0o4000;
/// Set-group-id.
const SET_GROUP: u32 = 0o2000;

/// Opens what stands under a name so that it can be looked at and given its metadata without the
/// name meaning something else in between.
pub fn pin(directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(directory, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
}

impl Target<'_> {
    /// How the object looks now.
    pub fn stat(&self) -> Result<FileStat, Errno> {
        match self {
            Self::Open(file) | Self::PinnedDirectory(file) | Self::Pinned { object: file, .. } => {
                nix::sys::stat::fstat(file)
            }
            Self::Named { directory, name } => nix::sys::stat::fstatat(directory, *name, AtFlags::AT_SYMLINK_NOFOLLOW),
        }
    }

    /// Sets owner and group.
    pub fn set_owner(&self, uid: u32, gid: u32) -> Result<(), Errno> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        match self {
            Self::Open(file) => nix::unistd::fchown(file, uid, gid),
            Self::PinnedDirectory(object) | Self::Pinned { object, .. } => {
                nix::unistd::fchownat(object, &b""[..], uid, gid, AtFlags::AT_EMPTY_PATH)
            }
            Self::Named { directory, name } => {
                nix::unistd::fchownat(directory, *name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW)
            }
        }
    }

    /// Sets the permission bits of `mode`; its type bits are ignored. Symbolic links have none.
    pub fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let mode = Mode::from_bits_truncate(mode & PERMISSIONS);
        let follow = |directory: BorrowedFd<'_>, name: &[u8]| {
            nix::sys::stat::fchmodat(directory, name, mode, FchmodatFlags::FollowSymlink)
        };
        match self {
            Self::Open(file) => nix::sys::stat::fchmod(file, mode),
            Self::PinnedDirectory(directory) => follow(*directory, b"."),
            Self::Pinned { object, directory, name } => {
                let path = descriptor_path(*object);
                match nix::sys::stat::fchmodat(AT_FDCWD, path.as_slice(), mode, FchmodatFlags::FollowSymlink) {
                    Err(Errno::ENOENT) if !has_proc() => {
                        must_be(*object, *directory, name)?;
                        self.must_be_no_link()?;
                        follow(*directory, name)
                    }
                    done => done,
                }
            }
            Self::Named { directory, name } => {
                match nix::sys::stat::fchmodat(directory, *name, mode, FchmodatFlags::NoFollowSymlink) {
                    // The C library does it by `/proc` if the kernel does not do it, and one before
                    // 2.32 not at all.
                    Err(Errno::EOPNOTSUPP | Errno::ENOENT) => {
                        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                        let object = openat(directory, *name, flags, Mode::empty())?;
                        let pinned = Target::Pinned { object: object.as_fd(), directory: *directory, name };
                        pinned.must_be_no_link()?;
                        pinned.set_mode(mode.bits())
                    }
                    done => done,
                }
            }
        }
    }

    fn must_be_no_link(&self) -> Result<(), Errno> {
        let is_link = self.stat()?.st_mode & Stat::MODE_TYPE == Stat::MODE_SYMLINK;
        if is_link { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
    }

    /// Sets the times in whole seconds since 1970.
    pub fn set_times(&self, accessed: i64, modified: i64) -> Result<(), Errno> {
        self.set_exact_times(TimeSpec::new(accessed, 0), TimeSpec::new(modified, 0))
    }

    /// Sets the times, to the nanosecond.
    pub fn set_exact_times(&self, accessed: TimeSpec, modified: TimeSpec) -> Result<(), Errno> {
        match self {
            Self::Open(file) => nix::sys::stat::futimens(file, &accessed, &modified),
            Self::PinnedDirectory(directory) => {
                let no_follow = UtimensatFlags::NoFollowSymlink;
                nix::sys::stat::utimensat(directory, c".", &accessed, &modified, no_follow)
            }
            Self::Pinned { object, directory, name } => {
                let path = descriptor_path(*object);
                let follow = UtimensatFlags::FollowSymlink;
                match nix::sys::stat::utimensat(AT_FDCWD, path.as_slice(), &accessed, &modified, follow) {
                    Err(Errno::ENOENT) if !has_proc() => {
                        must_be(*object, *directory, name)?;
                        let no_follow = UtimensatFlags::NoFollowSymlink;
                        nix::sys::stat::utimensat(directory, *name, &accessed, &modified, no_follow)
                    }
                    done => done,
                }
            }
            Self::Named { directory, name } => {
                let no_follow = UtimensatFlags::NoFollowSymlink;
                nix::sys::stat::utimensat(directory, *name, &accessed, &modified, no_follow)
            }
        }
    }

    /// Sets owner, mode and times of a record, in this order, since a change of the owner clears
    /// the set-id bits.
    ///
    /// Each is set even if another fails. Set-id bits that were meant for another owner than the
    /// object now has are left out: the program of another user must not become one of ours.
    pub fn set_attributes(&self, stat: &Stat) -> AttributeFailures {
        let owner = self.set_owner(stat.uid, stat.gid).err();
        self.set_mode_and_times(stat, owner)
    }

    /// The same for what may have its owner already: it is not set again then, because that would
    /// take capabilities away.
    pub fn set_attributes_of_existing(&self, stat: &Stat) -> AttributeFailures {
        let has_owner = self.stat().is_ok_and(|found| (found.st_uid, found.st_gid) == (stat.uid, stat.gid));
        if !has_owner {
            return self.set_attributes(stat);
        }
        self.set_mode_and_times(stat, None)
    }

    /// The same for a file that this process has just made: what it has already is not set, which
    /// would cost a file system's transaction.
    pub fn set_attributes_of_new(&self, stat: &Stat, usual: &mut UsualOwner) -> AttributeFailures {
        let Some(found) = usual.found(self, stat) else { return self.set_attributes(stat) };
        if (stat.mode ^ found.st_mode) & PERMISSIONS != 0 {
            return self.set_mode_and_times(stat, None);
        }
        AttributeFailures { times: self.set_times(stat.atime, stat.mtime).err(), ..AttributeFailures::default() }
    }

    /// Sets mode and times of a record once it is known whether its owner could be set.
    fn set_mode_and_times(&self, stat: &Stat, owner: Option<Errno>) -> AttributeFailures {
        let (mode, left_out) = if stat.mode_type() == Stat::MODE_SYMLINK {
            (None, false)
        } else {
            let misplaced = self.misplaced_bits(stat);
            let bits = misplaced.unwrap_or(SET_USER | SET_GROUP);
            (self.set_mode(stat.mode & !bits).err().or(misplaced.err()), bits != 0)
        };
        AttributeFailures { owner, mode, times: self.set_times(stat.atime, stat.mtime).err(), left_out }
    }

    /// The set-id bits that would stand for the wrong owner.
    fn misplaced_bits(&self, stat: &Stat) -> Result<u32, Errno> {
        if stat.mode & (SET_USER | SET_GROUP) == 0 {
            return Ok(0);
        }
        // That the owner could be set says little: the system takes the last number for "leave it
        // as it is", and there are file systems that take any and keep their own.
        let now = self.stat()?;
        let user = if now.st_uid == stat.uid { 0 } else { SET_USER };
        let group = if now.st_gid == stat.gid { 0 } else { SET_GROUP };
        Ok((user | group) & stat.mode)
    }

    /// Sets one extended attribute.
    pub fn set_xattr(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        let flags = rustix::fs::XattrFlags::empty();
        self.change_xattr(
            |file| rustix::fs::fsetxattr(file, name, value, flags),
            |path| rustix::fs::setxattr(path, name, value, flags),
            |path| rustix::fs::lsetxattr(path, name, value, flags),
        )
    }

    /// Removes one extended attribute.
    pub(crate) fn remove_xattr(&self, name: &[u8]) -> Result<(), Errno> {
        self.change_xattr(
            |file| rustix::fs::fremovexattr(file, name),
            |path| rustix::fs::removexattr(path, name),
            |path| rustix::fs::lremovexattr(path, name),
        )
    }

    /// Takes away the ACL that a new object has from the default ACL of its directory: with it its
    /// mode would give other users rights that its record does not. Where there is none, this
    /// changes nothing.
    pub fn drop_inherited_acl(&self) -> Result<(), Errno> {
        self.drop_acl(ACCESS_ACL).map(drop)
    }

    /// The same for a new directory, which has the default ACL, too.
    pub fn drop_inherited_acls_of_directory(&self) -> Result<(), Errno> {
        self.drop_acl(ACCESS_ACL)?;
        self.drop_acl(DEFAULT_ACL).map(drop)
    }

    /// Takes an ACL away. Returns whether there was one.
    pub(crate) fn drop_acl(&self, name: &[u8]) -> Result<bool, Errno> {
        // To ask is much cheaper than to remove what is not there, and that succeeds on some file
        // systems.
        let asked = match self {
            Self::Open(file) => rustix::fs::fgetxattr(*file, name, &mut [0_u8; 0]).map(drop).map_err(system_error),
            Self::PinnedDirectory(object) => {
                let asked = rustix::fs::getxattr(descriptor_path(*object), name, &mut [0_u8; 0]).map(drop);
                // Without `/proc` it is not known.
                asked.map_err(system_error).or_else(|errno| if errno == Errno::ENOENT { Ok(()) } else { Err(errno) })
            }
            Self::Pinned { .. } | Self::Named { .. } => Ok(()),
        };
        match asked.and_then(|()| self.remove_xattr(name)) {
            Err(Errno::ENODATA | Errno::ENOTSUP | Errno::ENOSYS) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Changes an attribute by the call that the target needs: for an open file, for a path that is
    /// followed, for one that is not.
    fn change_xattr(
        &self,
        of_file: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<()>,
        followed: impl Fn(&[u8]) -> rustix::io::Result<()>,
        not_followed: impl Fn(&[u8]) -> rustix::io::Result<()> + Sync,
    ) -> Result<(), Errno> {
        let done = match self {
            Self::Open(file) => of_file(*file),
            Self::PinnedDirectory(object) | Self::Pinned { object, .. } => followed(&descriptor_path(*object)),
            Self::Named { directory, name: file } => not_followed(&through_descriptor(*directory, file)),
        };
        let done = done.map_err(system_error);
        if done != Err(Errno::ENOENT) || has_proc() {
            return done;
        }
        let by_name = |directory, name| inside(directory, || not_followed(name).map_err(system_error));
        match self {
            Self::Open(_) => done,
            Self::PinnedDirectory(object) => {
                let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
                let directory = openat(object, c".", flags, Mode::empty())?;
                of_file(directory.as_fd()).map_err(system_error)
            }
            Self::Pinned { object, directory, name } => {
                must_be(*object, *directory, name)?;
                by_name(*directory, name)
            }
            Self::Named { directory, name } => by_name(*directory, name),
        }
    }
}

fn system_error(errno: rustix::io::Errno) -> Errno {
    Errno::from_raw(errno.raw_os_error())
}

/// A path of a name in an open directory.
fn through_descriptor(directory: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = descriptor_path(directory);
    path.push(b'/');
    path.extend_from_slice(name);
    path
}

/// Makes a fifo, or a device, or another object of the type in `mode`, without an ACL. Only its
/// owner may use it until it gets its mode.
pub fn make_special(directory: BorrowedFd<'_>, name: &[u8], mode: u32, device: u64) -> Result<(), Errno> {
    let private = Mode::from_bits_truncate(mode & 0o700);
    let kind = mode & Stat::MODE_TYPE;
    if kind == Stat::MODE_FIFO {
        nix::unistd::mkfifoat(directory, name, private)?;
    } else {
        nix::sys::stat::mknodat(directory, name, SFlag::from_bits_truncate(kind), private, device)?;
    }
    let object = pin(directory, name)?;
    let target = Target::Pinned { object: object.as_fd(), directory, name };
    // Of what another user has put there in between, nothing is taken away.
    let found = target.stat()?;
    if found.st_mode & Stat::MODE_TYPE == kind && found.st_uid == nix::unistd::geteuid().as_raw() {
        target.drop_inherited_acl()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
