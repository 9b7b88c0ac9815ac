//! Reads a file without evicting what the host's own programs have in the page cache.
//!
//! The kernel can do that itself from Linux 6.14 on (`RWF_DONTCACHE`): pages that were cached
//! before stay. On other kernels, the file is watched stretch by stretch: if nothing of a stretch
//! was cached before it is read, its pages are dropped afterwards. Nothing is written out for that.

use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use fd_os::page_cache::{append, append_uncached, resident_pages};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

/// Length of a stretch in bytes, a multiple of any page size.
const STRETCH: u64 = 8 << 20;
/// How many stretches are examined together: 32 GiB of file.
const GROUP: u64 = 4096;
/// No device has this number.
const NO_DEVICE: u64 = u64::MAX;

/// The last device that refused uncached reads. A job reads from one or two devices, so at most the
/// first file of each, and the first after a change, tries in vain.
static REFUSING: AtomicU64 = AtomicU64::new(NO_DEVICE);

/// How a file is read.
#[derive(Debug)]
pub(crate) enum PageCache {
    /// Uncached, by the kernel.
    Uncached { device: u64 },
    /// Cached, with the stretches watched here.
    Watched(Stretches),
}

impl PageCache {
    /// For a regular file of this size in bytes on this device.
    pub(crate) fn new(file: BorrowedFd<'_>, device: u64, size: u64) -> Self {
        if REFUSING.load(Ordering::Relaxed) == device {
            Self::Watched(Stretches::new(file, size))
        } else {
            Self::Uncached { device }
        }
    }

    /// One read at `position`, of at most `most` bytes, to the end of `out`.
    pub(crate) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        out: &mut Vec<u8>,
        most: usize,
        position: u64,
        size: u64,
    ) -> Result<usize, Errno> {
        if let Self::Uncached { device } = *self {
            match append_uncached(file, out, most, position).map_err(|error| errno(&error)) {
                // The kernel or the file system doesn't support it. Nothing was read yet. A
                // container runtime that does not know the call answers `EPERM`; if that was about
                // the file, the other call gets it, too.
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                    REFUSING.store(device, Ordering::Relaxed);
                    *self = Self::Watched(Stretches::new(file, size));
                }
                result => return result,
            }
        }
        if let Self::Watched(stretches) = self {
            stretches.reach(file, position);
        }
        append(file, out, most, position).map_err(|error| errno(&error))
    }

    /// From now on the file is read ahead: what comes into memory that way is to be dropped here.
    pub(crate) fn watch(&mut self, file: BorrowedFd<'_>, size: u64) {
        if let Self::Uncached { .. } = self {
            *self = Self::Watched(Stretches::new(file, size));
        }
    }

    /// To be called when no more of the file is read.
    pub(crate) fn leave(&mut self, file: BorrowedFd<'_>) {
        if let Self::Watched(stretches) = self {
            stretches.leave(file);
        }
    }
}

/// The number of an error of the kernel.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Which stretches of a file were cached. Many are examined at once and in advance, because the
/// kernel reads far ahead.
#[derive(Debug)]
pub(crate) struct Stretches {
    size: u64,
    /// The stretch that is being read.
    number: u64,
    /// For each stretch of the present group: whether nothing of it was cached.
    cold: Vec<bool>,
}

impl Stretches {
    fn new(file: BorrowedFd<'_>, size: u64) -> Self {
        let mut stretches = Self { size, number: 0, cold: Vec::new() };
        stretches.look(file);
        stretches
    }

    /// The next read is at `position`.
    fn reach(&mut self, file: BorrowedFd<'_>, position: u64) {
        let before = self.number;
        let number = position / STRETCH;
        if number == before {
            return;
        }
        self.leave(file);
        self.number = number;
        if number / GROUP != before / GROUP {
            self.look(file);
        }
    }

    /// Drops the present stretch from the cache if it came there by this reading.
    fn leave(&self, file: BorrowedFd<'_>) {
        let range = self.range(self.number);
        let is_cold = usize::try_from(self.number % GROUP).ok().and_then(|at| self.cold.get(at)).copied();
        if let (Some(true), Some(len)) = (is_cold, NonZeroU64::new(range.end - range.start)) {
            // Advice only: its result doesn't matter.
            let _ = fadvise(file, range.start, Some(len), Advice::DontNeed);
        }
    }

    /// Examines all stretches of the present group. After an error a stretch counts as cached.
    fn look(&mut self, file: BorrowedFd<'_>) {
        let first = self.number - self.number % GROUP;
        let ranges = (first..first + GROUP).map(|number| self.range(number)).take_while(|range| !range.is_empty());
        let is_cold = |range: Range<u64>| {
            resident_pages(file, range.start, range.end - range.start).is_ok_and(|pages| pages == 0)
        };
        self.cold = ranges.map(is_cold).collect();
    }

    fn range(&self, number: u64) -> Range<u64> {
        let start = number.saturating_mul(STRETCH).min(self.size);
        start..start.saturating_add(STRETCH).min(self.size)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const PAGE: u64 = 4096;

    /// A file of three stretches and a bit, written out, so that its pages can be dropped; `None`
    /// on a file system that keeps them anyway.
    fn cold_file() -> Option<File> {
        let file = tempfile::tempfile().unwrap();
        let block = vec![7; usize::try_from(STRETCH).unwrap()];
        (0..3).for_each(|number| file.write_all_at(&block, number * STRETCH).unwrap());
        file.write_all_at(&block[..100], 3 * STRETCH).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        (resident(&file, 0, 4 * STRETCH) == 0).then_some(file)
    }

    fn resident(file: &File, start: u64, len: u64) -> u64 {
        resident_pages(file.as_fd(), start, len).unwrap()
    }

    fn read_all(file: &File, cache: &mut PageCache) -> usize {
        let size = file.metadata().unwrap().len();
        let mut buffer = Vec::new();
        let mut total = 0;
        loop {
            buffer.clear();
            let len = cache.read(file.as_fd(), &mut buffer, 65_536, total as u64, size).unwrap();
            if len == 0 {
                cache.leave(file.as_fd());
                return total;
            }
            total += len;
        }
    }

    /// Reads the second stretch into memory, then all of the file in both ways.
    #[test]
    fn cached_pages_stay_and_others_are_dropped() {
        let Some(file) = cold_file() else {
            return skip::test("this file system keeps pages that it is asked to drop");
        };
        let size = file.metadata().unwrap().len();
        let mut buffer = vec![0; usize::try_from(STRETCH).unwrap()];
        let watched = PageCache::Watched(Stretches::new(file.as_fd(), size));
        let chosen = PageCache::new(file.as_fd(), NO_DEVICE - 1, size);
        for mut cache in [watched, chosen] {
            file.read_exact_at(&mut buffer, STRETCH).unwrap();
            let before = resident(&file, 0, size);
            assert!(resident(&file, STRETCH, STRETCH) == STRETCH / PAGE);
            if let PageCache::Watched(stretches) = &mut cache {
                *stretches = Stretches::new(file.as_fd(), size);
            }
            assert_eq!(read_all(&file, &mut cache) as u64, size);
            assert_eq!(resident(&file, STRETCH, STRETCH), STRETCH / PAGE, "{cache:?}");
            let after = resident(&file, 0, size);
            assert!(after <= before, "{after} pages instead of {before}, {cache:?}");
        }
    }
}
