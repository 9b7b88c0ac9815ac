//! The thread that reads a file system's inodes. It owns all that it uses: where the kernel holds
//! it, it is left behind.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use fd_os::sync::atomic::{AtomicBool, Ordering};
use fd_os::threads::{Thread, start_helper};

use super::inodes::Inodes;
use super::known::{Known, Moment, is_old};
use super::mounts::MountNames;
use super::open;
use super::table::Refusal;

/// Bytes of a thread's stack.
const STACK: usize = 256 * 1024;

/// A scan that was begun. Dropped, it ends soon.
pub(super) struct Run {
    thread: Thread<Result<Known, Refusal>>,
    _stop: StopsOnDrop,
}

struct StopsOnDrop(Arc<AtomicBool>);

impl Drop for StopsOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Run {
    /// Begins with the file system of this directory.
    pub(super) fn begin(directory: BorrowedFd<'_>, dev: u64, since: i64) -> Result<Self, Refusal> {
        let directory = Arc::new(directory.try_clone_to_owned()?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = start_helper("inode scan", STACK, move || scan(directory, dev, since, &stopped))?;
        Ok(Self { thread, _stop: StopsOnDrop(stop) })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.has_ended()
    }

    /// What it has found. It is waited for as long as this says so; `None`: not until its end.
    pub(super) fn end(self, is_waited_for: impl FnMut() -> bool) -> Option<Result<Arc<Known>, Refusal>> {
        // One that has panicked has found nothing.
        self.thread.end(is_waited_for).map(|ended| ended.unwrap_or(Err(Refusal::Stopped)).map(Arc::new))
    }
}

fn scan(directory: Arc<OwnedFd>, dev: u64, since: i64, stop: &AtomicBool) -> Result<Known, Refusal> {
    let begun = Moment::now();
    let table = open::open(&directory, dev)?;
    let (mut old, mut has_room, mut inodes) = (Inodes::default(), true, 0);
    for group in 0.. {
        let is_there = table.group(group, &mut |inode| {
            inodes += 1;
            if is_old(inode.mtime, inode.ctime, since) {
                has_room = old.add(inode.ino);
            }
            has_room && !stop.load(Ordering::Relaxed)
        })?;
        if stop.load(Ordering::Relaxed) {
            return Err(Refusal::Stopped);
        }
        if !has_room {
            return Err(Refusal::Unknown("size"));
        }
        if !is_there {
            break;
        }
    }
    table.finish()?;
    old.finish();
    let mounts = MountNames::read()?;
    let took = begun.instant.elapsed();
    Ok(Known { dev, old, mounts, begun, took, inodes, _held: directory })
}
