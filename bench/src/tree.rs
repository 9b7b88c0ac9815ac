//! The trees that are saved. The same tree comes out of every run: sizes, content, names and times
//! depend on its name only. They are kept between runs, with a mark that says that they are
//! complete.
//!
//! Access times are in the future, so that reading does not change them and both daemons see the
//! same attributes.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use bed::{BedError, Noise, Result, set_fixed_times};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;
use walkdir::WalkDir;

mod objects;
mod suite;

pub use suite::Suite;

/// Part of the mark: a change here makes all trees anew.
const EDITION: &str = "1";
/// One file in so many is touched between two jobs.
const TOUCHED: usize = 100;
/// Slices of these many bytes of words and of noise are the content of small files.
const POOL: usize = 4 << 20;
/// Of a file system.
const PAGE: usize = 4096;

/// The shape of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One empty directory.
    Empty,
    /// 5,500 files of 19 KiB mean, long-tailed, half of them words and half noise; times the scale.
    Manyfiles,
    /// 8 files of 8 to 56 MiB that do not compress, 256 MiB together; times the scale.
    Media,
    /// Small, middle and large files, empty files and directories, links; about 150 MiB times the
    /// scale.
    Mixed,
    /// So many thousand files of 512 bytes.
    Tiny,
    /// So many thousand files of 2 KiB mean, a hundred to a directory.
    Small,
    /// So many thousand files with the sizes of a bucket's objects, half of them words and half
    /// noise: 1, 3 and 30 are parts and all of a bucket of 1.0 GB, 1320 is a larger one whose sizes
    /// are cut at 96 KiB so that it fits, 5.7 GB.
    Objects,
    /// One file of so many GiB that is one hole.
    Hole,
    /// One file of so many GiB that does not compress.
    Single,
    /// One file of so many thousand pages, each with seven pages of a hole behind it.
    Holes,
    /// What another program has made.
    Foreign(Suite),
}

impl Kind {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Manyfiles => "manyfiles",
            Self::Media => "media",
            Self::Mixed => "mixed",
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Objects => "objects",
            Self::Hole => "hole",
            Self::Single => "single",
            Self::Holes => "holes",
            Self::Foreign(suite) => suite.name(),
        }
    }

    /// Reads all of such a tree once, so that it is in the page cache as far as there is room. The
    /// file that is one hole is left out: there is nothing on a disk to be read.
    pub fn warm(self, tree: &Path) -> Result<()> {
        if self == Self::Hole { Ok(()) } else { warm(tree) }
    }

    /// What it needs and this host has not.
    pub fn missing(self) -> Option<String> {
        if let Self::Foreign(suite) = self { suite.missing() } else { None }
    }
}

/// A tree by its kind and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// What it holds.
    pub kind: Kind,
    /// How many times.
    pub scale: usize,
}

impl fmt::Display for Tree {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.scale) {
            (Kind::Empty, _) => write!(out, "empty"),
            (Kind::Foreign(suite), _) => out.write_str(suite.name()),
            (kind @ (Kind::Tiny | Kind::Small | Kind::Objects | Kind::Holes), thousands) => {
                write!(out, "{}{thousands}k", kind.name())
            }
            (kind @ (Kind::Hole | Kind::Single), gigabytes) => write!(out, "{}{gigabytes}g", kind.name()),
            (kind, scale) => write!(out, "{}{scale}", kind.name()),
        }
    }
}

/// A tree on the disk.
#[derive(Debug)]
pub struct Standing {
    /// Its top directory.
    pub path: PathBuf,
    /// Whether it was made just now.
    pub is_new: bool,
    /// The files below it that are touched between two jobs: always the same.
    touched: Vec<PathBuf>,
}

