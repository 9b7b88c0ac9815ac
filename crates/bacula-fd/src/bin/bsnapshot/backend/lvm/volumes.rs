//! The logical volumes and groups of the host, as `lvs` and `vgs` print them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::sys::stat::{major, minor, stat};

use crate::failure::{Failure, Outcome};
use crate::tools::{Tools, lines, words};

/// Between columns; no name may have it.
const BETWEEN: &str = "|";
/// The columns, in the order of [`LogicalVolume::parse`].
const COLUMNS: &str =
    "vg_name,lv_name,lv_path,lv_dm_path,lv_size,lv_attr,origin,pool_lv,lv_kernel_major,lv_kernel_minor,lv_time";
/// Times in seconds since 1970.
const SECONDS: &str = "report { time_format=\"%s\" }";

/// One logical volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogicalVolume {
    /// Its volume group.
    pub(super) group: OsString,
    /// Its name in the group.
    pub(super) name: OsString,
    /// `/dev/GROUP/NAME`.
    pub(super) path: OsString,
    /// `/dev/mapper/GROUP-NAME`.
    mapper_path: OsString,
    /// In bytes.
    pub(super) size: u64,
    attributes: OsString,
    /// The name of the volume that this is a snapshot of, or empty.
    pub(super) origin: OsString,
    pool: OsString,
    device: Option<(u64, u64)>,
    /// Seconds since 1970.
    pub(super) created: String,
}

impl LogicalVolume {
    fn parse(line: &OsStr) -> Option<Self> {
        let mut columns =
            line.as_bytes().split(|byte| *byte == b'|').map(|column| OsStr::from_bytes(column.trim_ascii()));
        let mut next = || columns.next().map(OsStr::to_owned);
        let (group, name, path, mapper_path) = (next()?, next()?, next()?, next()?);
        let size = number(&next()?)?;
        let (attributes, origin, pool) = (next()?, next()?, next()?);
        let device = number(&next()?).zip(number(&next()?));
        let created = number(&next()?).unwrap_or_default().to_string();
        // Volumes that others are made of have no path.
        let whole =
            columns.next().is_none() && !group.is_empty() && !name.is_empty() && path.as_bytes().starts_with(b"/");
        whole.then_some(Self { group, name, path, mapper_path, size, attributes, origin, pool, device, created })
    }

    /// Whether a path is one of its names.
    pub(super) fn is_at(&self, path: &OsStr) -> bool {
        path == self.path || path == self.mapper_path
    }

    /// Whether these are the numbers of its device, as in the table of mounts.
    pub(super) fn is_numbered(&self, numbers: &OsStr) -> bool {
        self.device.is_some_and(|(major, minor)| *numbers == *format!("{major}:{minor}"))
    }

    /// Whether it is in a thin pool.
    pub(super) fn is_thin(&self) -> bool {
        self.kind() == b'V' && !self.pool.is_empty()
    }

    /// Whether it is a snapshot whose space did not suffice.
    pub(super) fn is_invalid(&self) -> bool {
        matches!(self.kind(), b'S') || matches!(self.attributes.as_bytes().get(4), Some(b'I' | b'S'))
    }

    /// Why there can be no snapshot of it.
    pub(super) fn has_no_snapshots(&self) -> Option<&'static str> {
        match self.kind() {
            b's' | b'S' => Some("it is itself a snapshot"),
            b't' | b'T' | b'd' | b'D' => Some("it is a pool"),
            b'v' => Some("it is virtual"),
            _ => None,
        }
    }

    /// The path of a volume beside it.
    pub(super) fn sibling(&self, name: &str) -> OsString {
        Path::new(&self.path).with_file_name(name).into_os_string()
    }

    /// The path of its origin.
    pub(super) fn origin_path(&self) -> OsString {
        Path::new(&self.path).with_file_name(&self.origin).into_os_string()
    }

    fn kind(&self) -> u8 {
        self.attributes.as_bytes().first().copied().unwrap_or_default()
    }
}

/// All of the host.
pub(super) struct Volumes(Vec<LogicalVolume>);

impl Volumes {
    /// Asks `lvs`.
    pub(super) fn read(tools: &Tools<'_>) -> Outcome<Self> {
        let form = words![
            "--noheadings",
            "--nosuffix",
            "--units",
            "b",
            "--separator",
            BETWEEN,
            "--config",
            SECONDS,
            "-o",
            COLUMNS
        ];
        let printed = tools.run("lvs", form)?;
        Ok(Self(lines(&printed).filter_map(LogicalVolume::parse).collect()))
    }

    /// The one that a device file is.
    pub(super) fn at(&self, path: &OsStr) -> Option<&LogicalVolume> {
        let named = self.0.iter().find(|volume| volume.is_at(path));
        named.or_else(|| {
            let device = stat(path).ok().map(|about| (major(about.st_rdev), minor(about.st_rdev)));
            device.filter(|device| *device != (0, 0)).and_then(|device| self.numbered(device))
        })
    }

    /// The one that a file system is on: by the device's numbers, else by its path.
    pub(super) fn of_device(&self, device: u64, path: &OsStr) -> Option<&LogicalVolume> {
        self.numbered((major(device), minor(device))).or_else(|| self.at(path))
    }

    /// The volume that another is a snapshot of.
    pub(super) fn origin_of(&self, volume: &LogicalVolume) -> Option<&LogicalVolume> {
        if volume.origin.is_empty() {
            return None;
        }
        self.0.iter().find(|other| other.group == volume.group && other.name == volume.origin)
    }

    /// The snapshots of a volume.
    pub(super) fn snapshots_of(&self, origin: &LogicalVolume) -> impl Iterator<Item = &LogicalVolume> {
        let is_of = |volume: &&LogicalVolume| volume.group == origin.group && volume.origin == origin.name;
        self.0.iter().filter(is_of)
    }

    fn numbered(&self, device: (u64, u64)) -> Option<&LogicalVolume> {
        self.0.iter().find(|volume| volume.device == Some(device))
    }
}

/// A volume group.
pub(super) struct Group {
    /// Bytes of it that no volume has.
    pub(super) free: u64,
}

impl Group {
    /// Asks `vgs`.
    pub(super) fn read(tools: &Tools<'_>, name: &OsStr) -> Outcome<Self> {
        let form = words!["--noheadings", "--nosuffix", "--units", "b", "-o", "vg_free", name];
        let printed = tools.run("vgs", form)?;
        let free = lines(&printed).next().and_then(number);
        let free =
            free.ok_or_else(|| Failure::Other(format!("vgs: no free space of {} in its output", name.display())))?;
        Ok(Self { free })
    }
}

/// What the device mapper calls a device; none for other devices.
pub(super) fn dm_uuid(tools: &Tools<'_>, device: u64) -> Option<Vec<u8>> {
    let place = format!("dev/block/{}:{}/dm/uuid", major(device), minor(device));
    std::fs::read(tools.sysfs.join(place)).ok()
}

fn number(text: impl AsRef<OsStr>) -> Option<u64> {
    text.as_ref().to_str()?.parse().ok()
}
