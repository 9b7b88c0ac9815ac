//! Where restores go: a new folder each time. What was restored is emptied and stays until the
//! bench ends.
//!
//! ext4 passes over inodes that were freed in the last minutes, one by one, whenever it searches a
//! free one. With the tree of the restore before just removed, the next one's files cost the daemon
//! up to ten times the system time.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use bed::Result;

use crate::tree::{file, visit};

/// The folder of all restores of a run.
#[derive(Debug)]
pub struct Restored {
    folder: PathBuf,
    begun: u32,
}

impl Restored {
    /// Restores go below `folder`, which is new: what an interrupted run has left goes.
    pub fn new(folder: PathBuf) -> Result<Self> {
        let restored = Self { folder, begun: 0 };
        restored.remove()?;
        fs::create_dir_all(&restored.folder).map_err(file("create", &restored.folder))?;
        Ok(restored)
    }

    /// From now on [`Self::folder`] gives folders that are not there yet.
    pub fn renew(&mut self) {
        self.begun += 1;
    }

    /// The folder of all.
    pub fn all(&self) -> &Path {
        &self.folder
    }

    /// The name of the folder in it to which a side restores.
    pub fn name(&self, side: &str) -> String {
        format!("{}-{side}", self.begun)
    }

    /// Where a side restores to.
    pub fn folder(&self, side: &str) -> PathBuf {
        self.folder.join(self.name(side))
    }

    /// Gives the room of what a side has restored back to the disk, and keeps the inodes.
    pub fn empty(&self, side: &str) -> Result<()> {
        visit(&self.folder(side), &mut |path| {
            OpenOptions::new().write(true).truncate(true).open(path).map(drop).map_err(file("empty", path))
        })
    }

    /// Removes all.
    pub fn remove(&self) -> Result<()> {
        if self.folder.exists() { remove(&self.folder) } else { Ok(()) }
    }
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).map_err(file("remove", folder))
}
