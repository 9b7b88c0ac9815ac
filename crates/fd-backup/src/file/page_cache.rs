//! Reads a file without evicting what the host's own programs have in the page cache.
//!
//! The file is watched stretch by stretch: if nothing of a stretch was cached before it is read,
//! its pages are dropped afterwards. Nothing is written out for that.
//!
//! Not by `RWF_DONTCACHE` (Linux 6.14): after a read of a part of a large folio the kernel drops
//! all of it, and the next read fetches the rest from the disk once more.

use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use fd_os::page_cache::{append, resident_pages};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

/// Length of a stretch in bytes, a multiple of any folio's size. Longer than what is read ahead: a
/// stretch is looked at when the one before it is begun.
const STRETCH: u64 = 16 << 20;

/// Which pages of a file came into memory by reading it.
#[derive(Debug)]
pub(crate) struct PageCache {
    size: u64,
    /// Where the stretch begins that is being read.
    start: u64,
    /// Whether nothing of it was cached, and nothing of the one behind it.
    is_cold: [bool; 2],
}

impl PageCache {
    /// For a regular file of this size in bytes.
    pub(crate) fn new(file: BorrowedFd<'_>, size: u64) -> Self {
        let mut cache = Self { size, start: 0, is_cold: [false; 2] };
        cache.is_cold = [0, STRETCH].map(|start| cache.is_cold_at(file, start));
        cache
    }

    /// One read at `position`, of at most `most` bytes, to the end of `out`.
    pub(crate) fn read(
        &mut self,
        file: BorrowedFd<'_>,
        out: &mut Vec<u8>,
        most: usize,
        position: u64,
    ) -> Result<usize, Errno> {
        self.reach(file, position - position % STRETCH);
        append(file, out, most, position).map_err(|error| errno(&error))
    }

    /// What is read now is in the stretch that begins at `start`.
    fn reach(&mut self, file: BorrowedFd<'_>, start: u64) {
        if start == self.start {
            return;
        }
        self.leave(file);
        let is_next = start == self.start.saturating_add(STRETCH);
        let is_cold = if is_next { self.is_cold[1] } else { self.is_cold_at(file, start) };
        self.is_cold = [is_cold, self.is_cold_at(file, start.saturating_add(STRETCH))];
        self.start = start;
    }

    /// Drops the present stretch from the cache if it came there by this reading. To be called when
    /// no more of the file is read.
    pub(crate) fn leave(&self, file: BorrowedFd<'_>) {
        let range = self.stretch(self.start);
        if self.is_cold[0] {
            // Advice only: its result doesn't matter.
            let _ = fadvise(file, range.start, NonZeroU64::new(range.end - range.start), Advice::DontNeed);
        }
    }

    /// Whether nothing is cached of the stretch that begins here. After an error it counts as
    /// cached.
    fn is_cold_at(&self, file: BorrowedFd<'_>, start: u64) -> bool {
        let range = self.stretch(start);
        !range.is_empty() && resident_pages(file, range.start, range.end - range.start).is_ok_and(|pages| pages == 0)
    }

    fn stretch(&self, start: u64) -> Range<u64> {
        let start = start.min(self.size);
        start..start.saturating_add(STRETCH).min(self.size)
    }
}

/// The number of an error of the kernel.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
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
        let mut buffer = Vec::new();
        let mut total = 0;
        loop {
            buffer.clear();
            let len = cache.read(file.as_fd(), &mut buffer, 65_536, total as u64).unwrap();
            if len == 0 {
                cache.leave(file.as_fd());
                return total;
            }
            total += len;
        }
    }

    #[test]
    fn cached_pages_stay_and_others_are_dropped() {
        let Some(file) = cold_file() else {
            return skip::test("this file system keeps pages that it is asked to drop");
        };
        let size = file.metadata().unwrap().len();
        let mut buffer = vec![0; usize::try_from(STRETCH).unwrap()];
        file.read_exact_at(&mut buffer, STRETCH).unwrap();
        let before = resident(&file, 0, size);
        assert!(resident(&file, STRETCH, STRETCH) == STRETCH / PAGE);
        let mut cache = PageCache::new(file.as_fd(), size);
        assert_eq!(read_all(&file, &mut cache) as u64, size);
        assert_eq!(resident(&file, STRETCH, STRETCH), STRETCH / PAGE, "{cache:?}");
        let after = resident(&file, 0, size);
        assert!(after <= before, "{after} pages instead of {before}, {cache:?}");
    }
}
