//! The set of files of the steps: as much noise as zeros, fifty files of a thousandth each, and a
//! hundred of a KiB. It is made from its size alone.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bed::{BedError, Noise, Result, Times, TreeRules, compare_trees};

use crate::mounted::{Mounted, good};
use crate::tree::{noise_file, visit, warm};

/// The set on the disk.
#[derive(Debug)]
pub struct Set {
    /// Its top directory.
    pub path: PathBuf,
    mebibytes: usize,
}

impl Set {
    /// Makes it anew for a size: so many MiB of noise, and as many of zeros.
    pub fn make(path: PathBuf, mebibytes: usize) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(BedError::file("remove", &path))?;
        }
        fs::create_dir_all(&path).map_err(BedError::file("create", &path))?;
        let set = Self { path, mebibytes };
        set.noise("noise", 1, mebibytes << 10)?;
        let zeros = set.path.join("zeros");
        let content = vec![0; 1 << 20];
        let mut out = File::create(&zeros).map_err(BedError::file("create", &zeros))?;
        for _ in 0..mebibytes {
            out.write_all(&content).map_err(BedError::file("write", &zeros))?;
        }
        for number in 0..50 {
            set.noise(&format!("middle-{number:02}"), 100 + number, (mebibytes << 10) / 500)?;
        }
        for number in 0..100 {
            set.noise(&format!("small-{number:03}"), 1000 + number, 1)?;
        }
        Ok(set)
    }

    /// Changes it for a step, by its word.
    pub fn change(&self, step: &str) -> Result<()> {
        let more = || self.mebibytes * 2 / 5;
        match step {
            "onefile" => self.noise("small-050", 2000, 1),
            "more" => self.noise("more", 2001, more() << 10),
            "duplicate" => {
                let (from, to) = (self.path.join("more"), self.path.join("again"));
                fs::copy(&from, &to).map(drop).map_err(BedError::file("copy", &from))
            }
            _ => Ok(()),
        }
    }

    /// While the value lives, nobody can write to it.
    pub fn read_only(&self) -> Result<Mounted> {
        let place = self.path.display().to_string();
        good(&["mount", "--bind", &place, &place], b"")?;
        let mounted = Mounted::Kernel(self.path.clone());
        good(&["mount", "-o", "remount,bind,ro", &place], b"")?;
        Ok(mounted)
    }

    /// Whether it was restored somewhere below a folder: all names and all content.
    pub fn is_below(&self, folder: &Path) -> Result<bool> {
        let mut top = None;
        visit(folder, &mut |path| {
            if path.ends_with("small-000") {
                top = path.parent().map(Path::to_owned);
            }
            Ok(())
        })?;
        let rules = TreeRules { times: Times::Ignored, ..TreeRules::restored() };
        top.map_or(Ok(false), |top| Ok(compare_trees(&self.path, &top, rules)?.is_empty()))
    }

    /// Reads it, so that it is in the page cache.
    pub fn warm(&self) -> Result<()> {
        warm(&self.path)
    }

    fn noise(&self, name: &str, seed: u64, kibibytes: usize) -> Result<()> {
        noise_file(&self.path.join(name), &mut Noise::new(seed), kibibytes << 10)
    }
}

/// Bytes of all files below a path.
pub fn size(path: &Path) -> Result<u64> {
    let mut sum = 0;
    visit(path, &mut |path| {
        sum += fs::metadata(path).map_err(BedError::file("look at", path))?.len();
        Ok(())
    })?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_has_its_size_and_grows_by_two_fifths_twice() {
        let folder = bed::Folder::new("set").unwrap();
        let set = Set::make(folder.path().join("set"), 5).unwrap();
        let first = size(&set.path).unwrap();
        assert_eq!(first, (10 << 20) + 50 * (10 << 10) + 100 * 1024);
        for step in ["initial", "unchanged", "onefile"] {
            set.change(step).unwrap();
        }
        assert_eq!(size(&set.path).unwrap(), first);
        set.change("more").unwrap();
        set.change("duplicate").unwrap();
        assert_eq!(size(&set.path).unwrap(), first + (4 << 20));
        assert!(set.is_below(folder.path()).unwrap() && !set.is_below(&folder.make("empty").unwrap()).unwrap());
        assert_ne!(fs::read(set.path.join("small-049")).unwrap(), fs::read(set.path.join("small-048")).unwrap());
    }
}
