//! Where the daemons see the tree and what they restore: where both are, through slowfs, mounted
//! read-only, or on a file system that encrypts it.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{BedError, Result, SlowStorage};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::geteuid;

use crate::cell::Variant;
use crate::mounted::{Mounted, file_system, good};
use crate::programs::{is_on_path, own};
use crate::restored::Restored;
use crate::tree::{Standing, visit};

/// Room for the directories and the journal of a file system that is made for a tree, bytes.
const SPARE: u64 = 512 << 20;

/// The places of one cell.
#[derive(Debug)]
pub struct Places {
    /// The tree that is saved.
    pub tree: PathBuf,
    /// Where the pages of its files are cached.
    pub cached: PathBuf,
    /// The folder of all restores.
    pub restored: PathBuf,
    /// Unmounted with this value.
    _mounts: Vec<Mounted>,
}

impl Places {
    /// What a variant needs and this host has not.
    pub fn missing(variant: Variant) -> Option<String> {
        match variant {
            Variant::Slow(_) => SlowStorage::missing().map(str::to_owned),
            Variant::ReadOnly if !geteuid().is_root() => Some("needs root".to_owned()),
            Variant::OnImage(_, image) => {
                let program = image.program().first().filter(|program| !is_on_path(program));
                program.map(|program| format!("{program} is not on PATH"))
            }
            Variant::Fscrypt => {
                let program = ["mkfs.ext4", "mount", "xfs_io"].into_iter().find(|program| !is_on_path(program));
                let needed = ["/sys/fs/ext4/features/encryption", "/dev/loop-control"];
                let path = needed.into_iter().find(|path| !Path::new(path).exists());
                let program = program.map(|program| format!("{program} is not on PATH"));
                program.or_else(|| path.map(|path| format!("there is no {path}")))
            }
            _ => None,
        }
    }

    /// The places as this variant wants them.
    pub fn of(variant: Variant, tree: &Standing, restored: &Restored) -> Result<Self> {
        if let Some(missing) = Self::missing(variant) {
            return Err(BedError::Usage(format!("{variant}: {missing}")));
        }
        let beside = |name: &str| -> Result<PathBuf> {
            let place = restored.all().with_file_name(name);
            fs::create_dir_all(&place).map_err(BedError::file("create", &place))?;
            // What a killed process has left there.
            let _ = umount2(&place, MntFlags::MNT_DETACH);
            Ok(place)
        };
        let itself = tree.path.clone();
        let all = restored.all().to_owned();
        match variant {
            Variant::Slow(delay) | Variant::SlowReads(delay) => {
                // Both are in the target folder, and built together.
                let program = own()?.with_file_name("slowfs");
                let delay = format!("--delay-ms={delay}");
                let remembered = if matches!(variant, Variant::SlowReads(_)) { 60 } else { 0 };
                let remembered = format!("--cache-seconds={remembered}");
                let mut mounts = Vec::new();
                let mut slow = |source: &Path, name: &str| -> Result<PathBuf> {
                    let place = beside(name)?;
                    let storage = SlowStorage::mount(&program, &[&delay, &remembered], source, &place)?;
                    mounts.push(Mounted::Slow { _storage: storage });
                    Ok(place)
                };
                let (tree, restored) = (slow(&itself, "slow-tree")?, slow(&all, "slow-restored")?);
                Ok(Self { tree, cached: itself, restored, _mounts: mounts })
            }
            Variant::ReadOnly => {
                let place = beside("read-only-tree")?;
                Ok(Self { _mounts: vec![read_only(&itself, &place)?], tree: place, cached: itself, restored: all })
            }
            Variant::OnImage(..) | Variant::Fscrypt => {
                let place = beside("image")?;
                let mounted = match variant {
                    Variant::OnImage(_, image) => on_image(&itself, &place, image.program())?,
                    _ => encrypted(&itself, &place)?,
                };
                let tree = if variant == Variant::Fscrypt { place.join(TREE) } else { place };
                Ok(Self { cached: tree.clone(), tree, restored: all, _mounts: vec![mounted] })
            }
            _ => Ok(Self { tree: itself.clone(), cached: itself, restored: all, _mounts: Vec::new() }),
        }
    }
}

/// Shows a tree at a place where nothing can be written.
fn read_only(tree: &Path, place: &Path) -> Result<Mounted> {
    let none: Option<&str> = None;
    let failed = |source| BedError::System { what: "mount", source };
    mount(Some(tree), place, none, MsFlags::MS_BIND, none).map_err(failed)?;
    let mounted = Mounted::Kernel(place.to_owned());
    // The kernel makes a bind mount read-only in a second step only.
    mount(none, place, none, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, none).map_err(failed)?;
    Ok(mounted)
}

/// The directory below a place that is encrypted.
const TREE: &str = "tree";

/// Copies a tree to a directory that fscrypt encrypts, on an ext4 of its own.
fn encrypted(tree: &Path, place: &Path) -> Result<Mounted> {
    let mounted = image(tree, place, &["mkfs.ext4", "-q", "-F", "-O", "encrypt"])?;
    let to = place.join(TREE);
    fs::create_dir_all(&to).map_err(BedError::file("create", &to))?;
    let [place_word, to_word] = [place, &to].map(|path| path.display().to_string());
    // Any key will do: it protects nothing here.
    let said = good(&["xfs_io", "-c", "add_enckey", &place_word], &[7; 64])?;
    let name = said.split_whitespace().last().unwrap_or_default().to_owned();
    good(&["xfs_io", "-c", &format!("set_encpolicy {name}"), &to_word], b"")?;
    let policy = good(&["xfs_io", "-c", "get_encpolicy", &to_word], b"")?;
    if !policy.contains(&name) || name.is_empty() {
        let problem = format!("{} is not encrypted: {policy}", to.display());
        return Err(BedError::Program { program: "xfs_io".to_owned(), problem });
    }
    copy(tree, &to)?;
    Ok(mounted)
}

/// Copies a tree to a file system of its own, which this program makes.
fn on_image(tree: &Path, place: &Path, program: &[&str]) -> Result<Mounted> {
    let mounted = image(tree, place, program)?;
    copy(tree, place)?;
    Ok(mounted)
}

/// Mounts a file system that has room for a tree.
fn image(tree: &Path, place: &Path, program: &[&str]) -> Result<Mounted> {
    let mut size = SPARE;
    visit(tree, &mut |path| {
        size += fs::metadata(path).map_err(BedError::file("look at", path))?.len().next_multiple_of(4096);
        Ok(())
    })?;
    file_system(place, size, program, "loop")
}

fn copy(tree: &Path, to: &Path) -> Result<()> {
    good(&["cp", "-a", &format!("{}/.", tree.display()), &to.display().to_string()], b"").map(drop)
}
