//! The table of mounts, `/proc/self/mountinfo`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fd_os::mounts::unescaped;

use crate::failure::{Failure, Outcome};
use crate::tools::Tools;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The numbers of its device, `253:3`.
    pub(crate) device: OsString,
    /// What of the file system is mounted: `/`, or the path of a subvolume or of a bind mount.
    pub(crate) root: PathBuf,
    /// Where.
    pub(crate) at: PathBuf,
    /// Which kind of file system.
    pub(crate) kind: OsString,
    /// Device or dataset.
    pub(crate) source: OsString,
}

/// All mounts, in their order: a later one covers an earlier one at the same place.
#[derive(Debug)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the table.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn read(tools: &Tools<'_>) -> Outcome<Self> {
        let path = &tools.mountinfo;
        let text = std::fs::read(path);
        let text = text.map_err(|error| Failure::File { doing: "can't read", path: path.clone(), error })?;
        Ok(Self(text.split(|byte| *byte == b'\n').filter_map(parse).collect()))
    }

    /// Every mount.
    pub(crate) fn all(&self) -> &[Mount] {
        &self.0
    }

    /// What is mounted at a path.
    pub(crate) fn at(&self, path: &Path) -> Option<&Mount> {
        self.0.iter().rev().find(|mount| mount.at == path)
    }

    /// The mount that a path is in.
    pub(crate) fn containing(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|above| self.at(above))
    }
}

/// `36 35 98:0 /root /at options shared:1 - ext4 /dev/root options`.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let plain = |word| OsString::from_vec(unescaped(word));
    let device = plain(words.nth(2)?);
    let root = plain(words.next()?).into();
    let at = plain(words.next()?).into();
    let mut behind = words.skip_while(|word| word != b"-").skip(1);
    Some(Mount { device, root, at, kind: plain(behind.next()?), source: plain(behind.next()?) })
}

/// A path below the top of a file system, without its first `/`.
pub(crate) fn inside(path: &Path) -> &OsStr {
    let bytes = path.as_os_str().as_bytes();
    OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = b"43 27 0:39 /@home /mnt/a\\040b\\134 rw,relatime shared:5 master:1 - btrfs /dev/loop0 rw,subvol=/";
        let (device, root, at) = ("0:39".into(), "/@home".into(), "/mnt/a b\\".into());
        let mount = Mount { device, root, at, kind: "btrfs".into(), source: "/dev/loop0".into() };
        assert_eq!(parse(line), Some(mount));
        for short in [&b""[..], b"43 27", b"43 27 0:39 / /mnt rw", b"43 27 0:39 / /mnt rw - ext4"] {
            assert_eq!(parse(short), None);
        }
    }

    #[test]
    fn the_last_mount_of_a_place_counts() {
        let mount = |at: &str, kind: &str| parse(format!("1 0 8:1 / {at} rw - {kind} x rw").as_bytes()).unwrap();
        let mounts = Mounts(vec![mount("/", "ext4"), mount("/a", "xfs"), mount("/a", "btrfs")]);
        assert_eq!(mounts.at(Path::new("/a")).unwrap().kind, "btrfs");
        assert_eq!(mounts.containing(Path::new("/a/b/c")).unwrap().at, Path::new("/a"));
        assert_eq!(mounts.containing(Path::new("/ab")).unwrap().kind, "ext4");
    }
}
