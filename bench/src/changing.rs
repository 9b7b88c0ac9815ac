//! Files that change while they are saved: suites of other people at work in a folder of the
//! `FileSet`, all the while a job lasts.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bed::{BedError, PATIENCE, Process, Result, argv};

use crate::programs::is_on_path;

/// Who changes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changer {
    /// `fsx`: writes, truncations, maps and holes at random, in sixteen files.
    Fsx,
    /// `pjdfstest`: makes, renames and removes entries of all kinds.
    Pjdfstest,
    /// stress-ng: makes, renames and removes names, and writes a file.
    StressNg,
}

impl Changer {
    /// All.
    pub const ALL: [Self; 3] = [Self::Fsx, Self::Pjdfstest, Self::StressNg];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsx => "fsx",
            Self::Pjdfstest => "pjdfstest",
            Self::StressNg => "stressng",
        }
    }

    fn program(self) -> &'static str {
        if self == Self::StressNg { "stress-ng" } else { self.name() }
    }

    /// A round of the shell's loop, a second or less: between two rounds it can be ended. Some of
    /// the tests fail on some file systems, and some stressors can do nothing here.
    fn round(self) -> &'static str {
        match self {
            Self::Fsx => {
                r#"for file in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do fsx -N 200 -P "$WORK" "$BUSY/$file"; done"#
            }
            Self::Pjdfstest => r#"timeout -s KILL 1 pjdfstest -p "$BUSY" || true"#,
            Self::StressNg => {
                r#"stress-ng --temp-path "$BUSY" --timeout 1 --dentry 1 --rename 1 \
                   --hdd 1 --hdd-bytes 4M || true"#
            }
        }
    }

    /// What it needs and this host has not.
    pub fn missing(self) -> Option<String> {
        let program = self.program();
        (!is_on_path(program)).then(|| format!("{program} is not on PATH"))
    }
}

/// A suite at work. Dropped without being ended, it begins no further round.
pub struct Changing {
    process: Process,
    stop: PathBuf,
}

impl Changing {
    /// Begins in the folder `busy`, which is emptied; `work` gets what the suite prints.
    pub fn start(changer: Changer, busy: &Path, work: &Path) -> Result<Self> {
        for folder in [busy, work] {
            if folder.exists() {
                fs::remove_dir_all(folder).map_err(BedError::file("remove", folder))?;
            }
            fs::create_dir_all(folder).map_err(BedError::file("create", folder))?;
        }
        let stop = work.join("stop");
        let round = changer.round();
        // A signal would not reach what the shell has begun.
        let script = format!("while [ ! -e \"$WORK/stop\" ]; do {round}; done");
        let mut words = argv(["env"]);
        for (name, path) in [("BUSY", busy), ("WORK", work)] {
            let mut setting = OsString::from(format!("{name}="));
            setting.push(path);
            words.push(setting);
        }
        words.extend(argv(["sh", "-ec", &script]));
        let process = Process::start(changer.name(), &words, &work.join("output"))?;
        Ok(Self { process, stop })
    }

    /// Ends it after its round. Fails if it had ended by itself: then nothing has changed.
    pub fn end(mut self) -> Result<()> {
        self.process.must_run()?;
        File::create(&self.stop).map_err(BedError::file("create", &self.stop))?;
        self.process.wait_exit(PATIENCE).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_works_in_the_busy_folder() {
        for changer in Changer::ALL {
            assert!(changer.round().contains("$BUSY") && changer.round().contains(changer.program()), "{changer:?}");
        }
    }
}
