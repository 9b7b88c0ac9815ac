//! Whether a backup leaves the page cache as it found it: a file that the host uses, in memory
//! before the job, is part of what is saved; how much of it is there afterwards, and of a file that
//! was not in use how much was left behind.

use std::fmt::Write as _;
use std::path::Path;

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Noise, PATIENCE, Process, Result, argv, run, wait_for,
};
use nix::unistd::sync;

use crate::tree::{noise_file, warm};

/// Size of each file, MiB.
const SIZE: usize = 256;

/// How the hot file came to be in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A process has mapped it and touched every page.
    Mapped,
    /// It was read.
    Read,
}

/// What one job left.
#[derive(Debug, Clone, Copy)]
pub struct Residency {
    /// The daemon that ran the job.
    pub fd: Fd,
    /// How the hot file was used.
    pub used: Use,
    /// Hundredths of the hot file in memory before the job.
    pub before: f64,
    /// And after it.
    pub after: f64,
    /// Hundredths of the file that was not in use, after the job.
    pub left_behind: f64,
}

/// Measures both daemons with both kinds of use.
pub fn measure() -> Result<Vec<Residency>> {
    let mut options = BedOptions::new("hot-set", Fd::BOTH.map(ClientOptions::new))?;
    let source = options.source()?;
    let (hot, cold) = (source.join("hot"), source.join("cold"));
    noise_file(&hot, &mut Noise::new(1), SIZE << 20)?;
    noise_file(&cold, &mut Noise::new(1), SIZE << 20)?;
    options.file_sets = vec![FileSet::new("Hot", &["Signature = MD5"], &[&source])];
    let bed = Bed::start(options)?;
    let mut found = Vec::new();
    for used in [Use::Mapped, Use::Read] {
        for fd in Fd::BOTH {
            // Pages that are not on the disk yet can't be dropped.
            sync();
            drop_pages(&cold)?;
            warm(&hot)?;
            let user = match used {
                Use::Mapped => Some(map(&hot, bed.folder())?),
                Use::Read => None,
            };
            let before = resident(&hot)?;
            bed.backup(fd.name(), "level=Full")?.must_be_good()?;
            found.push(Residency { fd, used, before, after: resident(&hot)?, left_behind: resident(&cold)? });
            user.map_or(Ok(()), Process::kill)?;
        }
    }
    Ok(found)
}

/// The result as a table.
pub fn markdown(found: &[Residency]) -> String {
    let mut text = String::from(
        "| hot file, 256 MiB | daemon | resident before | after a Full | an unused file, left behind |\n\
         | --- | --- | --: | --: | --: |\n",
    );
    for Residency { fd, used, before, after, left_behind } in found {
        let used = if *used == Use::Mapped { "mapped by a process" } else { "read" };
        let _ = writeln!(text, "| {used} | {} | {before:.1} % | {after:.1} % | {left_behind:.1} % |", fd.name());
    }
    text
}

/// A process that maps a file and touches all of it: perl's `:mmap` layer, which every Debian has.
/// It must not reach the file's end, where perl would give the mapping back.
fn map(path: &Path, folder: &Path) -> Result<Process> {
    let program = "open(my $file, '<:mmap', $ARGV[0]) or die $!; my $rest = (-s $file) - 1; my $bytes; \
                   while ($rest > 0) { my $got = read($file, $bytes, $rest > 1048576 ? 1048576 : $rest) or die; $rest -= $got } \
                   $| = 1; print \"mapped\\n\"; sleep 100000";
    let words = argv(["perl".as_ref(), "-e".as_ref(), program.as_ref(), path.as_os_str()]);
    let output = folder.join("perl.out");
    if output.exists() {
        std::fs::remove_file(&output).map_err(BedError::file("remove", &output))?;
    }
    let mut process = Process::start("perl", &words, &output)?;
    wait_for("the hot file to be mapped", PATIENCE, || {
        process.must_run()?;
        let said = process.output();
        Ok(if said.contains("mapped") { Ok(()) } else { Err(said) })
    })?;
    Ok(process)
}

fn drop_pages(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path).map_err(BedError::file("open", path))?;
    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|source| BedError::System { what: "posix_fadvise", source })
}

/// How many hundredths of a file are in the page cache.
fn resident(path: &Path) -> Result<f64> {
    let words = ["fincore", "--bytes", "--noheadings", "--output", "RES,SIZE"];
    let mut words = argv(words);
    words.push(path.as_os_str().to_owned());
    let done = run(&words, b"")?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let numbers: Vec<f64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [resident, size] if done.status.success() && size > 0.0 => Ok(resident * 100.0 / size),
        _ => Err(BedError::Program { program: "fincore".to_owned(), problem: done.text() }),
    }
}
