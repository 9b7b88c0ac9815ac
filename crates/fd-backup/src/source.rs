//! Opens and reads what has data: files, raw devices, fifos (reference 04 §8.2, §8.9).
//!
//! A read of a fifo never blocks for long, so that a stopped job can end even if nothing is ever
//! written to the fifo.

pub(crate) mod kinds;
pub(crate) mod page_cache;
pub(crate) mod read_ahead;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fd_fileset::Flags;
use fd_os::file_system::is_local;
use fd_os::page_cache::append_next;
use fd_os::threads;
use fd_records::{FileType, Stat};
use fd_walk::Entry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Advice, OFlags, SeekFrom, fadvise, fcntl_setfl, fstat, seek};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::exchange::idle;
use crate::source::page_cache::{PageCache, errno};
use crate::source::read_ahead::ReadAhead;

/// How often a thread that waits for a fifo checks whether the job was stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest wait for a file under lease: longer than the 45 s that the kernel usually grants its
/// holder.
const LONGEST_LEASE: Duration = Duration::from_secs(60);
/// The longest wait for a free descriptor.
const LONGEST_SHORTAGE: Duration = Duration::from_secs(1);
/// The longest wait for all such files of a job.
const ALL_LEASES: Duration = Duration::from_secs(600);
/// From this size on, the kernel is advised that the file is read sequentially.
const WORTH_ADVICE: i64 = 1 << 20;

/// A file, device or fifo that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: OwnedFd,
    /// Time that opening it took, and what was read of it since.
    pub(crate) spent: Duration,
    /// What the page cache had of it before, if something was read.
    pub(crate) cache: Option<PageCache>,
}

impl Opened {
    /// Nothing of it was read yet. Opening it took `spent`.
    pub(crate) const fn new(file: OwnedFd, spent: Duration) -> Self {
        Self { file, spent, cache: None }
    }

    /// Closes it, without reading more of it.
    pub(crate) fn leave(mut self) {
        if let Some(cache) = &mut self.cache {
            cache.leave(self.file.as_fd());
        }
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An open file, device or fifo.
#[derive(Debug)]
pub(crate) struct Source {
    file: OwnedFd,
    kind: Kind,
    /// Time that opening and reading took so far.
    spent: Duration,
    /// Whether a read gave anything.
    has_given: bool,
}

#[derive(Debug)]
enum Kind {
    /// A regular file.
    Regular {
        /// Position of the next read.
        position: u64,
        /// Size from the attributes.
        size: u64,
        cache: PageCache,
        ahead: ReadAhead,
    },
    Device,
    Fifo,
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Kind::Regular { cache, .. } = &mut self.kind {
            cache.leave(self.file.as_fd());
        }
    }
}

/// How long the opening of a file may take.
#[derive(Clone, Copy)]
pub(crate) struct OpenLimits<'p> {
    /// How long to wait until a fifo is opened for writing.
    pub(crate) fifo: Duration,
    /// How long to wait until a descriptor is free.
    pub(crate) descriptor: Duration,
    /// Whether the job is stopped.
    pub(crate) is_stopped: &'p dyn Fn() -> bool,
    /// Time that the job has spent on waiting for files under lease and for descriptors.
    pub(crate) leases: &'p LeaseClock,
}

impl<'p> OpenLimits<'p> {
    /// The usual ones; a fifo is not waited for.
    pub(crate) fn new(is_stopped: &'p dyn Fn() -> bool, leases: &'p LeaseClock) -> Self {
        Self { fifo: Duration::ZERO, descriptor: LONGEST_SHORTAGE, is_stopped, leases }
    }
}

/// Time that a job has waited for files under lease, and for descriptors.
#[derive(Default, Debug)]
pub(crate) struct LeaseClock(AtomicU64);

