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

/// What the page cache has of a file, and what it is asked for.
trait Pages {
    /// Whether nothing of these bytes is cached. After an error they count as cached.
    fn are_missing(&self, start: u64, len: u64) -> bool;
    /// Advice only: it has no result.
    fn drop(&self, start: u64, len: NonZeroU64);
}

impl Pages for BorrowedFd<'_> {
    fn are_missing(&self, start: u64, len: u64) -> bool {
        resident_pages(*self, start, len).is_ok_and(|pages| pages == 0)
    }

    fn drop(&self, start: u64, len: NonZeroU64) {
        let _ = fadvise(*self, start, Some(len), Advice::DontNeed);
    }
}

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
        Self::of(&file, size)
    }

    /// The same for a size that the file has by now.
    pub(crate) const fn of_size(self, size: u64) -> Self {
        Self { size, ..self }
    }

    fn of(file: &impl Pages, size: u64) -> Self {
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
        self.reach(&file, position);
        append(file, out, most, position).map_err(|error| errno(&error))
    }

    /// To be called when no more of the file is read.
    pub(crate) fn leave(&mut self, file: BorrowedFd<'_>) {
        self.end_stretch(&file);
    }

    /// The next read is at `position`.
    fn reach(&mut self, file: &impl Pages, position: u64) {
        self.enter_stretch(file, position - position % STRETCH);
        if position >= self.dropped.saturating_add(STEP) {
            self.drop_to(file, position - position % STEP);
        }
    }

    fn enter_stretch(&mut self, file: &impl Pages, start: u64) {
        if start == self.start {
            return;
        }
        self.end_stretch(file);
        let is_next = start == self.start.saturating_add(STRETCH);
        let here = if is_next { self.is_cold[1] } else { is_cold(file, start, self.size) };
        let behind = is_cold(file, start.saturating_add(STRETCH), self.size);
        (self.start, self.is_cold, self.dropped) = (start, [here, behind], start);
    }

    fn end_stretch(&mut self, file: &impl Pages) {
        self.drop_to(file, self.start.saturating_add(STRETCH).min(self.size));
    }

    /// Drops the pages of the stretch up to here from the cache, if they came there by this
    /// reading.
    fn drop_to(&mut self, file: &impl Pages, end: u64) {
        if let (true, Some(len)) = (self.is_cold[0], NonZeroU64::new(end.saturating_sub(self.dropped))) {
            file.drop(self.dropped, len);
        }
        self.dropped = end;
    }
}

/// Whether nothing is cached of the stretch that begins here. One that is not there counts as
/// cached.
fn is_cold(file: &impl Pages, start: u64, size: u64) -> bool {
    let len = STRETCH.min(size.saturating_sub(start));
    len > 0 && file.are_missing(start, len)
}

/// The number of an error of the kernel.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
