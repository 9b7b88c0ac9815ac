//! What a disk gives at best: a tree is looked at by threads that do nothing else, as many as
//! wanted, with empty caches. A backup can't be faster.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bed::{BedError, Result};
use clap::Args;
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::read;

use crate::statistics::median;
use crate::tree::drop_caches;

/// What is to be scanned.
#[derive(Debug, Args)]
pub struct Wanted {
    /// The tree, such as `target/bench/trees/tiny300k`.
    tree: PathBuf,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64")]
    threads: Vec<usize>,
    /// Scans with each number of threads.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Read the files, too: what a Full does. Without, each entry is looked up, as in an unchanged
    /// Incremental.
    #[arg(long)]
    read: bool,
    /// Leave the caches as they are.
    #[arg(long)]
    warm: bool,
}

/// Directories that are still to be scanned, and how many threads scan one.
#[derive(Default)]
struct Queue {
    state: Mutex<(VecDeque<PathBuf>, usize)>,
    changed: Condvar,
}

impl Queue {
    fn push(&self, directory: PathBuf) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.push_back(directory);
        self.changed.notify_one();
    }

    /// The next one, once there is one; `None` when all is done.
    fn take(&self) -> Option<PathBuf> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(directory) = state.0.pop_front() {
                state.1 += 1;
                return Some(directory);
            }
            if state.1 == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 -= 1;
        self.changed.notify_all();
    }
}

/// Scans with each number of threads in turn; a table of medians.
///
/// # Errors
/// A directory or file that can't be read; caches that can't be emptied (that needs root).
pub fn measure(wanted: &Wanted) -> Result<String> {
    let mut table = "| threads | seconds: median | least | most |\n| --: | --: | --: | --: |\n".to_owned();
    let mut taken = vec![Vec::new(); wanted.threads.len()];
    for _ in 0..wanted.rounds {
        for (&threads, taken) in wanted.threads.iter().zip(&mut taken) {
            if !wanted.warm {
                drop_caches()?;
            }
            taken.push(scan(&wanted.tree, threads, wanted.read)?.as_secs_f64());
        }
    }
    for (threads, taken) in wanted.threads.iter().zip(&taken) {
        let (least, most) = taken.iter().fold((f64::MAX, 0.0_f64), |(a, b), &time| (a.min(time), b.max(time)));
        let _ = writeln!(table, "| {threads} | {:.2} | {least:.2} | {most:.2} |", median(taken));
    }
    Ok(table)
}

/// Scans once.
fn scan(tree: &Path, threads: usize, reads: bool) -> Result<Duration> {
    let queue = Arc::new(Queue::default());
    queue.push(tree.to_owned());
    let begun = Instant::now();
    let scanning: Vec<_> = (0..threads)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || -> Result<()> {
                let mut buffer = vec![0; 64 << 10];
                let mut result = Ok(());
                while let Some(directory) = queue.take() {
                    let scanned = scan_directory(&directory, &queue, reads.then_some(&mut buffer));
                    result = result.and(scanned.map_err(BedError::file("scan", &directory)));
                    queue.done();
                }
                result
            })
        })
        .collect();
    let ended: Vec<_> = scanning.into_iter().map(thread::JoinHandle::join).collect();
    for result in ended {
        result.unwrap_or_else(|_| Err(BedError::file("scan", tree)(io::ErrorKind::Other.into())))?;
    }
    Ok(begun.elapsed())
}

fn scan_directory(path: &Path, queue: &Queue, mut buffer: Option<&mut Vec<u8>>) -> io::Result<()> {
    let directory = File::open(path)?;
    let mut entries = Vec::new();
    for entry in Dir::from_fd(directory.try_clone()?.into())? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            entries.push((entry.ino(), name.to_owned(), entry.file_type()));
        }
    }
    // The disk has them in this order.
    entries.sort_unstable_by_key(|(inode, ..)| *inode);
    for (_, name, kind) in entries {
        fstatat(directory.as_fd(), name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        match (kind, &mut buffer) {
            (Some(Type::Directory), _) => queue.push(path.join(name.to_string_lossy().as_ref())),
            (Some(Type::File), Some(buffer)) => {
                let opened = openat(&directory, name.as_c_str(), OFlag::O_RDONLY | OFlag::O_NOFOLLOW, Mode::empty())?;
                while read(&opened, buffer)? > 0 {}
            }
            _ => {}
        }
    }
    Ok(())
}
