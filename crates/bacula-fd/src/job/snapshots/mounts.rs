//! The mounts of this host, and which of them may have a snapshot (reference 07 §12.2).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use fd_os::mounts::unescaped;
use fd_walk::path_in_snapshot;

use crate::security::own_file;

/// Bytes of the longest table of mounts that is read.
const MOST_BYTES: u64 = 16 << 20;

/// File systems that never have a snapshot.
const SKIPPED_TYPES: [&str; 23] = [
    "autofs",
    "binfmt_misc",
    "cgroup",
    "configfs",
    "debugfs",
    "dev",
    "devpts",
    "devtmpfs",
    "ecryptfs",
    "fuse.gvfsd-fuse",
    "fusectl",
    "fd",
    "hugetlbfs",
    "mqueue",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "systemd-1",
    "tmpfs",
    "rootfs",
];

/// File systems whose subvolumes have device numbers that the table does not show.
const WITH_SUBVOLUMES: [&str; 2] = ["btrfs", "bcachefs"];

/// One mount, or a subvolume that the helper program has named.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mount {
    /// `st_dev` of what is in it.
    pub(crate) device_number: u64,
    /// Where it is.
    pub(crate) point: Vec<u8>,
    /// The directory of the file system that is mounted there: `/`, except for bind mounts and some
    /// subvolumes.
    pub(crate) root: Vec<u8>,
    /// The device, or what stands in its place.
    pub(crate) device: Vec<u8>,
    /// The type of the file system.
    pub(crate) fs_type: Vec<u8>,
}

impl Mount {
    /// Whether the helper program is never asked about it.
    pub(crate) fn is_skipped(&self) -> bool {
        let is_type = |name: &&str| self.fs_type.eq_ignore_ascii_case(name.as_bytes());
        let in_kernel = |part: &[u8]| self.point.starts_with(part);
        SKIPPED_TYPES.iter().any(is_type) || in_kernel(b"/proc/") || in_kernel(b"/sys/")
    }

    /// Whether other file systems can be in it that are no entries of the table of mounts.
    pub(crate) fn has_subvolumes(&self) -> bool {
        WITH_SUBVOLUMES.iter().any(|name| self.fs_type == name.as_bytes())
    }
}

/// The mounts of this process, in the kernel's order.
///
/// # Errors
/// The kernel's, and for a table of more than 16 MiB.
pub(crate) fn read() -> io::Result<Vec<Mount>> {
    let table = own_file::content(File::open("/proc/self/mountinfo")?, MOST_BYTES)?;
    let device_number = |point: &[u8]| {
        let path = std::ffi::OsStr::from_bytes(point);
        nix::sys::stat::lstat(path).map_or(0, |found| found.st_dev)
    };
    Ok(looked_at(parse(&table), device_number))
}

/// The mounts with the device numbers that the table does not have. Another mount point may be dead
/// (a server that is gone): only those are looked at that have to be.
fn looked_at(mut mounts: Vec<Mount>, mut device_number: impl FnMut(&[u8]) -> u64) -> Vec<Mount> {
    for mount in &mut mounts {
        if mount.has_subvolumes() {
            mount.device_number = device_number(&mount.point);
        }
    }
    mounts.retain(|mount| mount.device_number != 0);
    mounts
}

/// The lines of `/proc/self/mountinfo` as mounts. A mount that a later one covers is left out.
fn parse(table: &[u8]) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = table.split(|byte| *byte == b'\n').filter_map(line).collect();
    let mut met = HashSet::new();
    mounts.reverse();
    mounts.retain(|mount| met.insert(mount.point.clone()));
    mounts.reverse();
    mounts
}

/// `36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw`
fn line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let numbers = fields.nth(2)?;
    let (root, point) = (fields.next()?, fields.next()?);
    fields.find(|field| *field == b"-")?;
    let (fs_type, device) = (fields.next()?, fields.next()?);
    Some(Mount {
        device_number: device_number(numbers)?,
        point: unescaped(point),
        root: unescaped(root),
        device: unescaped(device),
        fs_type: unescaped(fs_type),
    })
}

