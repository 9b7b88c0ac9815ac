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
    /// Restores go below `folder`. What an interrupted run has left there is emptied and stays,
    /// too.
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(file("create", &folder))?;
        let mut begun = 0;
        for entry in fs::read_dir(&folder).map_err(file("read", &folder))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
            begun = begun.max(number.unwrap_or_default());
            empty(&entry.path())?;
        }
        Ok(Self { folder, begun })
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
        empty(&self.folder(side))
    }

    /// Removes all.
    pub fn remove(&self) -> Result<()> {
        if self.folder.exists() { remove(&self.folder) } else { Ok(()) }
    }
}

/// Empties all files of a folder.
fn empty(folder: &Path) -> Result<()> {
    visit(folder, &mut |path| {
        OpenOptions::new().write(true).truncate(true).open(path).map(drop).map_err(file("empty", path))
    })
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).map_err(file("remove", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupted_run_has_left_is_emptied_and_kept() {
        let folder = bed::Folder::new("restored").unwrap();
        let all = folder.path().join("restored");
        let mut interrupted = Restored::new(all.clone()).unwrap();
        interrupted.renew();
        let left = interrupted.folder("ours");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("a"), "one").unwrap();
        let mut next = Restored::new(all).unwrap();
        next.renew();
        assert_eq!(next.name("ours"), "2-ours");
        assert_eq!(fs::read(left.join("a")).unwrap(), b"");
        next.remove().unwrap();
        assert!(!left.exists());
    }
}
