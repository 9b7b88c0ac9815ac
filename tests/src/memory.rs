//! A file system in memory, for trees whose directories are to be read in the same order on each
//! machine.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use nix::fcntl::AT_FDCWD;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use walkdir::WalkDir;

use crate::error::{BedError, Result};

/// A folder in memory, if there is so much room.
pub fn roomy_memory(bytes: u64) -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    let has_room = statvfs(memory).is_ok_and(|found| found.blocks_available() * found.fragment_size() >= bytes);
    has_room.then_some(memory)
}

/// Mounts a tmpfs in the folder of a bed, which unmounts it.
pub fn mount_memory(point: &Path) -> Result<()> {
    mount(Some("bed"), point, Some("tmpfs"), MsFlags::empty(), Some("size=200m"))
        .map_err(BedError::file_errno("mount a tmpfs on", point))
}

/// Has each directory below `top`, which is on a tmpfs, be read in the order of its names: there it
/// is the order in which names were made, or the opposite one, as the kernel likes.
pub fn in_order_of_names(top: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    for entry in WalkDir::new(top).contents_first(true).into_iter().flatten().filter(|entry| entry.file_type().is_dir())
    {
        let directory = entry.path();
        let status = directory.metadata().map_err(BedError::file("look at", directory))?;
        let mut names = listed(directory)?;
        names.sort();
        for _ in 0..2 {
            for name in &names {
                let (name, aside) = (directory.join(name), directory.join(".aside"));
                fs::rename(&name, &aside).map_err(BedError::file("rename", &name))?;
                fs::rename(&aside, &name).map_err(BedError::file("rename", &aside))?;
            }
            if listed(directory)?.is_sorted() {
                break;
            }
            names.reverse();
        }
        let [accessed, modified] = [(status.atime(), status.atime_nsec()), (status.mtime(), status.mtime_nsec())]
            .map(|(seconds, nanoseconds)| TimeSpec::new(seconds, nanoseconds));
        utimensat(AT_FDCWD, directory, &accessed, &modified, UtimensatFlags::NoFollowSymlink)
            .map_err(BedError::file_errno("set times of", directory))?;
        if !listed(directory)?.is_sorted() {
            return Err(BedError::Usage(format!("{} has an order of its own", directory.display())));
        }
    }
    Ok(())
}

/// The names in a directory, in its order.
fn listed(directory: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(directory).map_err(BedError::file("list", directory))?;
    entries.map(|entry| Ok(entry.map_err(BedError::file("list", directory))?.file_name())).collect()
}
