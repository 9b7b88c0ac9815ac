//! Where the unmodified Bacula 15.0.3 is, and how its programs are run on a host with another libc.
//!
//! An unpacked root is not entered by chroot: its programs run through the root's own dynamic
//! loader with the root's own libraries. So they see the host's file system, and need no privilege.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{BedError, Result};
use crate::process;

/// The only version that is a reference for ferrofd.
pub const VERSION: &str = "15.0.3";

/// An installed or unpacked Bacula 15.0.3.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// Takes an existing directory (`/` for a host that has Bacula installed) after a check of the
    /// version.
    pub fn open(path: &Path) -> Result<Self> {
        let root = Self { path: path.to_owned() };
        let wrong = |problem: String| BedError::Root { root: path.to_owned(), problem };
        let program = root.inside("usr/sbin/bacula-fd");
        if !program.exists() {
            return Err(wrong(format!("{} is missing", program.display())));
        }
        for program in ["usr/sbin/bacula-dir", "usr/sbin/bacula-sd", "usr/sbin/bconsole", "usr/bin/sqlite3"] {
            if !root.inside(program).exists() {
                return Err(wrong(format!("/{program} is missing")));
            }
        }
        let usage = process::run(&root.argv("/usr/sbin/bacula-fd", ["-?"])?, b"")?.text();
        let found = usage.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or("no version line");
        if found.split_ascii_whitespace().next() == Some(VERSION) {
            Ok(root)
        } else {
            Err(wrong(format!("expected version {VERSION}, got {found:?}")))
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file of the root, seen from the host.
    pub fn inside(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// The command line that runs a program of the root.
    pub fn argv<S: Into<OsString>>(&self, program: &str, args: impl IntoIterator<Item = S>) -> Result<Vec<OsString>> {
        let name = Path::new(program).file_name().unwrap_or_default();
        let mut words = self.before_a_program(name)?;
        words.push(self.inside(program).into());
        words.extend(args.into_iter().map(Into::into));
        Ok(words)
    }

    /// What stands before a program, so that it runs with the root's libraries: the root's own, or
    /// one of the host's. Nothing for the host's own root.
    pub fn before_a_program(&self, name: &OsStr) -> Result<Vec<OsString>> {
        if self.path == Path::new("/") {
            return Ok(Vec::new());
        }
        let mut libraries = OsString::new();
        for directory in self.library_directories()? {
            libraries.push(directory);
            libraries.push(":");
        }
        libraries.push(self.inside("usr/lib/bacula"));
        Ok(vec![self.loader()?.into(), "--library-path".into(), libraries, "--argv0".into(), name.to_owned()])
    }

    /// `lib64/ld-linux-x86-64.so.2`, or what it is called on another machine.
    fn loader(&self) -> Result<PathBuf> {
        let name = match env::consts::ARCH {
            "aarch64" => "usr/lib/ld-linux-aarch64.so.1",
            _ => "usr/lib64/ld-linux-x86-64.so.2",
        };
        let loader = self.inside(name);
        if loader.exists() {
            Ok(loader)
        } else {
            Err(BedError::Root { root: self.path.clone(), problem: format!("/{name} is missing") })
        }
    }

    /// The multiarch library directory.
    fn library_directories(&self) -> Result<Vec<PathBuf>> {
        let libraries = self.inside("usr/lib");
        let entries = fs::read_dir(&libraries).map_err(BedError::file("read", &libraries))?;
        Ok(entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"))
            .collect())
    }
}
