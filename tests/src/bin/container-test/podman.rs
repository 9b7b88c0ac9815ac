//! Containers of an image by podman, in a store of their own.
//!
//! The caller's namespaces end them: `scripts/container-test` gives this program a process
//! namespace, and a control group file system that podman accepts.

use std::path::{Path, PathBuf};

use bed::{BedError, Finished, Folder, Result, argv, run};

/// Podman with one image in its store.
pub(crate) struct Podman {
    folder: Folder,
    image: String,
}

/// How a container is run.
pub(crate) struct Rights {
    /// `--user`; without one the image's own.
    pub(crate) user: Option<&'static str>,
    /// What it has, and nothing else.
    pub(crate) capabilities: &'static [&'static str],
    /// More options.
    pub(crate) more: &'static [&'static str],
}

/// A folder of this machine in a container.
pub(crate) struct Mount<'a> {
    pub(crate) from: &'a Path,
    pub(crate) to: &'static str,
    pub(crate) writable: bool,
}

impl Podman {
    /// Loads the archive's image, whose name is `image`.
    pub(crate) fn new(archive: &Path, image: &str) -> Result<Self> {
        let podman = Self { folder: Folder::new("podman")?, image: image.to_owned() };
        podman.must(&["load", "--quiet", "--input", &archive.display().to_string()])?;
        Ok(podman)
    }

    /// Starts a container in the background.
    pub(crate) fn start(&self, name: &str, rights: &Rights, mounts: &[Mount<'_>]) -> Result<Finished> {
        let mut words: Vec<String> = [
            "run",
            "--detach",
            "--name",
            name,
            "--read-only",
            "--network=host",
            "--cap-drop=ALL",
            "--tmpfs=/run/bacula",
        ]
        .map(str::to_owned)
        .into();
        // This machine may have neither control groups of the process's own nor the right to raise
        // limits.
        words
            .extend(["--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"].map(str::to_owned));
        words.extend(rights.user.map(|user| format!("--user={user}")));
        words.extend(rights.capabilities.iter().map(|capability| format!("--cap-add={capability}")));
        words.extend(rights.more.iter().map(|&word| word.to_owned()));
        for Mount { from, to, writable } in mounts {
            let mode = if *writable { "rw" } else { "ro" };
            words.push(format!("--volume={}:{to}:{mode},rslave", from.display()));
        }
        words.push(self.image.clone());
        self.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs podman, which must succeed, and gives what it printed.
    pub(crate) fn must(&self, words: &[&str]) -> Result<String> {
        let done = self.run(words)?;
        if done.status.success() {
            return Ok(done.text());
        }
        Err(BedError::Usage(format!("podman {}: {}\n{}", words.join(" "), done.status, done.text())))
    }

    /// Runs podman.
    pub(crate) fn run(&self, words: &[&str]) -> Result<Finished> {
        let place = |name: &str| -> PathBuf { self.folder.path().join(name) };
        let mut line = argv(["podman", "--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none"]);
        line.extend(argv([
            "--root".as_ref(),
            place("store").as_os_str(),
            "--runroot".as_ref(),
            place("run").as_os_str(),
        ]));
        line.extend(argv(words));
        run(&line, b"")
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        // Else mounts stay in the folder.
        let _ = self.run(&["rm", "--all", "--force", "--time=0"]);
    }
}
