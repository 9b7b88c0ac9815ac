//! The bed's own folder: made new for each bed, removed with it.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::mount::{MntFlags, umount2};

use crate::error::{BedError, Result};

/// A new folder below the temporary directory, readable by its owner only. Dropping it unmounts
/// what is mounted in it, and removes it with everything in it, unless `BED_KEEP=1` is set.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes `<tmp>/bed-<label>-<pid>-<n>`.
    pub fn new(label: &str) -> Result<Self> {
        Self::below(&env::temp_dir(), label)
    }

    /// Makes `<parent>/bed-<label>-<pid>-<n>`.
    pub fn below(parent: &Path, label: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("bed-{label}-{}-{number}", process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(BedError::file("create", &path)(error)),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory below it, with its parents.
    pub fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(BedError::file("create", &path))?;
        Ok(path)
    }

    /// What a test has mounted in it.
    fn unmount(&self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
        for point in points.filter(|point| point.starts_with(&self.path)) {
            let _ = umount2(point, MntFlags::MNT_DETACH);
        }
    }
}

/// In a folder that `BED_KEEP` has kept.
const KEPT: &str = "kept";

/// Removes the folders below this one whose processes were killed.
pub fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.strip_prefix("bed-").unwrap_or_default().rsplitn(3, '-');
        let (Some(Ok(_)), Some(Ok(pid))) = (parts.next().map(str::parse::<u32>), parts.next().map(str::parse::<u32>))
        else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() && !entry.path().join(KEPT).exists() {
            drop(Folder { path: entry.path() });
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if env::var_os("BED_KEEP").is_none_or(|value| value != "1") {
            self.unmount();
            // What can't be removed now (say, an immutable file left by a test) must not hide the
            // test's own result.
            let _ = fs::remove_dir_all(&self.path);
        } else {
            let _ = fs::write(self.path.join(KEPT), "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_swept_away() {
        let place = Folder::new("swept").unwrap();
        let ours = Folder::below(place.path(), "x-y").unwrap();
        // The kernel gives no process this number.
        for name in ["bed-x-y-4194305-0", "bed-kept-4194305-0/kept", "bed-x-4194305-log", "other-4194305-0"] {
            place.make(name).unwrap();
        }
        sweep(place.path());
        let mut left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let kept = ["bed-kept-4194305-0", "bed-x-4194305-log"].map(|name| place.path().join(name));
        assert_eq!(left, [&kept[..], &[ours.path().to_owned(), place.path().join("other-4194305-0")]].concat());
    }
}
