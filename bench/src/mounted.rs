//! What is mounted for a measurement, and file systems that are made for it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bed::{BedError, Result, SlowStorage, argv, run};
use nix::mount::{MntFlags, umount2};

/// Unmounted with the value.
#[derive(Debug)]
pub enum Mounted {
    /// Held for its drop.
    Slow {
        /// The process behind it.
        _storage: SlowStorage,
    },
    /// A mount point of the kernel's.
    Kernel(PathBuf),
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Self::Kernel(place) = self {
            // It fails only if it is gone already.
            let _ = umount2(&*place, MntFlags::MNT_DETACH);
        }
    }
}

/// Makes a file system of so many bytes with a program, and mounts it; its file is gone when it is
/// unmounted. `options` are those of the mount, `loop` among them.
pub fn file_system(place: &Path, size: u64, program: &[&str], options: &str) -> Result<Mounted> {
    let image = place.with_extension("image");
    File::create(&image).and_then(|made| made.set_len(size)).map_err(BedError::file("create", &image))?;
    let [image_word, place_word] = [&image, place].map(|path| path.display().to_string());
    good(&[program, &[&image_word]].concat(), b"")?;
    good(&["mount", "-o", options, &image_word, &place_word], b"")?;
    let mounted = Mounted::Kernel(place.to_owned());
    // The loop device keeps it open.
    fs::remove_file(&image).map_err(BedError::file("remove", &image))?;
    Ok(mounted)
}

/// Runs a program that must end well; what it has printed.
pub fn good(words: &[&str], input: &[u8]) -> Result<String> {
    let done = run(&argv(words.iter().copied()), input)?;
    if done.status.success() {
        return Ok(done.text());
    }
    Err(BedError::Program { program: words.join(" "), problem: done.text() })
}