impl Tree {
    /// Makes the tree below `folder`, or finds it there.
    pub fn stand(self, folder: &Path) -> Result<Standing> {
        let path = folder.join(self.to_string());
        let mark = folder.join(format!("{self}.complete"));
        let list = fs::read_to_string(&mark).unwrap_or_default();
        if let Some(touched) = list.strip_prefix(&format!("{EDITION}\n")) {
            let touched = touched.lines().map(PathBuf::from).collect();
            return Ok(Standing { path, is_new: false, touched });
        }
        if path.exists() {
            fs::remove_dir_all(&path).map_err(BedError::file("remove", &path))?;
        }
        fs::create_dir_all(&path).map_err(BedError::file("create", &path))?;
        let mut builder = Builder::new(&path, self);
        builder.fill(self)?;
        let names = builder.files.iter().filter_map(|file| file.strip_prefix(&path).ok());
        let touched: Vec<PathBuf> = names.step_by(TOUCHED).map(Path::to_owned).collect();
        let mut text = format!("{EDITION}\n");
        for name in &touched {
            text.push_str(&name.to_string_lossy());
            text.push('\n');
        }
        builder.fix_times()?;
        fs::write(&mark, text).map_err(BedError::file("write", &mark))?;
        Ok(Standing { path, is_new: true, touched })
    }
}

impl Standing {
    /// Changes the modification time of the fixed hundredth of the files to now, in the tree or in
    /// a copy.
    pub fn touch(&self, tree: &Path) -> Result<()> {
        let (omit, now) = (TimeSpec::UTIME_OMIT, TimeSpec::UTIME_NOW);
        for path in self.touched.iter().map(|name| tree.join(name)) {
            utimensat(AT_FDCWD, &path, &omit, &now, UtimensatFlags::NoFollowSymlink)
                .map_err(|errno| BedError::file("touch", &path)(errno.into()))?;
        }
        Ok(())
    }

    /// Looks at every entry and reads what is touched: what an Incremental needs.
    pub fn warm_touched(&self) -> Result<()> {
        visit(&self.path, &mut |_| Ok(()))?;
        self.touched.iter().try_for_each(|name| warm(&self.path.join(name)))
    }
}

/// Reads a file, or every file of a directory.
pub fn warm(path: &Path) -> Result<()> {
    let mut buffer = vec![0; 256 << 10];
    visit(path, &mut |path| {
        let mut opened = File::open(path).map_err(BedError::file("open", path))?;
        while opened.read(&mut buffer).map_err(BedError::file("read", path))? > 0 {}
        Ok(())
    })
}

/// Empties the page cache and forgets inodes, of the whole host.
pub fn drop_caches() -> Result<()> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    fs::write(path, "3").map_err(BedError::file("write", path))
}

/// Looks at every entry and shows each regular file.
pub fn visit(path: &Path, regular: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in WalkDir::new(path) {
        // The status is asked for although the type would do, so that inodes are in memory.
        let found = entry.and_then(|entry| entry.metadata().map(|meta| (entry, meta)));
        let (entry, meta) = found.map_err(|error| BedError::file("walk", path)(error.into()))?;
        if meta.is_file() {
            regular(entry.path())?;
        }
    }
    Ok(())
}

/// Makes a file of so many bytes of noise, in which nothing repeats.
pub fn noise_file(path: &Path, noise: &mut Noise, size: usize) -> Result<()> {
    let mut out = File::create(path).map_err(BedError::file("create", path))?;
    let mut left = size;
    while left > 0 {
        // Whole numbers of the sequence: the size of a piece changes nothing.
        let some = left.min(1 << 20);
        out.write_all(&noise.bytes(some)).map_err(BedError::file("write", path))?;
        left -= some;
    }
    Ok(())
}

/// A tree in the making.
struct Builder {
    base: PathBuf,
    /// Regular files in the order of making.
    files: Vec<PathBuf>,
    /// All entries, parents first.
    entries: Vec<PathBuf>,
    noise: Noise,
    words: Vec<u8>,
    random: Vec<u8>,
}

impl Builder {
    fn new(base: &Path, tree: Tree) -> Self {
        let seed = tree.to_string().bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let mut noise = Noise::new(seed);
        let (words, random) = (noise.text(POOL), noise.bytes(POOL));
        Self { base: base.to_owned(), files: Vec::new(), entries: vec![base.to_owned()], noise, words, random }
    }

