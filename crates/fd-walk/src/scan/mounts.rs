//! The names of the places at which something is mounted.
//!
//! A directory has the inode below a mount, a lookup finds the one above. The kernel's table has
//! the paths of mounts as the process sees them, and the walk may have come another way, through
//! links. So only last components are compared: an entry that is called as any mount is looked up.

use std::collections::HashSet;

use fd_os::mounts::unescaped;

/// See the module. In lower case, for file systems that don't tell it from upper case.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct MountNames(HashSet<Vec<u8>>);

impl MountNames {
    /// Those of this process.
    pub(super) fn read() -> std::io::Result<Self> {
        std::fs::read("/proc/thread-self/mountinfo").map(|table| Self::parse(&table))
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
}
