//! A btrfs in a file.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{Folder, Result, argv, roomy_memory, run};

/// A mounted file system. Dropping it unmounts it.
pub(crate) struct Btrfs {
    // Removed after the unmounting.
    folder: Folder,
    top: PathBuf,
    /// Where subvolumes are mounted by themselves.
    others: Vec<PathBuf>,
}

impl Btrfs {
    /// Makes one of so many megabytes. Says why if this machine can't.
    pub(crate) fn make(label: &str, megabytes: u64) -> Result<std::result::Result<Self, &'static str>> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(Err("needs root, to mount"));
        }
        if !fs::read_to_string("/proc/filesystems").unwrap_or_default().contains("\tbtrfs") {
            return Ok(Err("the kernel has no btrfs"));
        }
        if !Path::new("/dev/loop-control").exists() {
            return Ok(Err("there are no loop devices"));
        }
        if !program("mkfs.btrfs") {
            return Ok(Err("btrfs-progs is not installed"));
        }
        let folder = Folder::new(label)?;
        // Other users' programs work in it.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        // In memory: the programs in it wait for the disk all the time.
        let place = roomy_memory(1 << 30).unwrap_or_else(|| folder.path());
        let image = place.join(format!("{}.image", folder.path().file_name().unwrap().to_string_lossy()));
        fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let top = folder.make("top")?;
        let name = image.to_string_lossy();
        let made = run(&argv(["mkfs.btrfs", "-q", &*name]), b"")
            .map(|_| run(&argv(["mount", "-o", "loop", &*name, &*top.to_string_lossy()]), b""));
        // The loop device keeps it.
        fs::remove_file(&image).unwrap();
        let mounted = made??;
        assert!(mounted.status.success(), "{}", mounted.text());
        Ok(Ok(Self { folder, top, others: Vec::new() }))
    }

    /// Its top directory.
    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// The folder that its top directory is in, on another file system.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a subvolume.
    pub(crate) fn subvolume(&self, name: &str) -> PathBuf {
        let path = self.top.join(name);
        must(&["btrfs", "subvolume", "create", &path.to_string_lossy()]);
        path
    }

    /// Mounts a subvolume by itself, beside the top directory.
    pub(crate) fn mount(&mut self, name: &str) -> Result<PathBuf> {
        let at = self.folder.make(&format!("mounted-{name}"))?;
        let device = must(&["findmnt", "-n", "-o", "SOURCE", &self.top.to_string_lossy()]);
        let option = format!("subvol={name}");
        must(&["mount", "-o", &option, device.trim(), &at.to_string_lossy()]);
        self.others.push(at.clone());
        Ok(at)
    }

    /// The subvolumes that are snapshots.
    pub(crate) fn snapshots(&self) -> Vec<String> {
        let listed = must(&["btrfs", "subvolume", "list", "-s", &self.top.to_string_lossy()]);
        listed.lines().map(str::to_owned).collect()
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        for point in self.others.iter().chain([&self.top]) {
            let point = point.to_string_lossy().into_owned();
            if run(&argv(["umount", &point]), b"").is_ok_and(|done| !done.status.success()) {
                // A process of the test that failed may still be in it.
                let _ = run(&argv(["umount", "--lazy", &point]), b"");
            }
        }
    }
}

fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).exists())
}

/// Runs a program that must succeed; what it printed.
pub(crate) fn must(words: &[&str]) -> String {
    let done = run(&argv(words), b"").unwrap();
    assert!(done.status.success(), "{words:?}: {}", done.text());
    String::from_utf8_lossy(&done.stdout).into_owned()
}
