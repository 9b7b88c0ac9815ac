//! A throw-away host: a copy of an unpacked Debian, entered by `chroot` in process and mount
//! namespaces of its own. The network is this machine's, so that the bed's Director reaches the
//! daemon.
//!
//! It has no systemd: services are started and stopped by init scripts, as the packages do where
//! systemd does not run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::error::{BedError, Result};
use crate::folder::Folder;
use crate::patience::{PATIENCE, wait_for};
use crate::process::{Process, argv, run};

/// The host. Dropping it ends everything that runs on it and removes it.
#[derive(Debug)]
pub struct Host {
    init: Process,
    root: PathBuf,
    _folder: Folder,
}

/// Every file below a folder: mode, owner, group and content (of a link: where it leads).
pub type Snapshot = BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)>;

impl Host {
    /// Copies `pattern` and starts a first process.
    pub fn new(pattern: &Path) -> Result<Self> {
        let folder = Folder::new("package")?;
        let root = folder.path().join("root");
        let copied = run(&argv(["cp".as_ref(), "-a".as_ref(), pattern.as_os_str(), root.as_os_str()]), b"")?;
        if !copied.status.success() {
            return Err(BedError::Usage(copied.text()));
        }
        // The first process of a process namespace inherits orphans; the shell's wait takes them.
        let script = "mount -t proc proc \"$0/proc\" && mount -t tmpfs tmpfs \"$0/run\" && mkdir \"$0/run/lock\" && \
                      exec chroot \"$0\" sh -c 'echo up; while sleep 0.2; do :; done'";
        let mut words =
            argv(["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--uts", "sh", "-c", script]);
        words.push(root.clone().into_os_string());
        let init = Process::start("host", &words, &folder.path().join("init.out"))?;
        wait_for("the host to be up", PATIENCE, || {
            let output = init.output();
            Ok(if output.contains("up") { Ok(()) } else { Err(output) })
        })?;
        Ok(Self { init, root, _folder: folder })
    }

    /// A path of the host, seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside.trim_start_matches('/'))
    }

    /// Runs a shell command on the host and gives what it printed, whether it succeeded or not.
    pub fn attempt(&self, command: &str) -> Result<(bool, String)> {
        // The first child of `unshare` is the one inside.
        let children = format!("/proc/{0}/task/{0}/children", self.init.pid());
        let children =
            fs::read_to_string(&children).map_err(|error| BedError::Usage(format!("{children}: {error}")))?;
        let inside = children.split_ascii_whitespace().next().unwrap_or_default();
        let words = [
            "nsenter",
            "--target",
            inside,
            "--mount",
            "--pid",
            "--uts",
            "--root",
            "--wd",
            "--",
            "env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND=noninteractive",
            "LC_ALL=C.UTF-8",
            "HOME=/root",
            "sh",
            "-c",
            command,
        ];
        let done = run(&argv(words), b"")?;
        Ok((done.status.success(), done.text()))
    }

    /// The same, and it must succeed.
    pub fn sh(&self, command: &str) -> Result<String> {
        match self.attempt(command)? {
            (true, text) => Ok(text),
            (false, text) => Err(BedError::Usage(format!("on the host: {command}\n{text}"))),
        }
    }

    /// Copies a file of this machine onto the host.
    pub fn bring(&self, file: &Path, inside: &str) -> Result<()> {
        fs::copy(file, self.path(inside)).map(drop).map_err(|error| BedError::Usage(format!("{inside}: {error}")))
    }

    /// Writes a file of the host.
    pub fn write(&self, inside: &str, text: &str) -> Result<()> {
        fs::write(self.path(inside), text).map_err(|error| BedError::Usage(format!("{inside}: {error}")))
    }

    /// Everything below a folder of the host.
    pub fn snapshot(&self, inside: &str) -> Result<Snapshot> {
        survey(&self.path(inside)).map_err(|error| BedError::Usage(format!("snapshot of {inside}: {error}")))
    }
}

fn survey(top: &Path) -> std::io::Result<Snapshot> {
    let mut all = Snapshot::new();
    for entry in WalkDir::new(top) {
        let entry = entry?;
        let (path, meta) = (entry.path(), entry.metadata()?);
        let content = if meta.is_file() {
            fs::read(path)?
        } else if meta.is_symlink() {
            fs::read_link(path)?.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        all.insert(path.to_owned(), (meta.mode(), meta.uid(), meta.gid(), content));
    }
    Ok(all)
}
