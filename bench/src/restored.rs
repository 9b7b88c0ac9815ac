//! Where restores go: a new folder each time. What was restored is emptied and stays until the
//! bench ends. While the disk has room only large files are emptied: to empty thousands of small
//! ones takes longer than to restore them.
//!
//! ext4 passes over inodes that were freed in the last minutes, one by one, whenever it searches a
//! free one. With the tree of the restore before just removed, the next one's files cost the daemon
//! up to ten times the system time. So the folder can also be an ext4 that is made anew for each
//! bed, in which nothing was ever removed.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use bed::{BedError, Result};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::mounted::{Mounted, file_system};
use crate::programs::is_on_path;
use crate::tree::visit;

/// Of a file system for restores, bytes; what is not written takes no room.
const ROOM: u64 = 16 << 30;
/// Bytes of a file that is emptied even if the disk has room.
const LARGE: u64 = 128 << 10;

/// The folder of all restores of a run.
#[derive(Debug)]
pub struct Restored {
    folder: PathBuf,
    begun: u32,
    /// The file system that was made for it.
    made: Option<Mounted>,
}

impl Restored {
    /// Restores go below `folder`. What an interrupted run has left there is emptied and stays,
    /// too.
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(BedError::file("create", &folder))?;
        let mut begun = 0;
        for entry in fs::read_dir(&folder).map_err(BedError::file("read", &folder))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
            begun = begun.max(number.unwrap_or_default());
            empty(&entry.path(), 0)?;
        }
        Ok(Self { folder, begun, made: None })
    }

    /// Makes the folder an ext4 of its own, without what was restored before. Its tables of inodes
    /// are not written in the background. Nothing is done in memory, and without root.
    pub fn make_file_system(&mut self) -> Result<()> {
        let is_in_memory = statfs(&self.folder).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
        if self.made.is_none() && (is_in_memory || !geteuid().is_root() || !is_on_path("mkfs.ext4")) {
            return Ok(());
        }
        self.made = None;
        fs::create_dir_all(&self.folder).map_err(BedError::file("create", &self.folder))?;
        let program = ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"];
        self.made = Some(file_system(&self.folder, ROOM, &program, "loop,noinit_itable")?);
        Ok(())
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
        empty(&self.folder(side), if has_room(&self.folder) { LARGE } else { 0 })
    }

    /// Removes all.
    pub fn remove(&mut self) -> Result<()> {
        self.made = None;
        if self.folder.exists() { remove(&self.folder) } else { Ok(()) }
    }
}

/// Whether a quarter of the disk is free.
fn has_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.blocks_available() >= disk.blocks() / 4)
}

/// Empties the files of a folder that have so many bytes.
fn empty(folder: &Path, least: u64) -> Result<()> {
    visit(folder, &mut |path| {
        let size = path.symlink_metadata().map_err(BedError::file("look at", path))?.len();
        if size < least {
            return Ok(());
        }
        OpenOptions::new().write(true).truncate(true).open(path).map(drop).map_err(BedError::file("empty", path))
    })
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).map_err(BedError::file("remove", folder))
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
