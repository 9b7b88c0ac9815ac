//! How attributes are serialized on their way to a plugin host and back.

use fd_records::Stat;
use serde::{Deserialize, Serialize};

/// The fields of [`Stat`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Stat")]
pub(crate) struct StatForm {
    dev: u64,
    ino: u64,
    mode: u32,
    nlink: u64,
    uid: u32,
    gid: u32,
    rdev: u64,
    size: i64,
    blksize: i64,
    blocks: i64,
    atime: i64,
    mtime: i64,
    ctime: i64,
}