    fn fill(&mut self, tree: Tree) -> Result<()> {
        let scale = tree.scale;
        match tree.kind {
            Kind::Empty => self.directory("nothing").map(drop),
            Kind::Manyfiles => self.small_files("", 5500 * scale, 19 << 10),
            Kind::Media => self.media(scale),
            Kind::Mixed => self.mixed(scale),
            Kind::Tiny => self.tiny(1000 * scale),
            Kind::Small => self.small_files("", 1000 * scale, 2 << 10),
            Kind::Objects => self.objects(scale),
            Kind::Hole => {
                let path = self.base.join("hole");
                let hole = File::create(&path).map_err(BedError::file("create", &path))?;
                hole.set_len((scale as u64) << 30).map_err(BedError::file("lengthen", &path))?;
                self.entries.push(path);
                Ok(())
            }
            Kind::Single => self.large_file("single", scale << 30, false),
            Kind::Holes => self.holes(1000 * scale),
            Kind::Foreign(suite) => {
                suite.make(&self.base)?;
                self.found()
            }
        }
    }

    /// A file of so many pages, one in eight of which is data.
    fn holes(&mut self, count: usize) -> Result<()> {
        let path = self.base.join("holes");
        let out = File::create(&path).map_err(BedError::file("create", &path))?;
        for (number, at) in (0..count).zip((0_u64..).step_by(8 * PAGE)) {
            let start = number * 64 % (POOL - PAGE);
            let page = self.random.get(start..start + PAGE).unwrap_or_default();
            out.write_all_at(page, at).map_err(BedError::file("write", &path))?;
        }
        out.set_len((count * 8 * PAGE) as u64).map_err(BedError::file("lengthen", &path))?;
        self.entries.push(path);
        Ok(())
    }

    /// The entries of a tree that another program has made.
    fn found(&mut self) -> Result<()> {
        self.entries.clear();
        for entry in WalkDir::new(&self.base).sort_by_file_name() {
            let entry = entry.map_err(|error| BedError::file("walk", &self.base)(error.into()))?;
            // The list of those that are touched is text.
            let is_plain = entry.path().to_str().is_some_and(|name| !name.contains('\n'));
            if entry.file_type().is_file() && is_plain {
                self.files.push(entry.path().to_owned());
            }
            self.entries.push(entry.into_path());
        }
        Ok(())
    }

    /// Files whose sizes are spread long-tailed around a mean, a hundred to a directory.
    fn small_files(&mut self, below: &str, count: usize, mean: usize) -> Result<()> {
        for number in 0..count {
            let directory = format!("{below}{:03}/{:02}", number / 2500, number / 100 % 25);
            if number % 100 == 0 {
                self.directory(&directory)?;
            }
            let size = self.long_tailed(mean);
            self.slice_file(&format!("{directory}/file-{number:06}"), size, number % 2 == 0)?;
        }
        Ok(())
    }

    /// A size with a fair coin for each of twelve doublings: the median is half the mean, the
    /// largest of many thousand about fifty times the mean.
    fn long_tailed(&mut self, mean: usize) -> usize {
        let doublings = (self.noise.number() & 0xfff).count_ones();
        // 1.5¹² = 129.746 is the mean of 2 to the power of the doublings; `fine` is 1000 on
        // average.
        let fine = self.noise.below(1001) + 500;
        ((mean << doublings) * fine) / 129_746
    }

    fn tiny(&mut self, count: usize) -> Result<()> {
        for number in 0..count {
            let directory = format!("{:02}/{:02}", number / 50_000, number / 1000 % 50);
            if number % 1000 == 0 {
                self.directory(&directory)?;
            }
            self.slice_file(&format!("{directory}/{number:07}"), 512, true)?;
        }
        Ok(())
    }

    /// Files with the sizes of a bucket's objects, a thousand to a directory.
    fn objects(&mut self, thousands: usize) -> Result<()> {
        for (number, (name, size)) in objects::files(thousands).enumerate() {
            if number % 1000 == 0 {
                let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
                self.directory(directory)?;
            }
            let is_words = number % 2 == 0;
            if size > POOL { self.large_file(&name, size, is_words)? } else { self.slice_file(&name, size, is_words)? }
        }
        Ok(())
    }

