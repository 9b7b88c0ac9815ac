//! What one kind of file system tells of its inodes.

use fd_records::Stat;

/// An inode that is in use. Each attribute is what a lookup finds, the size if that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Inode {
    pub(crate) ino: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) mode: u32,
    pub(crate) nlink: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: i64,
}

impl Inode {
    /// Those attributes that are known.
    pub(super) fn stat(&self) -> Stat {
        let Self { ino, mtime, ctime, mode, nlink, uid, gid, size } = *self;
        Stat { ino, mtime, ctime, mode, nlink, uid, gid, size, ..Stat::default() }
    }
}

/// Why there is no scan.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is something that is not known here.
    Unknown(&'static str),
    /// A structure makes no sense.
    Structure(&'static str),
    /// There is more to be read than it is worth: so many inodes.
    Long(u64),
    Failed(std::io::Error),
    /// The walk does not want it any more.
    Stopped,
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(what) => write!(to, "unknown {what}"),
            Self::Structure(what) => write!(to, "bad {what}"),
            Self::Long(_) => to.write_str("long tables"),
            Self::Failed(error) => error.fmt(to),
            Self::Stopped => to.write_str("stopped"),
        }
    }
}