impl LeaseClock {
    fn add(&self, waited: Duration) {
        self.0.fetch_add(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn spent(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Opens the file at the path of an entry whose data is wanted. Only a lease is waited for, which
/// the kernel ends after a while, and a descriptor. A process that holds many leases must not delay
/// the job for long.
///
/// # Errors
/// The kernel's.
pub(crate) fn open_regular(entry: &Entry, open_limits: OpenLimits<'_>) -> Result<OwnedFd, Errno> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        let opened = entry.open();
        let waited = begun.elapsed();
        let longest = match opened {
            Err(Errno::AGAIN) => LONGEST_LEASE,
            Err(Errno::MFILE | Errno::NFILE) => open_limits.descriptor,
            _ => Duration::ZERO,
        };
        let may_wait = waited < longest && open_limits.leases.spent() + waited < ALL_LEASES;
        if !may_wait || (open_limits.is_stopped)() {
            if pause > Duration::from_millis(1) {
                open_limits.leases.add(waited);
            }
            return opened;
        }
        std::thread::sleep(pause);
        idle::add(pause);
        pause = (pause * 2).min(POLL_INTERVAL / 2);
    }
}

/// Opens the very fifo or device of the walk; the FileSet says that it is to be read.
///
/// # Errors
/// The kernel's; `EINTR` for a fifo without a writer, as the stock daemon's timer causes.
pub(crate) fn open_special(entry: &Entry, open_limits: OpenLimits<'_>) -> Result<OwnedFd, Errno> {
    let handle = entry.handle()?;
    if entry.file_type == FileType::Fifo {
        let begun = Instant::now();
        let opened = open_fifo(entry, &handle, open_limits);
        idle::add(begun.elapsed());
        return opened;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    if entry.options.has(Flags::NO_ATIME)
        && let Ok(device) = entry.reopen(&handle, flags | OFlags::NOATIME)
    {
        return Ok(device);
    }
    entry.reopen(&handle, flags)
}

impl Source {
    /// An open file, device or fifo with its present attributes and type.
    pub(crate) fn new(opened: Opened, file_type: FileType, stat: &Stat) -> Self {
        let Opened { file, spent, cache } = opened;
        if stat.size >= WORTH_ADVICE {
            // Advice only: its result doesn't matter.
            let _ = fadvise(&file, 0, None, Advice::Sequential);
        }
        let kind = match file_type {
            FileType::Fifo => Kind::Fifo,
            FileType::Regular => {
                let size = u64::try_from(stat.size).unwrap_or_default();
                let cache = match cache {
                    Some(cache) => cache.of_size(size),
                    None => PageCache::new(file.as_fd(), size),
                };
                Kind::Regular { position: 0, size, cache, ahead: ReadAhead::default() }
            }
            _ => Kind::Device,
        };
        Self { file, kind, spent, has_given: false }
    }

    /// Whether the file is larger now than its attributes say. Some file systems don't know sizes.
    pub(crate) fn has_grown(&self) -> bool {
        match &self.kind {
            Kind::Regular { size, .. } => file_len(&self.file).is_some_and(|now| now > *size),
            Kind::Device | Kind::Fifo => false,
        }
    }

    /// Whether the first byte can be read, if it is a regular file with data.
    pub(crate) fn is_readable(&self) -> bool {
        let has_data = matches!(self.kind, Kind::Regular { size: 1.., .. });
        !has_data || retry_on_intr(|| pread(&self.file, &mut [0], 0)).is_ok()
    }

    /// The descriptor.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Time that opening and reading took so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Whether a read gave anything.
    pub(crate) fn has_given(&self) -> bool {
        self.has_given
    }

    /// One `read` to the end of `out`: at most `most` bytes, 0 at the end. `None` if the job is
    /// stopped.
    pub(crate) fn read(
        &mut self,
        out: &mut Vec<u8>,
        most: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Errno> {
        let begun = Instant::now();
        let result = self.read_untimed(out, most, is_stopped);
        let elapsed = begun.elapsed();
        self.spent += elapsed;
        self.has_given |= matches!(result, Ok(Some(1..)));
        if let (Kind::Regular { ahead, .. }, Ok(Some(len))) = (&mut self.kind, &result) {
            ahead.note(*len, elapsed);
        }
        result
    }

    fn read_untimed(
        &mut self,
        out: &mut Vec<u8>,
        most: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Errno> {
        loop {
            if is_stopped() {
                return Ok(None);
            }
            let result = match &mut self.kind {
                Kind::Regular { position, size, cache, ahead } => {
                    ahead.ask(self.file.as_fd(), *position, *size);
                    cache.read(self.file.as_fd(), out, most, *position).inspect(|len| {
                        *position = position.saturating_add(*len as u64);
                    })
                }
                Kind::Fifo if !readable(&self.file)? => continue,
                Kind::Fifo | Kind::Device => append_next(self.file.as_fd(), out, most).map_err(|error| errno(&error)),
            };
            match result {
                Ok(len) => return Ok(Some(len)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if matches!(self.kind, Kind::Fifo) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the file system is known to tell the truth about holes.
    pub(crate) fn knows_holes(&self) -> bool {
        is_local(&self.file)
    }

    /// The position of the next byte outside of a hole, at `position` or behind it; if there is
    /// none, the present end of the file. `None` if the file system can't find holes. Changes the
    /// position of the next read.
    pub(crate) fn next_data(&mut self, position: u64) -> Option<u64> {
        match seek(&self.file, SeekFrom::Data(position)) {
            Err(Errno::NXIO) => file_len(&self.file),
            found => found.ok(),
        }
    }

    /// The start of the next hole, at `position` or behind it; the end of the file counts as one.
    /// Changes the position of the next read.
    pub(crate) fn next_hole(&mut self, position: u64) -> Option<u64> {
        seek(&self.file, SeekFrom::Hole(position)).ok()
    }

    /// Sets the position of the next read.
    pub(crate) fn seek(&mut self, to: u64) -> Result<(), Errno> {
        if let Kind::Regular { position, .. } = &mut self.kind {
            *position = to;
            return Ok(());
        }
        seek(&self.file, SeekFrom::Start(to)).map(drop)
    }
}

/// The present length of a file in bytes.
fn file_len(file: &OwnedFd) -> Option<u64> {
    fstat(file).ok().and_then(|stat| u64::try_from(stat.st_size).ok())
}

/// Opens a fifo once it is opened for writing.
///
/// Only a blocking `open` notices that, so a thread of its own waits in one. When the time is up,
/// the fifo is opened for writing here for a moment, which ends that wait; if that is not
/// permitted, the thread is left behind.
fn open_fifo(entry: &Entry, fifo: &OwnedFd, open_limits: OpenLimits<'_>) -> Result<OwnedFd, Errno> {
    let deadline = Instant::now() + open_limits.fifo;
    let (same, held) = (entry.clone(), fifo.try_clone().map_err(|error| errno(&error))?);
    let open = move || retry_on_intr(|| same.reopen(&held, OFlags::RDONLY | OFlags::CLOEXEC));
    let waiting = threads::start("fifo", open).map_err(|error| errno(&error))?;
    let mut ends_the_wait = None;
    let opened = waiting.end(|| {
        let is_in_time = !(open_limits.is_stopped)() && Instant::now() < deadline;
        is_in_time
            || ends_the_wait.is_none() && {
                ends_the_wait = entry.reopen(fifo, OFlags::RDWR | OFlags::CLOEXEC).ok();
                ends_the_wait.is_some()
            }
    });
    match opened {
        Some(opened) if ends_the_wait.is_none() => {
            let file = opened.unwrap_or(Err(Errno::IO))?;
            fcntl_setfl(&file, OFlags::NONBLOCK)?;
            Ok(file)
        }
        _ => Err(Errno::INTR),
    }
}

/// Whether the fifo can be read without blocking; waits a moment for that.
fn readable(file: &OwnedFd) -> Result<bool, Errno> {
    let timeout = Timespec::try_from(POLL_INTERVAL).unwrap_or_default();
    let begun = Instant::now();
    let ready = poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout));
    idle::add(begun.elapsed());
    match ready {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