    fn media(&mut self, scale: usize) -> Result<()> {
        for number in 0..8 * scale {
            let megabytes = [8, 16, 24, 28, 36, 40, 48, 56].get(number % 8).copied().unwrap_or(8);
            self.large_file(&format!("film-{number:03}"), megabytes << 20, false)?;
        }
        Ok(())
    }

    fn mixed(&mut self, scale: usize) -> Result<()> {
        self.small_files("small/", 1500 * scale, 19 << 10)?;
        self.directory("middle")?;
        for number in 0..60 * scale {
            let size = (1 << 20) + self.noise.below(1 << 20);
            self.slice_file(&format!("middle/{number:04}"), size, number % 2 == 0)?;
        }
        self.directory("large")?;
        for number in 0..scale {
            self.large_file(&format!("large/{number:03}"), 32 << 20, false)?;
        }
        self.directory("empty")?;
        for number in 0..300 * scale {
            self.slice_file(&format!("empty/{number:05}"), 0, true)?;
        }
        for number in 0..200 * scale {
            self.directory(&format!("empty/directory-{number:05}"))?;
        }
        self.directory("links")?;
        for number in 0..100 * scale {
            let path = self.base.join(format!("links/symbolic-{number:05}"));
            symlink(format!("../middle/{number:04}"), &path).map_err(BedError::file("link", &path))?;
            self.entries.push(path);
        }
        for number in 0..20 * scale {
            let path = self.base.join(format!("links/hard-{number:05}"));
            let first = self.base.join(format!("middle/{number:04}"));
            fs::hard_link(first, &path).map_err(BedError::file("link", &path))?;
        }
        Ok(())
    }

    fn directory(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.base.join(name);
        let mut missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
        missing.reverse();
        self.entries.extend(missing.into_iter().map(Path::to_owned));
        fs::create_dir_all(&path).map_err(BedError::file("create", &path))?;
        Ok(path)
    }

    /// A file that is a slice of words or of noise, up to the pool's size.
    fn slice_file(&mut self, name: &str, size: usize, words: bool) -> Result<()> {
        let size = size.min(POOL);
        let start = self.noise.below(POOL - size + 1);
        let pool = if words { &self.words } else { &self.random };
        let content = pool.get(start..start + size).unwrap_or_default();
        let path = self.base.join(name);
        fs::write(&path, content).map_err(BedError::file("write", &path))?;
        self.files.push(path.clone());
        self.entries.push(path);
        Ok(())
    }

    /// A file of words or of noise that is larger than the pool: nothing in it stands there twice.
    fn large_file(&mut self, name: &str, size: usize, words: bool) -> Result<()> {
        let path = self.base.join(name);
        let mut out = File::create(&path).map_err(BedError::file("create", &path))?;
        let mut left = size;
        while left > 0 {
            let some = left.min(POOL);
            let content = if words { self.noise.text(some) } else { self.noise.bytes(some) };
            out.write_all(&content).map_err(BedError::file("write", &path))?;
            left -= some;
        }
        self.files.push(path.clone());
        self.entries.push(path);
        Ok(())
    }

    /// Entries get their times when all is made, children before their directories.
    fn fix_times(&self) -> Result<()> {
        self.entries.iter().rev().try_for_each(|path| set_fixed_times(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_and_the_tail() {
        let mut builder = Builder::new(Path::new("/nonexistent"), Tree { kind: Kind::Manyfiles, scale: 10 });
        let mean = 19 << 10;
        let mut sizes: Vec<usize> = (0..55_000).map(|_| builder.long_tailed(mean).min(POOL)).collect();
        let sum: usize = sizes.iter().sum();
        sizes.sort_unstable();
        let average = sum / sizes.len();
        assert!(average > mean * 8 / 10 && average < mean * 12 / 10, "{average}");
        assert!(sizes[sizes.len() / 2] < mean * 7 / 10, "median {}", sizes[sizes.len() / 2]);
        assert!(sizes[sizes.len() - 1] > 30 * mean, "largest {}", sizes[sizes.len() - 1]);
    }
}
