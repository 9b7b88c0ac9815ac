//! The names of the places at which something is mounted.
//!
//! A directory has the inode below a mount, a lookup finds the one above. The kernel's table has
//! the paths of mounts as the process sees them, and the walk may have come another way, through
//! links. So only last components are compared: an entry that is called as any mount is looked up.
//!
//! The table also has the options of a mount that matter to a scan.

use std::collections::HashSet;

use fd_os::mounts::unescaped;
use rustix::fs::{major, minor};

/// See the module. In lower case, for file systems that don't tell it from upper case.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct MountNames(HashSet<Vec<u8>>);

fn table() -> std::io::Result<Vec<u8>> {
    std::fs::read("/proc/thread-self/mountinfo")
}

/// Whether the file system of this device writes times late (`lazytime`), or knows half of each
/// owner (`nouid32`).
pub(super) fn hides_attributes(dev: u64) -> std::io::Result<bool> {
    let device = format!("{}:{}", major(dev), minor(dev));
    let has = |line: &[u8]| {
        let options: [&[u8]; 2] = [b"lazytime", b"nouid32"];
        options.into_iter().any(|option| has_option(line, device.as_bytes(), option))
    };
    Ok(table()?.split(|byte| *byte == b'\n').any(has))
}

fn has_option(line: &[u8], device: &[u8], option: &[u8]) -> bool {
    let mut fields = line.split(|byte| *byte == b' ');
    // The third one, and those of the file system are the last one.
    fields.nth(2) == Some(device)
        && fields.next_back().is_some_and(|all| all.split(|byte| *byte == b',').any(|one| one == option))
}

impl MountNames {
    /// Those of this process.
    pub(super) fn read() -> std::io::Result<Self> {
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
    fn an_option_is_that_of_the_file_system_on_the_device() {
        let has = |line: &str| has_option(line.as_bytes(), b"7:1", b"lazytime");
        assert!(has("30 22 7:1 / /mnt rw,relatime shared:1 - ext4 /dev/loop1 rw,lazytime,data=journal"));
        for line in [
            "30 22 7:1 / /mnt rw,relatime - ext4 /dev/loop1 rw",
            "30 22 7:11 / /mnt rw,relatime - ext4 /dev/loop1 rw,lazytime",
            "30 22 7:1 / /lazytime rw,relatime - ext4 /dev/lazytime rw,nolazytime",
            "",
        ] {
            assert!(!has(line), "{line}");
        }
        assert!(!hides_attributes(0).unwrap());
    }
}