fn device_number(numbers: &[u8]) -> Option<u64> {
    let (major, minor) = std::str::from_utf8(numbers).ok()?.split_once(':')?;
    Some(nix::sys::stat::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The mounts of this host, to be searched.
#[derive(Default, Debug)]
pub(crate) struct MountTable {
    mounts: Vec<Mount>,
    /// The place of each mount point.
    by_point: HashMap<Vec<u8>, usize>,
    /// The mount of each device number that shows most of its file system.
    main: BTreeMap<u64, usize>,
    /// Why there may be subvolumes in a file system that are not known.
    incomplete: BTreeMap<u64, Vec<u8>>,
}

impl MountTable {
    /// In this order.
    pub(crate) fn new(mounts: Vec<Mount>) -> Self {
        let mut table = Self::default();
        for mount in mounts {
            table.push(mount);
        }
        table
    }

    /// Adds one; `false` if its mount point is known.
    pub(crate) fn push(&mut self, mount: Mount) -> bool {
        let at = self.mounts.len();
        if self.by_point.contains_key(&mount.point) {
            return false;
        }
        self.by_point.insert(mount.point.clone(), at);
        let known = self.main.get(&mount.device_number).and_then(|at| self.mounts.get(*at));
        if known.is_none_or(|known| mount.root.len() < known.root.len()) {
            self.main.insert(mount.device_number, at);
        }
        self.mounts.push(mount);
        true
    }

    /// What would be the root of a subvolume at this path: its path in the file system around it,
    /// as in the table of mounts. It may be mounted by itself as well.
    pub(crate) fn root_at(&self, path: &[u8]) -> Vec<u8> {
        let around = self.holding(path).and_then(|at| self.get(at)).filter(|mount| mount.has_subvolumes());
        let inside = around.and_then(|mount| path_in_snapshot(path, &mount.point, &mount.root));
        inside.unwrap_or_else(|| b"/".to_vec())
    }

    /// Notes that there may be subvolumes in a file system that are not known, and why. In its
    /// snapshot they would be empty directories.
    pub(crate) fn note_incomplete(&mut self, device_number: u64, why: &[u8]) {
        self.incomplete.entry(device_number).or_insert_with(|| why.to_vec());
    }

    /// Why there may be such subvolumes in a file system; `None` if there are none.
    pub(crate) fn incomplete(&self, device_number: u64) -> Option<&[u8]> {
        self.incomplete.get(&device_number).map(Vec::as_slice)
    }

    /// Whether there is room for one more.
    pub(crate) const fn holds_less_than(&self, most: usize) -> bool {
        self.mounts.len() < most
    }

    /// In their order.
    pub(crate) fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The one of this number.
    pub(crate) fn get(&self, at: usize) -> Option<&Mount> {
        self.mounts.get(at)
    }

    /// The device numbers, ascending, each with the mount by which the helper program knows it:
    /// nearly always the first one, as in the stock daemon.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (u64, &Mount)> {
        self.main.iter().filter_map(|(number, at)| Some((*number, self.mounts.get(*at)?)))
    }

    /// The mount by which the helper program knows a file system.
    pub(crate) fn main(&self, device_number: u64) -> Option<usize> {
        self.main.get(&device_number).copied()
    }

    /// The mount that holds this plain path: the one with the longest mount point.
    pub(crate) fn holding(&self, path: &[u8]) -> Option<usize> {
        let mut path = path;
        loop {
            let point = if path.is_empty() { b"/".as_slice() } else { path };
            if let Some(at) = self.by_point.get(point) {
                return Some(*at);
            }
            path = path.get(..path.iter().rposition(|byte| *byte == b'/')?).unwrap_or_default();
        }
    }

    /// The mount that holds the mount point of another one.
    pub(crate) fn around(&self, at: usize) -> Option<usize> {
        let point = &self.mounts.get(at)?.point;
        let slash = point.iter().rposition(|byte| *byte == b'/')?;
        if point.len() == 1 { None } else { self.holding(point.get(..slash).unwrap_or_default()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        23 22 0:20 / /proc rw - proc proc rw\n\
        24 22 0:40 / /data\\040one rw - overlay bed\\134x rw,lowerdir=/a\n\
        25 22 254:0 /srv/www /data\\040one/www rw shared:1 master:2 - ext4 /dev/vda rw\n\
        26 22 0:41 / /late rw - tmpfs t rw\n\
        27 22 0:42 / /late rw - xfs /dev/b rw\n\
        broken line\n";

    #[test]
    fn the_table_is_read_with_its_escapes_and_without_what_is_covered() {
        let mounts = parse(TABLE);
        let points: Vec<_> = mounts.iter().map(|mount| mount.point.as_slice()).collect();
        assert_eq!(points, [&b"/"[..], b"/proc", b"/data one", b"/data one/www", b"/late"]);
        assert_eq!(mounts[0].device_number, 254 << 8);
        assert_eq!((mounts[2].device.as_slice(), mounts[3].root.as_slice()), (&b"bed\\x"[..], &b"/srv/www"[..]));
        assert_eq!(mounts[4].fs_type, b"xfs");
    }

    #[test]
    fn only_mount_points_with_subvolumes_are_looked_at() {
        let table = [TABLE, b"28 22 0:43 /@ /sub rw - btrfs /dev/c rw\n29 22 0:44 / /gone rw - btrfs /dev/d rw\n"];
        let mut asked = Vec::new();
        let mounts = looked_at(parse(&table.concat()), |point| {
            asked.push(point.to_vec());
            if point == b"/sub" { 77 } else { 0 }
        });
        assert_eq!(asked, [&b"/sub"[..], b"/gone"]);
        let numbers: Vec<_> = mounts.iter().skip(4).map(|mount| (&*mount.point, mount.device_number)).collect();
        assert_eq!(numbers, [(&b"/late"[..], 42), (b"/sub", 77)]);
    }

    #[test]
    fn a_path_is_on_the_mount_with_the_longest_mount_point() {
        let table = MountTable::new(parse(TABLE));
        let at = |path: &str| table.holding(path.as_bytes()).map(|at| table.mounts()[at].point.clone());
        assert_eq!(at("/data one/www/f").as_deref(), Some(&b"/data one/www"[..]));
        assert_eq!(at("/data one").as_deref(), Some(&b"/data one"[..]));
        assert_eq!(at("/data onex").as_deref(), Some(&b"/"[..]));
        assert_eq!(at("/data one/").as_deref(), Some(&b"/data one"[..]));
        assert_eq!((table.around(3), table.around(2), table.around(0)), (Some(2), Some(0), None));
        assert_eq!((table.main(254 << 8), table.main(77)), (Some(0), None));
        assert_eq!(table.devices().count(), 4);
    }

    #[test]
    fn a_subvolume_has_its_path_in_the_file_system_around_it_as_its_root() {
        let table = MountTable::new(parse(
            b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
              23 22 0:40 / /pool rw - btrfs /dev/vdb rw\n\
              24 22 0:41 /@home /home rw - btrfs /dev/vdb rw\n",
        ));
        let at = |path: &str| String::from_utf8(table.root_at(path.as_bytes())).unwrap();
        assert_eq!((at("/pool/@home").as_str(), at("/home/a/b").as_str()), ("/@home", "/@home/a/b"));
        // Another helper may name what is a file system of its own.
        assert_eq!(at("/srv/x"), "/");
    }

    #[test]
    fn kernel_file_systems_are_skipped_whatever_their_case() {
        let skipped = |fs_type: &str, point: &str| {
            let text = |text: &str| text.as_bytes().to_vec();
            Mount { fs_type: text(fs_type), point: text(point), ..Mount::default() }.is_skipped()
        };
        assert!(skipped("TmpFS", "/tmp") && skipped("proc", "/proc") && skipped("ext4", "/sys/x"));
        assert!(!skipped("overlay", "/tmp") && !skipped("cgroup2", "/cg") && !skipped("ext4", "/system"));
    }
}
