//! The tree of a round, and the seeded program that changes it between generations.
//!
//! Access times stay in the future, so that `relatime` leaves them alone and two backups of one
//! tree send the same attributes.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use bed::{BedError, Noise, Result, TreeOptions, build_every_type, build_many_files, set_fixed_times};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use walkdir::WalkDir;

/// 2035-06-07.
const ATIME: i64 = 2_064_787_200;
/// Bytes of the largest file.
const LARGEST: usize = 90_000;

/// Makes the tree.
pub(crate) fn build(tree: &Path, seed: u64, every_type: bool) -> Result<()> {
    let mut noise = Noise::new(seed);
    fs::create_dir_all(tree).map_err(BedError::file("create", tree))?;
    build_many_files(&tree.join("many"), noise.number(), 20 + noise.below(60), 3_000 + noise.below(LARGEST))?;
    if every_type {
        build_every_type(&tree.join("types"), &TreeOptions { longest_path: 700, large_file: 140_003 })?;
    }
    fs::create_dir(tree.join("living")).map_err(BedError::file("create", tree))?;
    change(tree, noise.number(), false)?;
    set_fixed_times(tree)?;
    for folder in ["many", "living"] {
        set_fixed_times(&tree.join(folder))?;
    }
    Ok(())
}

/// A program of some dozen steps.
pub(crate) fn change(tree: &Path, seed: u64, with_links: bool) -> Result<()> {
    let mut noise = Noise::new(seed);
    for number in 0..8 + noise.below(24) {
        let mut living = Living { tree, files: list(tree, true)?, folders: list(tree, false)?, noise: &mut noise };
        living.step(number, with_links)?;
    }
    later_access(tree)
}

/// Files, or directories, of what the program may change: what is made for every type has limits of
/// its own.
fn list(tree: &Path, files: bool) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in ["many", "living"] {
        for entry in WalkDir::new(tree.join(folder)).sort_by_file_name() {
            let entry = entry.map_err(|error| BedError::file("walk", tree)(error.into()))?;
            if if files { entry.file_type().is_file() } else { entry.file_type().is_dir() } {
                paths.push(entry.into_path());
            }
        }
    }
    Ok(paths)
}

/// Sets the access time of everything that is new.
fn later_access(tree: &Path) -> Result<()> {
    for entry in WalkDir::new(tree) {
        let entry = entry.map_err(|error| BedError::file("walk", tree)(error.into()))?;
        let path = entry.path();
        let facts = fs::symlink_metadata(path).map_err(BedError::file("examine", path))?;
        if facts.atime() < ATIME {
            let flags = UtimensatFlags::NoFollowSymlink;
            utimensat(AT_FDCWD, path, &TimeSpec::new(ATIME, 5), &TimeSpec::UTIME_OMIT, flags)
                .map_err(BedError::file_errno("set times of", path))?;
        }
    }
    Ok(())
}

/// The tree, as it is before a step.
struct Living<'a> {
    tree: &'a Path,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    noise: &'a mut Noise,
}

