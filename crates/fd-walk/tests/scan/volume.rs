//! A file system in an image, which a loop device makes a disk.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What has to be free in memory, where the images are then: that of a container may be small.
const ROOM: u64 = 1 << 30;

/// How a file system is made and mounted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The words of its `mkfs`.
    pub(crate) make: &'static [&'static str],
    /// Options of its mount.
    pub(crate) mount: &'static str,
}

impl Kind {
    fn is_btrfs(self) -> bool {
        self.name.starts_with("btrfs")
    }
}

const fn kind(name: &'static str, make: &'static [&'static str], mount: &'static str) -> Kind {
    Kind { name, make, mount }
}

const EXT4: &[&str] = &["mkfs.ext4", "-q", "-F"];

/// All that are tested.
pub(crate) const KINDS: [Kind; 21] = [
    kind("ext4", EXT4, ""),
    kind("ext4, 128", &["mkfs.ext4", "-q", "-F", "-I", "128"], ""),
    kind("ext4, 512, 1k", &["mkfs.ext4", "-q", "-F", "-I", "512", "-b", "1024"], ""),
    kind("ext4, 1k", &["mkfs.ext4", "-q", "-F", "-b", "1024", "-N", "30000"], ""),
    kind(
        "ext4, 1k, 128, meta_bg",
        &["mkfs.ext4", "-q", "-F", "-b", "1024", "-I", "128", "-O", "meta_bg,^resize_inode"],
        "",
    ),
    kind("ext4, meta_bg", &["mkfs.ext4", "-q", "-F", "-O", "meta_bg,^resize_inode", "-g", "1024"], ""),
    kind(
        "ext4, meta_bg, 32bit",
        &["mkfs.ext4", "-q", "-F", "-O", "meta_bg,^resize_inode,^64bit,^flex_bg", "-g", "512"],
        "",
    ),
    kind("ext4, bigalloc", &["mkfs.ext4", "-q", "-F", "-O", "bigalloc"], ""),
    kind("ext4, bigalloc, 1k", &["mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "bigalloc,meta_bg,^resize_inode"], ""),
    kind("ext4, inline_data", &["mkfs.ext4", "-q", "-F", "-O", "inline_data"], ""),
    kind("ext4, no journal", &["mkfs.ext4", "-q", "-F", "-O", "^has_journal"], ""),
    kind("ext4, data=journal", EXT4, "data=journal"),
    kind("ext4, lazytime", EXT4, "lazytime"),
    kind("ext4, uninit_bg", &["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum,uninit_bg", "-g", "2048"], ""),
    kind(
        "ext4, no checksums",
        &["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum,^uninit_bg,^flex_bg", "-g", "1024"],
        "",
    ),
    kind(
        "ext4, sparse_super2",
        &["mkfs.ext4", "-q", "-F", "-O", "sparse_super2,metadata_csum_seed", "-g", "2048"],
        "init_itable=0",
    ),
    kind("ext3", &["mkfs.ext3", "-q", "-F"], ""),
    kind("ext2", &["mkfs.ext2", "-q", "-F"], ""),
    BTRFS,
    kind("btrfs, compress", BTRFS.make, "compress-force=zstd"),
    kind("btrfs, lazytime", BTRFS.make, "lazytime"),
];

/// btrfs.
pub(crate) const BTRFS: Kind = kind("btrfs", &["mkfs.btrfs", "-q", "-f"], "");

/// See the module. It is unmounted when it is dropped.
pub(crate) struct Volume {
    folder: tempfile::TempDir,
    image: PathBuf,
    kind: Kind,
}

/// Runs a program and says whether it went well.
pub(crate) fn run(words: &[&OsStr]) -> bool {
    let Some((program, words)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether this process has a security label that may confine it: then there is no scan.
fn is_confined() -> bool {
    let label = fs::read_to_string("/proc/thread-self/attr/current").unwrap_or_default();
    let label = label.trim_end_matches(['\0', '\n']);
    // SELinux: user, role, type, level. AppArmor: a profile, and its mode.
    let name = label.split(':').nth(2).unwrap_or(label);
    let is_free = ["", "kernel", "unconfined", "spc_t"].contains(&name)
        || name.starts_with("unconfined_")
        || name.ends_with(" (unconfined)");
    !is_free
}

impl Volume {
    /// Says why if this machine can't make it.
    pub(crate) fn make(kind: Kind) -> Result<Self, &'static str> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root, to mount");
        }
        if !Path::new("/dev/loop-control").exists() {
            return Err("there are no loop devices");
        }
        if is_confined() {
            return Err("a security label may confine this process, which has no scan then");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let memory = Path::new("/dev/shm");
        let is_roomy = rustix::fs::statvfs(memory).is_ok_and(|memory| memory.f_bavail * memory.f_frsize >= ROOM);
        let place = if is_roomy { memory } else { folder.path() };
        let image = place.join(format!("{}.image", folder.path().file_name().expect("a name").to_string_lossy()));
        // btrfs is made no smaller.
        let len = if kind.is_btrfs() { 160 << 20 } else { 64 << 20 };
        File::create(&image).expect("an image").set_len(len).expect("its size");
        let volume = Self { folder, image, kind };
        fs::create_dir(volume.top()).expect("a folder");
        let words: Vec<&OsStr> = kind.make.iter().map(OsStr::new).chain([volume.image.as_os_str()]).collect();
        if !run(&words) {
            return Err("the file system can't be made");
        }
        let options = ["loop", kind.mount].join(if kind.mount.is_empty() { "" } else { "," });
        let (image, top) = (volume.image.clone(), volume.top());
        let words = ["mount".as_ref(), "-o".as_ref(), options.as_ref(), image.as_os_str(), top.as_os_str()];
        if run(&words) { Ok(volume) } else { Err("the file system can't be mounted") }
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.folder.path().join("top")
    }

    /// A folder beside it, on another file system.
    pub(crate) fn beside(&self) -> &Path {
        self.folder.path()
    }

    /// The disk.
    pub(crate) fn device(&self) -> PathBuf {
        let found = fs::metadata(self.top()).expect("a directory");
        let dev = std::os::unix::fs::MetadataExt::dev(&found);
        let device = format!("/sys/dev/block/{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        Path::new("/dev").join(fs::read_link(device).expect("a device").file_name().expect("a name"))
    }

    /// Whether there is a scan for it: ext2 and ext3 may have drivers of their own in the kernel.
    pub(crate) fn has_scan(&self) -> bool {
        !self.kind.mount.contains("lazytime") && (self.kind.is_btrfs() || self.is_of_ext4())
    }

    fn is_of_ext4(&self) -> bool {
        Path::new("/sys/fs/ext4").join(self.device().file_name().expect("a name")).exists()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        run(&["umount".as_ref(), "-l".as_ref(), self.top().as_os_str()]);
        let _gone = fs::remove_file(&self.image);
    }
}
