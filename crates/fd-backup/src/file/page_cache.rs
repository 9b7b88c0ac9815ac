//! Reads a file without evicting what the host's own programs have in the page cache.
//!
//! The file is watched stretch by stretch: if nothing of a stretch was cached before it is read,
//! its pages are dropped afterwards. Nothing is written out for that.
//!
//! Not by `RWF_DONTCACHE` (Linux 6.14): after a read of a part of a large folio the kernel drops
//! all of it, and the next read fetches the rest from the disk once more.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use fd_os::page_cache::{append, resident_pages};
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;

/// Length of a stretch in bytes. More than the kernel reads ahead, which is twice a window, doubled
/// for files that are read in order, where a host has windows of 8 MiB: a stretch is looked at when
/// the one before it is begun.
const STRETCH: u64 = 64 << 20;
/// So many bytes are dropped at a time: a multiple of any folio's size that divides [`STRETCH`].
const STEP: u64 = 8 << 20;

/// Which pages of a file came into memory by reading it.
#[derive(Debug)]
pub(crate) struct PageCache {
    size: u64,
    /// Where the stretch begins that is being read.
    start: u64,
    /// Whether nothing of it was cached, and nothing of the one behind it.
    is_cold: [bool; 2],
    /// Up to where the pages of the stretch are dropped, if they are.
    dropped: u64,
}

impl PageCache {
    /// For a regular file of this size in bytes.
    pub(crate) fn new(file: BorrowedFd<'_>, size: u64) -> Self {
        let is_cold = [0, STRETCH].map(|start| is_cold(file, start, size));
        Self { size, start: 0, is_cold, dropped: 0 }
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
        if position >= self.dropped.saturating_add(STEP) {
            self.drop_to(file, position - position % STEP);
        }
        append(file, out, most, position).map_err(|error| errno(&error))
    }

    /// What is read now is in the stretch that begins at `start`.
    fn reach(&mut self, file: BorrowedFd<'_>, start: u64) {
        if start == self.start {
            return;
        }
        self.leave(file);
        let is_next = start == self.start.saturating_add(STRETCH);
        let here = if is_next { self.is_cold[1] } else { is_cold(file, start, self.size) };
        let behind = is_cold(file, start.saturating_add(STRETCH), self.size);
        (self.start, self.is_cold, self.dropped) = (start, [here, behind], start);
    }

    /// To be called when no more of the file is read.
    pub(crate) fn leave(&mut self, file: BorrowedFd<'_>) {
        self.drop_to(file, self.start.saturating_add(STRETCH).min(self.size));
    }

    /// Drops the pages of the stretch up to here from the cache, if they came there by this
    /// reading.
    fn drop_to(&mut self, file: BorrowedFd<'_>, end: u64) {
        if let (true, Some(len)) = (self.is_cold[0], NonZeroU64::new(end.saturating_sub(self.dropped))) {
            // Advice only: its result doesn't matter.
            let _ = fadvise(file, self.dropped, Some(len), Advice::DontNeed);
        }
        self.dropped = end;
    }
}

/// Whether nothing is cached of the stretch that begins here. After an error it counts as cached,
/// as one does that is not there.
fn is_cold(file: BorrowedFd<'_>, start: u64, size: u64) -> bool {
    let len = STRETCH.min(size.saturating_sub(start));
    len > 0 && resident_pages(file, start, len).is_ok_and(|pages| pages == 0)
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

    /// A file of three stretches and a bit, one hole; `None` on a file system whose pages are not
    /// dropped.
    fn cold_file() -> Option<File> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * STRETCH + 100).unwrap();
        file.sync_all().unwrap();
        file.read_exact_at(&mut [0], 0).unwrap();
        let read = resident(&file, 0, PAGE);
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        ((read, resident(&file, 0, 4 * STRETCH)) == (1, 0)).then_some(file)
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
        // The kernel would read ahead what nothing wants, and it would count as wanted.
        fadvise(&file, 0, None, Advice::Random).unwrap();
        file.read_exact_at(&mut buffer, STRETCH).unwrap();
        fadvise(&file, 0, None, Advice::Normal).unwrap();
        let before = resident(&file, 0, size);
        assert_eq!((before, resident(&file, STRETCH, STRETCH)), (STRETCH / PAGE, STRETCH / PAGE));
        let mut cache = PageCache::new(file.as_fd(), size);
        assert_eq!(read_all(&file, &mut cache) as u64, size);
        assert_eq!(resident(&file, STRETCH, STRETCH), STRETCH / PAGE, "{cache:?}");
        let after = resident(&file, 0, size);
        assert!(after <= before, "{after} pages instead of {before}, {cache:?}");
    }
}
