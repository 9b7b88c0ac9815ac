//! Whose rows these are: the program that ran a job, and the harness that measured it.

use std::fs;
use std::path::Path;

use bed::{BedError, Result, Root, argv, our_program, run};
use openssl::sha::sha256;

use crate::sample::{Sample, Side};

/// So many digits tell programs and commits apart.
const DIGITS: usize = 12;

/// What measures and what is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    stock: String,
    ours: String,
    harness: Option<String>,
}

impl Origin {
    /// The programs that a bed would start now.
    pub fn here() -> Result<Self> {
        let short = |path: &Path| -> Result<String> { Ok(sha256_of(path)?.chars().take(DIGITS).collect()) };
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let newest = newest(bench.parent().unwrap_or(bench), &["bench", "tests/src"]);
        Ok(Self {
            stock: short(&Root::find()?.inside("usr/sbin/bacula-fd"))?,
            ours: short(&our_program()?)?,
            harness: newest.map(|(commit, is_changed)| {
                let short: String = commit.chars().take(DIGITS).collect();
                if is_changed { format!("{short}+") } else { short }
            }),
        })
    }

    /// Writes it into samples. The floor is the harness itself.
    pub fn mark(&self, samples: &mut [Sample]) {
        for sample in samples {
            sample.program = match sample.side {
                Side::Stock => Some(self.stock.clone()),
                Side::Ours => Some(self.ours.clone()),
                Side::Floor => None,
            };
            sample.harness.clone_from(&self.harness);
        }
    }
}

/// The newest commit that has changed something below these paths, and whether it has been changed
/// since. None outside of a repository.
pub(crate) fn newest(repository: &Path, paths: &[&str]) -> Option<(String, bool)> {
    let git = |words: &[&str]| {
        let mut all = argv(["git", "-C"]);
        all.push(repository.as_os_str().to_owned());
        all.extend(argv(words));
        all.extend(argv(["--"]));
        all.extend(argv(paths));
        run(&all, b"").ok().filter(|done| done.status.success())
    };
    let last = git(&["log", "-1", "--format=%H"])?;
    let commit = String::from_utf8_lossy(&last.stdout).trim().to_owned();
    let is_changed = git(&["status", "--porcelain"]).is_some_and(|done| !done.stdout.is_empty());
    (!commit.is_empty()).then_some((commit, is_changed))
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    sha256(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The same of a file, which must hold something.
pub(crate) fn sha256_of(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(BedError::file("read", path))?;
    if bytes.is_empty() { Err(BedError::Usage(format!("{} is empty", path.display()))) } else { Ok(hex(&bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::sample;

    #[test]
    fn each_row_has_the_program_of_its_side() {
        let [stock, ours, harness] = ["1", "2", "3+"].map(str::to_owned);
        let origin = Origin { stock, ours, harness: Some(harness) };
        let mut samples = [Side::Stock, Side::Ours, Side::Floor].map(|side| sample(side, 1));
        origin.mark(&mut samples);
        let programs = samples.each_ref().map(|one| one.program.as_deref());
        assert_eq!(programs, [Some("1"), Some("2"), None]);
        assert!(samples.iter().all(|one| one.harness.as_deref() == Some("3+")));
    }
}
