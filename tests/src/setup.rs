//! Builds the unpacked Debian 13 root that holds Bacula 15.0.3. Done once per host: two at a time
//! don't collide, a broken attempt leaves nothing behind, and a finished root is only checked.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use crate::error::{BedError, Result};
use crate::process::{argv, run};
use crate::root::Root;

/// The Debian release whose packages are 15.0.3.
const SUITE: &str = "trixie";

/// What the bed needs from it.
const PACKAGES: &str =
    "bacula-director,bacula-director-sqlite3,bacula-sd,bacula-fd,bacula-console,bacula-bscan,sqlite3";

/// The name of the root in the cache directory.
const NAME: &str = "trixie-15.0.3";

impl Root {
    /// The root named by `BACULA_ROOT`, else the one in the cache; sets the latter up when it is
    /// not there yet.
    pub fn find() -> Result<Self> {
        root(&mut |_| {})
    }
}

/// Finds the root, or builds it. `say` gets each step in plain words.
pub fn root(say: &mut dyn FnMut(&str)) -> Result<Root> {
    if let Some(path) = env::var_os("BACULA_ROOT").filter(|path| !path.is_empty()) {
        let root = Root::open(Path::new(&path))?;
        say(&format!("Using Bacula 15.0.3 of BACULA_ROOT={}.", root.path().display()));
        return Ok(root);
    }
    let cache = cache_directory()?;
    let path = cache.join(NAME);
    // A finished name needs no lock: it appears by rename only.
    if !path.exists() {
        fs::create_dir_all(&cache).map_err(BedError::file("create", &cache))?;
        let _lock = lock(&cache.join("lock"), say)?;
        if !path.exists() {
            build(&cache, &path, say)?;
        }
    }
    let root = Root::open(&path)?;
    say(&format!("Bacula 15.0.3 is in {}.", root.path().display()));
    Ok(root)
}

/// `/var/cache/ferrofd-bed` for root; for others `ferrofd-bed` in `$XDG_CACHE_HOME` or `~/.cache`.
fn cache_directory() -> Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(PathBuf::from("/var/cache/ferrofd-bed"));
    }
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("ferrofd-bed"))
        .ok_or_else(|| BedError::Usage("neither BACULA_ROOT, XDG_CACHE_HOME nor HOME is set".to_owned()))
}

/// Waits until no other process builds.
fn lock(path: &Path, say: &mut dyn FnMut(&str)) -> Result<Flock<File>> {
    let open =
        || File::options().create(true).truncate(false).write(true).open(path).map_err(BedError::file("open", path));
    match Flock::lock(open()?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((file, _)) => {
            say("Another process is setting up Bacula 15.0.3; waiting for it.");
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| BedError::file_errno("lock", path)(errno))
        }
    }
}

/// Unpacks the packages under a temporary name and renames the result.
fn build(cache: &Path, path: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
    need_mmdebstrap(say)?;
    say("Unpacking Debian 13 with Bacula 15.0.3 (about a minute).");
    // We hold the lock, so an older unfinished attempt has no owner any more.
    let unfinished = cache.join(format!("{NAME}.unfinished"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(BedError::file("remove", &unfinished))?;
    }
    let include = format!("--include={PACKAGES}");
    let command: [&OsStr; 6] = [
        "mmdebstrap".as_ref(),
        "--variant=apt".as_ref(),
        include.as_ref(),
        "--format=directory".as_ref(),
        SUITE.as_ref(),
        unfinished.as_ref(),
    ];
    let done = run(&argv(command), b"")?;
    if !done.status.success() {
        return Err(BedError::Program {
            program: "mmdebstrap".to_owned(),
            problem: format!("{}\n{}", done.status, done.text()),
        });
    }
    readable_configuration(&unfinished)?;
    Root::open(&unfinished)?;
    fs::rename(&unfinished, path).map_err(BedError::file("rename to", path))
}

/// Lets every user of this host read the packages' default configuration: its passwords are not
/// used.
fn readable_configuration(root: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let file = root.join("etc/bacula/bacula-fd.conf");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).map_err(BedError::file("change mode of", &file))
}

/// Installs `mmdebstrap` when the host lacks it.
fn need_mmdebstrap(say: &mut dyn FnMut(&str)) -> Result<()> {
    if Command::new("mmdebstrap").arg("--version").output().is_ok() {
        return Ok(());
    }
    let missing = |problem: String| BedError::Program { program: "mmdebstrap".to_owned(), problem };
    if !geteuid().is_root() {
        return Err(missing("is not installed; install it, or set BACULA_ROOT".to_owned()));
    }
    say("Installing mmdebstrap.");
    let install = || {
        run(
            &argv([
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "install",
                "-y",
                "--no-install-recommends",
                "mmdebstrap",
            ]),
            b"",
        )
    };
    let mut done = install()?;
    if !done.status.success() {
        run(&argv(["apt-get", "update"]), b"")?;
        done = install()?;
    }
    if done.status.success() { Ok(()) } else { Err(missing(format!("cannot install it:\n{}", done.text()))) }
}
