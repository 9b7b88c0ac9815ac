//! A bucket as a file system, so that the stock daemon can save it: Debian's `rclone mount`.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{BedError, PATIENCE, Process, Result, argv, wait_for};
use nix::mount::{MntFlags, umount2};

use crate::cell::Mounted;
use crate::programs::is_on_path;

fn options(mounted: Mounted) -> &'static [&'static str] {
    match mounted {
        Mounted::Plain => &[],
        Mounted::Tuned => &[
            "--use-server-modtime",
            "--no-checksum",
            "--s3-no-head-object",
            "--attr-timeout=1h",
            "--dir-cache-time=1h",
            "--max-read-ahead=1M",
        ],
    }
}

/// A bucket that is mounted. It is unmounted with its value.
#[derive(Debug)]
pub(crate) struct Mount {
    process: Process,
    place: PathBuf,
}

impl Mount {
    /// Mounts a bucket of the server on this port, read-only and with nothing in memory of it.
    pub(crate) fn new(mounted: Mounted, port: u16, bucket: &str, place: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(place).map_err(BedError::file("create", place))?;
        // With this variable, which some hosts set, `rclone` does not start.
        let mut words = argv(["env", "--unset=AWS_CA_BUNDLE", "rclone", "mount", &format!(":s3:{bucket}")]);
        words.push(place.into());
        words.extend(argv(["--read-only", "--s3-provider=Other", "--s3-access-key-id=key"]));
        words.extend(argv(["--s3-secret-access-key=secretsecret", "--s3-region=us-east-1"]));
        words.push(format!("--s3-endpoint=http://127.0.0.1:{port}").into());
        words.push(format!("--config={}", folder.join("rclone.conf").display()).into());
        words.push(format!("--cache-dir={}", folder.join("rclone").display()).into());
        words.extend(argv(options(mounted)));
        let process = Process::start("rclone", &words, &folder.join("rclone.log"))?;
        let mut mount = Self { process, place: place.to_owned() };
        let wanted = format!(" {} ", place.display());
        wait_for("a bucket to be mounted", PATIENCE, || {
            mount.process.must_run()?;
            let path = Path::new("/proc/self/mounts");
            let mounts = fs::read_to_string(path).map_err(BedError::file("read", path))?;
            Ok(if mounts.contains(&wanted) { Ok(()) } else { Err(mounts) })
        })?;
        Ok(mount)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Why nothing can be mounted here, if so.
    pub(crate) fn missing() -> Option<&'static str> {
        let is_here = ["rclone", "fusermount3"].into_iter().all(is_on_path);
        (!is_here).then_some("needs rclone mount: apt-get install rclone fuse3")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // It may be gone; and then the process ends by itself, or is killed with its value.
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
    }
}
