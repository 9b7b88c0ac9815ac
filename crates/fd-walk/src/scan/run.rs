//! The thread that reads a file system's inodes. It owns all that it uses: where the kernel holds
//! it, it is left behind.

use std::cell::OnceCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_os::lock::Mutex;
use fd_os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use fd_os::threads::{Thread, start_helper};

use super::inodes::Inodes;
use super::known::{Known, Moment, is_old};
use super::mounts::MountNames;
use super::open::{self, Table};
use super::prints::Prints;
use super::table::Refusal;
use crate::priority::Priority;
use crate::settings::Compared;

/// After so many inodes the thread looks which priority the walk has, and says how far it is.
const FOLLOWED: u64 = 1024;

/// Bytes of a thread's stack.
const STACK: usize = 256 * 1024;

/// So long it is waited for when it is not wanted any more: it has the file system and its disk
/// open.
const GRACE: Duration = Duration::from_secs(1);

/// What a walk wants to be found.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Inodes that have not changed since.
    pub(super) since: i64,
    /// What else an accurate list compares.
    pub(super) compared: Option<Compared>,
    /// No more inodes are to be read.
    pub(super) most: u64,
}

/// Devices that a scan reads now.
static READ: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The only scan of a device at a time. Where the kernel holds one, as it can't write the file
/// system out, later jobs don't leave one behind each.
pub(super) struct Turn(u64);

impl Turn {
    pub(super) fn take(dev: u64) -> Option<Self> {
        let mut read = READ.lock();
        if read.contains(&dev) {
            return None;
        }
        read.push(dev);
        Some(Self(dev))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        READ.lock().retain(|dev| *dev != self.0);
    }
}

/// A scan that was begun.
pub(super) struct Run {
    thread: Thread<Result<Known, Refusal>>,
    stop: Stop,
}

/// What the walk and the thread tell each other.
#[derive(Default)]
struct Shared {
    /// The scan is not wanted any more.
    is_stopped: AtomicBool,
    /// About so many inodes were read.
    inodes: AtomicU64,
}

/// Tells the thread that it is not wanted any more.
#[derive(Default)]
struct Stop {
    shared: Arc<Shared>,
    /// So long it is waited for then.
    until: OnceCell<Instant>,
}

impl Stop {
    fn tell(&self) -> Instant {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        *self.until.get_or_init(|| Instant::now() + GRACE)
    }
}

impl Run {
    /// Begins with the file system of this directory, whose turn it is.
    pub(super) fn begin(directory: BorrowedFd<'_>, turn: Turn, wanted: Wanted) -> Result<Self, Refusal> {
        let (directory, dev) = (Arc::new(directory.try_clone_to_owned()?), turn.0);
        let priority = Priority::of_this_thread();
        Self::start(turn, move |shared| scan(directory, dev, wanted, priority, shared))
    }

    fn start(
        turn: Turn,
        scan: impl FnOnce(&Shared) -> Result<Known, Refusal> + Send + 'static,
    ) -> Result<Self, Refusal> {
        let stop = Stop::default();
        let shared = Arc::clone(&stop.shared);
        let scan = move || {
            let _turn = turn;
            scan(&shared)
        };
        Ok(Self { thread: start_helper("inode scan", STACK, scan)?, stop })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.has_ended()
    }

    /// About how many inodes it has read.
    pub(super) fn inodes(&self) -> u64 {
        self.stop.shared.inodes.load(Ordering::Relaxed)
    }

    /// Waits for its end, at most so long, and as long as this says so.
    pub(super) fn wait(&self, most: Duration, is_waited_for: impl FnMut() -> bool) {
        self.thread.wait(most, is_waited_for);
    }

    /// It is not wanted any more, and ends soon.
    pub(super) fn stop(&self) {
        self.stop.tell();
    }

    /// What it has found. It is waited for as long as this says so, and for a moment after that.
    /// `None`: the kernel holds it.
    pub(super) fn end(self, mut is_waited_for: impl FnMut() -> bool) -> Option<Result<Arc<Known>, Refusal>> {
        let Self { thread, stop } = self;
        let ended = thread.end(|| is_waited_for() || Instant::now() < stop.tell());
        // One that has panicked has found nothing.
        ended.map(|ended| ended.unwrap_or(Err(Refusal::Stopped)).map(Arc::new))
    }
}

fn scan(
    directory: Arc<OwnedFd>,
    dev: u64,
    wanted: Wanted,
    priority: Priority,
    shared: &Shared,
) -> Result<Known, Refusal> {
    let begun = Moment::now();
    let table = open::open(&directory, dev, wanted.most)?;
    let Found { mut old, mut prints, inodes } = Found::in_all(&table, wanted, priority, shared)?;
    table.finish()?;
    old.finish();
    if let Some(prints) = &mut prints {
        prints.finish(&old);
    }
    let mounts = MountNames::read()?;
    let took = begun.instant.elapsed();
    Ok(Known { dev, old, prints, mounts, begun, took, inodes, held: directory })
}

/// What is found in a table.
struct Found {
    old: Inodes,
    prints: Option<Prints>,
    inodes: u64,
}

impl Found {
    /// Reads all groups.
    fn in_all(table: &Table, wanted: Wanted, priority: Priority, shared: &Shared) -> Result<Self, Refusal> {
        let mut found = Self { old: Inodes::default(), prints: wanted.compared.map(Prints::new), inodes: 0 };
        let mut has_room = true;
        for group in 0..table.groups() {
            table.group(group, &mut |inode| {
                if found.inodes.is_multiple_of(FOLLOWED) {
                    priority.follow();
                    shared.inodes.store(found.inodes, Ordering::Relaxed);
                }
                found.inodes += 1;
                if is_old(inode.mtime, inode.ctime, wanted.since) {
                    let prints = &mut found.prints;
                    has_room = found.old.add(inode.ino) && prints.as_mut().is_none_or(|prints| prints.add(&inode));
                }
                has_room && found.inodes <= wanted.most && !shared.is_stopped.load(Ordering::Relaxed)
            })?;
            if shared.is_stopped.load(Ordering::Relaxed) {
                return Err(Refusal::Stopped);
            }
            if found.inodes > wanted.most {
                // The quota of a project says less than there is. Not to begin soon again, this
                // says more.
                return Err(Refusal::Long(found.inodes.saturating_mul(2)));
            }
            if !has_room {
                return Err(Refusal::Unknown("size"));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_scan_that_is_not_wanted_any_more_is_waited_for() {
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ended);
        let run = Run::start(Turn::take(u64::MAX).unwrap(), move |shared| {
            while !shared.is_stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            has_ended.store(true, Ordering::Relaxed);
            Err(Refusal::Stopped)
        });
        assert!(run.unwrap().end(|| false).is_some_and(|found| matches!(found, Err(Refusal::Stopped))));
        assert!(ended.load(Ordering::Relaxed));
    }

    #[test]
    fn a_scan_that_the_kernel_holds_is_left_behind() {
        let (let_go, kernel) = channel::<()>();
        let run = Run::start(Turn::take(u64::MAX - 1).unwrap(), move |_| {
            let _let_go = kernel.recv();
            Err(Refusal::Stopped)
        });
        assert!(run.unwrap().end(|| false).is_none());
        assert!(Turn::take(u64::MAX - 1).is_none(), "there is one at a time");
        drop(let_go);
        while Turn::take(u64::MAX - 1).is_none() {
            std::thread::yield_now();
        }
    }
}
