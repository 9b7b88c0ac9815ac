//! Trees that other people's programs make: suites that test or measure file systems, and what is
//! installed on real machines. They are not the same on every host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bed::{BedError, Result, Root};

use crate::programs::is_on_path;

/// What makes a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// `fsx`: files after a thousand writes, truncations, maps and holes at random.
    Fsx,
    /// `pjdfstest`: entries of all kinds and modes, killed in the middle of its tests.
    Pjdfstest,
    /// `fs_mark`: many small files.
    FsMark,
    /// `dbench`: what a file server's clients leave.
    Dbench,
    /// stress-ng: odd names, links, holes, modes, times, extended attributes.
    StressNg,
    /// An unpacked Debian: the root in which the stock daemons are.
    Debian,
    /// The sources of Linux, as Debian packs them.
    Linux,
    /// The icons of MUI, from npm: thousands of tiny files.
    Icons,
}

/// The sources' archives.
const SOURCES: &str = "/usr/src";
/// What npm is to install, with the digests of all of it; from the repository's top.
const LOCKED: &str = "paper/perf-analysis/trees/icons";

impl Suite {
    /// All.
    pub const ALL: [Self; 8] = [
        Self::Fsx,
        Self::Pjdfstest,
        Self::FsMark,
        Self::Dbench,
        Self::StressNg,
        Self::Debian,
        Self::Linux,
        Self::Icons,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsx => "fsx",
            Self::Pjdfstest => "pjdfstest",
            Self::FsMark => "fsmark",
            Self::Dbench => "dbench",
            Self::StressNg => "stressng",
            Self::Debian => "debian",
            Self::Linux => "linux",
            Self::Icons => "icons",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Fsx => "fsx",
            Self::Pjdfstest => "pjdfstest",
            Self::FsMark => "fs_mark",
            Self::Dbench => "dbench",
            Self::StressNg => "stress-ng",
            Self::Debian => "cp",
            Self::Linux => "tar",
            Self::Icons => "npm",
        }
    }

    /// What the shell runs; `TREE` is where the tree goes, `FROM` what it is made from.
    fn command(self) -> &'static str {
        match self {
            Self::Fsx => {
                r#"for seed in $(seq 1 200); do fsx -S "$seed" -N 1000 -P "$TREE" "$TREE/$seed" >/dev/null 2>&1; done"#
            }
            // What a test makes is gone at its end; each round is killed a little later.
            Self::Pjdfstest => {
                r#"for round in $(seq 10 10 900); do
                     timeout -s KILL "$(printf 0.%03d "$round")" pjdfstest -p "$TREE" >/dev/null 2>&1 || true
                   done"#
            }
            // It refuses directories with long names, and makes a log for each of its threads.
            Self::FsMark => {
                r#"cd "$TREE" && mkdir files && fs_mark -d files -n 5000 -s 4096 -k -L 1 -D 50 -l log && rm -f log log.*"#
            }
            Self::Dbench => r#"dbench --skip-cleanup -c /usr/share/dbench/client.txt -D "$TREE" -t 10 4"#,
            Self::StressNg => {
                r#"stress-ng --keep-files --temp-path "$TREE" --timeout 5 --dentry 1 --link 1 --symlink 1 --xattr 1 \
                   --filename 1 --hdd 1 --hdd-bytes 16M --fpunch 1 --utime 1 --chmod 1 --dir 1 --rename 1 --seek 1"#
            }
            Self::Debian => r#"cp -a "$FROM/." "$TREE""#,
            Self::Linux => r#"tar -C "$TREE" -xf "$FROM""#,
            // What the icons are to be drawn with is not asked for.
            Self::Icons => {
                r#"cp "$FROM"/package*.json "$TREE" && cd "$TREE" && \
                   npm ci --legacy-peer-deps --ignore-scripts --no-audit --no-fund"#
            }
        }
    }

    /// What it is made from, if that is on this host.
    fn from(self) -> Option<PathBuf> {
        match self {
            Self::Debian => Root::find().ok().map(|root| root.path().to_owned()).filter(|path| path != Path::new("/")),
            Self::Linux => {
                let names = Path::new(SOURCES).read_dir().ok()?.flatten().map(|entry| entry.path());
                let is_archive = |path: &PathBuf| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    name.starts_with("linux-source-") && name.contains(".tar")
                };
                names.filter(is_archive).max()
            }
            Self::Icons => Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(|top| top.join(LOCKED)),
            _ => Some(PathBuf::new()),
        }
    }

    /// What it needs and this host has not.
    pub fn missing(self) -> Option<String> {
        let program = self.program();
        if !is_on_path(program) {
            return Some(format!("{program} is not on PATH"));
        }
        let what = if self == Self::Linux { "linux-source" } else { "an unpacked Debian" };
        self.from().is_none().then(|| format!("there is no {what}"))
    }

    /// Makes the tree in an empty directory.
    pub fn make(self, tree: &Path) -> Result<()> {
        let wrong = |problem| BedError::Program { program: self.program().to_owned(), problem };
        let from = self.from().map_or_else(OsString::new, PathBuf::into_os_string);
        let mut shell = Command::new("sh");
        shell.args(["-ec", self.command()]).env("TREE", tree).env("FROM", from).stdin(Stdio::null());
        let done = shell.output().map_err(BedError::file("run", Path::new(self.program())))?;
        let said = || String::from_utf8_lossy(&[done.stdout.as_slice(), &done.stderr].concat()).into_owned();
        // One of the stressors may find that it can do nothing here.
        if done.status.success() || self == Self::StressNg { Ok(()) } else { Err(wrong(said())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_says_where_its_tree_goes_and_what_it_needs() {
        for suite in Suite::ALL {
            assert!(suite.command().contains("$TREE") && suite.command().contains(suite.program()), "{suite:?}");
            assert_eq!(
                suite.command().contains("$FROM"),
                matches!(suite, Suite::Debian | Suite::Linux | Suite::Icons),
                "{suite:?}"
            );
        }
    }
}