impl Living<'_> {
    fn one(&mut self, paths: &[PathBuf]) -> PathBuf {
        let at = self.noise.below(paths.len().max(1));
        paths.get(at).cloned().unwrap_or_else(|| self.tree.join("living"))
    }

    fn file(&mut self) -> PathBuf {
        let files = std::mem::take(&mut self.files);
        let path = self.one(&files);
        self.files = files;
        path
    }

    fn folder(&mut self) -> PathBuf {
        let folders = std::mem::take(&mut self.folders);
        let path = self.one(&folders);
        self.folders = folders;
        path
    }

    /// A name that nothing has.
    fn fresh(&mut self, number: usize) -> PathBuf {
        // Not what the patterns of the FileSets are about (see `hard_link`).
        let kind = ["made", "new\nline", "Grün", "with space", "*[a]"].get(self.noise.below(5)).copied();
        let name = format!("{}-{:05}-{number}", kind.unwrap_or("x"), self.noise.below(100_000));
        self.folder().join(name)
    }

    fn content(&mut self) -> Vec<u8> {
        let size = match self.noise.below(4) {
            0 => self.noise.below(20),
            1 => 65_530 + self.noise.below(12),
            _ => self.noise.below(LARGEST),
        };
        match self.noise.below(3) {
            0 => self.noise.bytes(size),
            1 => vec![0; size],
            _ => self.noise.text(size),
        }
    }

    fn step(&mut self, number: usize, with_links: bool) -> Result<()> {
        let file = self.file();
        if !file.is_file() {
            return self.make(number);
        }
        match self.noise.below(20) {
            0..=3 => self.make(number),
            4 | 5 => self.write(&file),
            6 => self.append(&file),
            7 => self.cut(&file),
            8 | 9 => fs::remove_file(&file).map_err(BedError::file("remove", &file)),
            10 => self.rename(&file, number),
            11 => self.make_folder(number),
            12 => self.remove_folder(),
            13 => self.own(&file),
            14 => self.attribute(&file),
            15 => self.link(number),
            16 if with_links => self.hard_link(&file, number),
            17 => self.turn(&file),
            18 => self.quietly(&file),
            _ => self.sparse(number),
        }
    }

    fn make(&mut self, number: usize) -> Result<()> {
        let (path, content) = (self.fresh(number), self.content());
        fs::write(&path, content).map_err(BedError::file("write", &path))
    }

    fn write(&mut self, path: &Path) -> Result<()> {
        let content = self.content();
        fs::write(path, content).map_err(BedError::file("write", path))
    }

    fn append(&mut self, path: &Path) -> Result<()> {
        let content = self.noise.text(100);
        let open = OpenOptions::new().append(true).open(path);
        open.and_then(|mut file| file.write_all(&content)).map_err(BedError::file("append to", path))
    }

    fn cut(&mut self, path: &Path) -> Result<()> {
        let open = OpenOptions::new().write(true).open(path).map_err(BedError::file("open", path))?;
        let size = self.noise.number() % 5000;
        open.set_len(size).map_err(BedError::file("cut", path))
    }

    fn rename(&mut self, path: &Path, number: usize) -> Result<()> {
        let to = self.fresh(number);
        fs::rename(path, &to).map_err(BedError::file("rename", path))
    }

    fn make_folder(&mut self, number: usize) -> Result<()> {
        let folder = self.fresh(number);
        fs::create_dir(&folder).map_err(BedError::file("create", &folder))?;
        for name in 0..self.noise.below(4) {
            let (path, content) = (folder.join(format!("inside {name}")), self.content());
            fs::write(&path, content).map_err(BedError::file("write", &path))?;
        }
        Ok(())
    }

    fn remove_folder(&mut self) -> Result<()> {
        let folder = self.folder();
        // The two at the top stay.
        if folder.parent() == Some(self.tree) {
            return Ok(());
        }
        fs::remove_dir_all(&folder).map_err(BedError::file("remove", &folder))
    }

    fn own(&mut self, path: &Path) -> Result<()> {
        let id = u32::try_from(self.noise.below(3)).unwrap_or(0);
        chown(path, Some(id), Some(id)).map_err(BedError::file("give away", path))?;
        let mode = [0o600, 0o644, 0o755, 0o4711].get(self.noise.below(4)).copied().unwrap_or(0o600);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(BedError::file("change mode of", path))
    }

    fn attribute(&mut self, path: &Path) -> Result<()> {
        let (name, size) = (format!("user.a{}", self.noise.below(3)), self.noise.below(40));
        let value = self.noise.bytes(size);
        xattr::set(path, name, &value).map_err(BedError::file("set an attribute of", path))
    }

    fn link(&mut self, number: usize) -> Result<()> {
        let (path, target) = (self.fresh(number), self.file());
        symlink(target, &path).map_err(BedError::file("link", &path))?;
        lchown(&path, Some(1), Some(2)).map_err(BedError::file("give away", &path))
    }

    /// Patterns must not tell the names of one file apart (docs/differences.md).
    fn hard_link(&mut self, path: &Path, number: usize) -> Result<()> {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("file-")) {
            return Ok(());
        }
        let other = self.fresh(number);
        fs::hard_link(path, &other).map_err(BedError::file("link", &other))
    }

    /// Something else takes the file's place.
    fn turn(&mut self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(BedError::file("remove", path))?;
        match self.noise.below(3) {
            0 => symlink("nowhere", path).map_err(BedError::file("link", path)),
            1 => fs::create_dir(path).map_err(BedError::file("create", path)),
            _ => self.write(path),
        }
    }

    /// Other content under the old modification time.
    fn quietly(&mut self, path: &Path) -> Result<()> {
        let facts = fs::metadata(path).map_err(BedError::file("examine", path))?;
        self.write(path)?;
        let times = [TimeSpec::new(ATIME, 5), TimeSpec::new(facts.mtime(), facts.mtime_nsec())];
        utimensat(AT_FDCWD, path, &times[0], &times[1], UtimensatFlags::NoFollowSymlink)
            .map_err(BedError::file_errno("set times of", path))
    }

    fn sparse(&mut self, number: usize) -> Result<()> {
        let path = self.fresh(number);
        let file = File::create(&path).map_err(BedError::file("create", &path))?;
        let at = 70_000 + self.noise.number() % 300_000;
        file.write_all_at(b"after a hole", at).map_err(BedError::file("write", &path))
    }
}
