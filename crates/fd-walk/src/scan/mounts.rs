//! The names of the places at which something is mounted.
//!
//! A directory has the inode below a mount, a lookup finds the one above. The kernel's table has
//! the paths of mounts as the process sees them, and the walk may have come another way, through
//! links. So only last components are compared: an entry that is called as any mount is looked up.
//!
//! The table also has the options of a mount that matter to a scan.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use fd_os::mounts::unescaped;

/// See the module. In lower case, for file systems that don't tell it from upper case.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct MountNames(HashSet<Vec<u8>>);

/// Before Linux 5.8 a mount that goes away while the table is read can hide another one. So it is
/// read until it is the same twice.
fn table() -> io::Result<Vec<u8>> {
    const TRIES: usize = 16;
    let read = || std::fs::read("/proc/thread-self/mountinfo");
    let mut table = read()?;
    for _ in 0..TRIES {
        let before = std::mem::replace(&mut table, read()?);
        if before == table {
            return Ok(table);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Whether the file system of this directory writes times late (`lazytime`), knows half of each
/// owner (`nouid32`), shows other owners than it has (`idmapped`), or may not have been written
/// out: a btrfs that can't be written any more shows as `ro`, and has its last changes in memory.
pub(super) fn hides_attributes(directory: &OwnedFd, is_btrfs: bool) -> io::Result<bool> {
    // By the number of the mount: the table does not have the devices of btrfs's subvolumes.
    let described = std::fs::read(format!("/proc/thread-self/fdinfo/{}", directory.as_raw_fd()))?;
    let mount = described.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:\t"));
    let table = table()?;
    let (of_mount, of_all) = mount.and_then(|mount| options(&table, mount)).ok_or(io::ErrorKind::NotFound)?;
    let has = |options: &[u8], wanted: &[u8]| options.split(|byte| *byte == b',').any(|option| option == wanted);
    let hides =
        |options: &[u8]| has(options, b"lazytime") || has(options, b"nouid32") || is_btrfs && has(options, b"ro");
    Ok(has(of_mount, b"idmapped") || hides(of_all))
}

/// The options of this mount, and those of its file system.
fn options<'t>(table: &'t [u8], mount: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let mut mounts = table.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b' '));
    // The first field is the mount's number, the sixth one and the last one have them.
    let mut fields = mounts.find(|fields| fields.clone().next() == Some(mount))?;
    Some((fields.nth(5)?, fields.next_back()?))
}

impl MountNames {
    /// Those of this process.
    pub(super) fn read() -> io::Result<Self> {
        table().map(|table| Self::parse(&table))
    }

    fn parse(table: &[u8]) -> Self {
        let paths = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
        let names = paths.filter_map(|path| path.rsplit(|byte| *byte == b'/').next());
        Self(names.map(|name| unescaped(name).to_ascii_lowercase()).collect())
    }

    /// Whether something is mounted at a place of this name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.contains(&name.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_last_components_of_mount_points() {
        let table = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            23 22 0:5 /a\\040b /mnt/x\\040Y\\134z\\011 rw shared:1 - tmpfs none rw\n24 22 0:5 / /dev/shm rw\n";
        let names = MountNames::parse(table);
        let all: [&[u8]; 3] = [b"X y\\z\t", b"shm", b"SHM"];
        assert!(all.into_iter().all(|name| names.has(name)));
        let none: [&[u8]; 4] = [b"mnt", b"dev", b"a b", b"x"];
        assert!(!none.into_iter().any(|name| names.has(name)));
        assert!(MountNames::read().is_ok());
    }

    #[test]
    fn options_are_those_of_the_file_system_of_the_mount() {
        let table = b"30 22 7:1 / /mnt rw,relatime shared:1 - ext4 /dev/loop1 rw,lazytime,data=journal\n\
            31 30 0:40 /@ /mnt/b rw,nosuid - btrfs /dev/loop2 rw,subvol=/@\n\n";
        assert_eq!(options(table, b"30"), Some((&b"rw,relatime"[..], &b"rw,lazytime,data=journal"[..])));
        assert_eq!(options(table, b"31"), Some((&b"rw,nosuid"[..], &b"rw,subvol=/@"[..])));
        assert_eq!(options(table, b"3"), None);
        let root = std::fs::File::open("/proc").unwrap().into();
        assert!(!hides_attributes(&root, true).unwrap());
    }
}
