//! Opens what a file system's inodes are read from, if this process may find every entry of it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FsWord, OFlags, fstat, fstatfs, major, minor, syncfs};

use super::btrfs;
use super::ext4::{Device, Ext4};
use super::mounts;
use super::table::{Inode, Refusal};

/// The number of ext2, ext3 and ext4 in `statfs`.
const EXT: FsWord = 0xef53;
/// That of btrfs.
const BTRFS: FsWord = 0x9123_683e;

/// What the inodes are read from.
pub(super) enum Table {
    Ext4(Ext4<Disk>),
    Btrfs(Arc<OwnedFd>),
}

impl Table {
    /// How many groups there are.
    pub(super) fn groups(&self) -> u32 {
        match self {
            Self::Ext4(ext4) => ext4.groups(),
            Self::Btrfs(_) => 1,
        }
    }

    /// Passes on the inodes of one group until it is told to stop.
    pub(super) fn group(&self, group: u32, take: &mut dyn FnMut(Inode) -> bool) -> Result<(), Refusal> {
        match self {
            Self::Ext4(ext4) => ext4.group(group, take),
            Self::Btrfs(directory) => btrfs::all(directory, take),
        }
    }

    /// All groups were read: whether that was all.
    pub(super) fn finish(&self) -> Result<(), Refusal> {
        match self {
            Self::Ext4(ext4) => ext4.finish(),
            // What has come meanwhile is looked up.
            Self::Btrfs(_) => Ok(()),
        }
    }
}

/// A disk that is mounted.
pub(super) struct Disk(File);

impl Device for Disk {
    fn read(&self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, position)
    }
}

/// The inodes of the file system of this directory, which has this device, if there are no more to
/// be read than these.
pub(super) fn open(directory: &Arc<OwnedFd>, dev: u64, most: u64) -> Result<Table, Refusal> {
    if !finds_all() {
        return Err(Refusal::Unknown("rights"));
    }
    let kind = fstatfs(directory).map_err(io::Error::from)?.f_type;
    match kind {
        EXT => {}
        BTRFS => {
            if mounts::hides_attributes(directory, true)? {
                return Err(Refusal::Unknown("mount option"));
            }
            // It tells of all that is on the disk.
            syncfs(directory).map_err(io::Error::from)?;
            return Ok(Table::Btrfs(Arc::clone(directory)));
        }
        _ => return Err(Refusal::Unknown("file system")),
    }
    let device = device(dev)?;
    // Nothing but this number is taken from what is read before the file system is written out.
    let inodes = Ext4::new(&device)?.inodes()?;
    if inodes > most {
        return Err(Refusal::Long(inodes));
    }
    // Older kernels may have times only in inodes that are in memory, even when these are written.
    if mounts::hides_attributes(directory, false)? {
        return Err(Refusal::Unknown("mount option"));
    }
    // It may have been mounted with that before.
    syncfs(directory).map_err(io::Error::from)?;
    Ext4::new(device).map(Table::Ext4)
}

/// Opens the block device with this number, which the ext4 driver has mounted. The driver ext2
/// doesn't keep its inodes in the device's buffers.
fn device(dev: u64) -> Result<Disk, Refusal> {
    let place = format!("/sys/dev/block/{}:{}", major(dev), minor(dev));
    let link = fs::read_link(&place)?;
    let name = link.file_name().unwrap_or_default();
    if !Path::new("/sys/fs/ext4").join(name).is_dir() {
        return Err(Refusal::Unknown("driver"));
    }
    let described = fs::read(format!("{place}/uevent"))?;
    let node = described.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"DEVNAME="));
    let node = Path::new("/dev").join(std::ffi::OsStr::from_bytes(node.ok_or(Refusal::Unknown("device"))?));
    let is_it = |found: &fs::Metadata| found.file_type().is_block_device() && found.rdev() == dev;
    // Opening another kind of device may do something to it.
    if !is_it(&fs::symlink_metadata(&node)?) {
        return Err(Refusal::Unknown("device"));
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(&node)?;
    if is_it(&file.metadata()?) { Ok(Disk(file)) } else { Err(Refusal::Unknown("device")) }
}

/// Whether no entry is hidden from this process: an entry that can't be looked up is reported.
fn finds_all() -> bool {
    const CAN_READ_ALL: u64 = 1 << 1 | 1 << 2;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let users = fs::read_to_string("/proc/thread-self/uid_map").unwrap_or_default();
    let is_of_host = users.split_whitespace().eq(["0", "0", "4294967295"]);
    let label = fs::read_to_string("/proc/thread-self/attr/current");
    capabilities.is_some_and(|bits| bits & CAN_READ_ALL != 0) && is_of_host && !is_confined(label)
}

/// Whether a process of this security label may be kept from looking at some entries.
fn is_confined(label: io::Result<String>) -> bool {
    let label = match label {
        Ok(label) => label,
        // No security module has labels.
        Err(error) => return error.kind() != io::ErrorKind::NotFound && error.kind() != io::ErrorKind::InvalidInput,
    };
    let label = label.trim_end_matches(['\0', '\n']);
    // The second is that of privileged containers.
    let is_free_type = |name: &str| name.starts_with("unconfined_") || name == "spc_t";
    let is_free_by_selinux = label == "kernel" || label.split(':').nth(2).is_some_and(is_free_type);
    let is_free_by_apparmor = label == "unconfined" || label.ends_with(" (unconfined)");
    !(label.is_empty() || is_free_by_selinux || is_free_by_apparmor)
}

/// How many inodes the file system of this directory has in use, if it can be scanned, and how many
/// can be read in the time of one lookup.
pub(super) fn inodes(directory: BorrowedFd<'_>) -> Option<(u64, u64)> {
    let found = fstatfs(directory).ok()?;
    let in_use = found.f_files.saturating_sub(found.f_ffree);
    match found.f_type {
        EXT => Some((in_use, 12)),
        // It does not count them.
        BTRFS => {
            let inodes = fd_os::btrfs::Inodes::new(Arc::new(directory.try_clone_to_owned().ok()?));
            Some((inodes.ok()?.bound().ok()?, 3))
        }
        _ => None,
    }
}

/// Whether the directory is the topmost of what is mounted there.
pub(super) fn is_top(directory: BorrowedFd<'_>) -> bool {
    let above = rustix::fs::statat(directory, "..", rustix::fs::AtFlags::empty());
    let Ok((above, own)) = above.and_then(|above| Ok((above, fstat(directory)?))) else { return false };
    above.st_dev != own.st_dev || above.st_ino == own.st_ino
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_process_with_a_label_that_confines_it_does_not_scan() {
        let is_confined = |label: &str| is_confined(Ok(label.to_owned()));
        let free = [
            "",
            "kernel\0",
            "unconfined\n",
            "bacula-fd (unconfined)\n",
            "system_u:system_r:unconfined_service_t:s0\0",
            "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023",
            "system_u:system_r:spc_t:s0\0",
        ];
        assert!(!free.into_iter().any(is_confined));
        let confined = [
            "bacula-fd (enforce)\n",
            "unconfined-fd (complain)",
            "system_u:system_r:bacula_t:s0",
            "unconfined_u:unconfined_r:bacula_t:s0",
            "system_u:system_r:spc_type_t:s0",
            "spc_t",
            "_",
        ];
        assert!(confined.into_iter().all(is_confined));
        let failed = |errno: Errno| super::is_confined(Err(errno.into()));
        assert!(!failed(Errno::NOENT) && !failed(Errno::INVAL) && failed(Errno::ACCESS));
    }
}
