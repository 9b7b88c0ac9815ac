//! What a job found on the host and left there: the page cache, pressure, free disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bed::{Result, argv, run};
use nix::sys::statvfs::statvfs;

use crate::statistics::float;
use crate::tree::visit;

/// At most so many files are asked how much of them is in memory; of more, every so-manieth.
const ASKED: usize = 2000;
/// So many in one call of the program.
const AT_ONCE: usize = 500;

/// What a raw row tells beside the job's own figures. What the host does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surroundings {
    /// When the job began, seconds since 1970.
    pub began: u64,
    /// The part of what the job reads that is in the page cache when it begins, 0 to 1.
    pub resident_before: Option<f64>,
    /// The same when it has ended.
    pub resident_after: Option<f64>,
    /// What processes had to wait for meanwhile.
    pub stalls: Stalls,
    /// Free bytes of the disk with the volumes, when it begins.
    pub disk_free: Option<u64>,
    /// Load average of the last minute when it begins: what else the machine did.
    pub load: f64,
}

/// Pressure stall information: how long something waited, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// Some task, for a processor.
    pub cpu_some: Option<u64>,
    /// Some task, for a disk.
    pub io_some: Option<u64>,
    /// All tasks, for a disk.
    pub io_full: Option<u64>,
    /// Some task, for memory.
    pub memory_some: Option<u64>,
}

impl Surroundings {
    /// What a job finds whose volumes are in this folder. Which part of what it reads is in the
    /// page cache is not looked at.
    pub fn found(folder: &Path) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { began, disk_free: free(folder), load: load(), ..Self::default() }
    }
}

impl Stalls {
    /// Since the host began.
    pub fn now() -> Self {
        let of = |what, who| stalled(&fs::read_to_string(Path::new("/proc/pressure").join(what)).ok()?, who);
        Self {
            cpu_some: of("cpu", "some"),
            io_some: of("io", "some"),
            io_full: of("io", "full"),
            memory_some: of("memory", "some"),
        }
    }

    /// From an earlier look to this one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            cpu_some: less(self.cpu_some, earlier.cpu_some),
            io_some: less(self.io_some, earlier.io_some),
            io_full: less(self.io_full, earlier.io_full),
            memory_some: less(self.memory_some, earlier.memory_some),
        }
    }
}

fn stalled(text: &str, who: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(who))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Free bytes of the file system of a path.
pub fn free(path: &Path) -> Option<u64> {
    let found = statvfs(path).ok()?;
    found.blocks_available().checked_mul(found.fragment_size())
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The files of a tree that are asked.
pub fn asked(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    visit(tree, &mut |path| {
        all.push(path.to_owned());
        Ok(())
    })?;
    // Not in the order of the directory, which differs from disk to disk.
    all.sort();
    let step = all.len().div_ceil(ASKED).max(1);
    Ok(all.into_iter().step_by(step).collect())
}

/// Which part of these files is in the page cache, by bytes. `None` without the program `fincore`,
/// or if they are empty.
pub fn resident(files: &[PathBuf]) -> Option<f64> {
    let (mut in_memory, mut size) = (0, 0);
    for some in files.chunks(AT_ONCE) {
        let mut words = argv(["fincore", "--bytes", "--noheadings", "--raw", "--output", "RES,SIZE"]);
        words.extend(some.iter().map(|path| path.as_os_str().to_owned()));
        let done = run(&words, b"").ok().filter(|done| done.status.success())?;
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            let (one, all) = line.split_once(' ')?;
            // The last page of a file is in memory as a whole.
            let all: u64 = all.trim().parse().ok()?;
            in_memory += one.parse::<u64>().ok()?.min(all);
            size += all;
        }
    }
    (size > 0).then(|| float(in_memory) / float(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_read_from_the_kernels_text() {
        let text = "some avg10=0.01 avg60=0.25 avg300=2.97 total=3481849293\n\
                    full avg10=0.00 avg60=0.15 avg300=1.88 total=594512209\n";
        assert_eq!(stalled(text, "some"), Some(3_481_849_293));
        assert_eq!(stalled(text, "full"), Some(594_512_209));
        assert_eq!(stalled("", "some"), None);
        let later = Stalls { io_some: Some(30), ..Stalls::default() };
        let earlier = Stalls { io_some: Some(10), cpu_some: Some(1), ..Stalls::default() };
        assert_eq!(later.since(earlier), Stalls { io_some: Some(20), ..Stalls::default() });
    }

    #[test]
    fn a_large_tree_is_asked_in_part() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = asked(own).unwrap();
        assert!(files.len() > 10 && files.len() <= ASKED);
        assert!(free(own).is_some_and(|free| free > 0));
        assert_eq!(resident(&[]), None);
    }
}
