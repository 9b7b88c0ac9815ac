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

impl Drop for Folder {
    fn drop(&mut self) {
        if env::var_os("BED_KEEP").is_none_or(|value| value != "1") {
            self.unmount();
            // What can't be removed now (say, an immutable file left by a test) must not hide the
            // test's own result.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
