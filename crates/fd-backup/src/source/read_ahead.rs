//! Has the kernel read a large file ahead while its reads wait for storage.
//!
//! The kernel's own window is 128 or 256 KiB: where an answer takes 5 ms, that is 25 MB/s at best.
//! With 8 MiB on their way, many requests are answered at a time. Files in memory, and those that
//! come fast enough, are left to the kernel.

use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fd_os::page_cache::resident_pages;
use rustix::fs::{Advice, fadvise};

/// The kernel reads no more than that for one request of ours.
const STEP: u64 = 128 << 10;
/// Reads are judged by so many bytes: enough that one late answer of a busy host doesn't count.
const JUDGED: u64 = 1 << 20;
/// They are late if these bytes take longer: 64 MB/s. What is faster the kernel reads better alone.
const LATE: Duration = Duration::from_millis(16);
/// The largest window in bytes.
const WINDOW: u64 = 8 << 20;
/// All windows of the process together, about, but each has at least a sixteenth of [`WINDOW`].
const ALL_WINDOWS: u64 = 64 << 20;
/// Any page size divides it.
const PAGES: u64 = 64 << 10;

/// How many files are read ahead now.
static FILES: AtomicU64 = AtomicU64::new(0);

/// How a file is read ahead.
#[derive(Default, Debug)]
pub(crate) struct ReadAhead {
    /// Bytes since the last judgment, and their time.
    bytes: u64,
    time: Duration,
    /// Up to where the kernel was asked to read.
    window: Option<Window>,
}

#[derive(Debug)]
struct Window {
    end: u64,
}

impl Drop for Window {
    fn drop(&mut self) {
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ReadAhead {
    /// A read has given so many bytes.
    pub(crate) fn note(&mut self, bytes: usize, time: Duration) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.time = self.time.saturating_add(time);
    }

    /// Before a read at `position` of a file of this size: asks for what is missing of the window,
    /// if the file is read ahead.
    pub(crate) fn ask(&mut self, file: BorrowedFd<'_>, position: u64, size: u64) {
        self.judge(file, position, size);
        let Some(window) = &mut self.window else { return };
        let files = FILES.load(Ordering::Relaxed).max(1);
        let len = (ALL_WINDOWS / files).clamp(WINDOW / 16, WINDOW);
        if window.end > position.saturating_add(len / 2) || window.end >= size {
            return;
        }
        window.end = window.end.max(position);
        let end = position.saturating_add(len).min(size);
        while window.end < end {
            // Advice only: its result doesn't matter.
            let _ = fadvise(file, window.end, NonZeroU64::new(STEP), Advice::WillNeed);
            window.end = window.end.saturating_add(STEP);
        }
    }

    /// Whether it is read ahead from now on.
    fn judge(&mut self, file: BorrowedFd<'_>, position: u64, size: u64) {
        if self.window.is_some() || self.bytes < JUDGED {
            return;
        }
        let is_late = self.time >= LATE;
        (self.bytes, self.time) = (0, Duration::ZERO);
        // A busy processor makes reads late, too.
        if is_late && size.saturating_sub(position) > STEP && !is_resident(file, position, size) {
            FILES.fetch_add(1, Ordering::Relaxed);
            self.window = Some(Window { end: position });
        }
    }
}

/// Whether most of what comes next is in memory.
fn is_resident(file: BorrowedFd<'_>, position: u64, size: u64) -> bool {
    let start = position - position % PAGES;
    let len = WINDOW.min(size.saturating_sub(start));
    resident_pages(file, start, len).is_ok_and(|pages| pages.saturating_mul(4096) >= len / 2)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn only_late_reads_of_what_is_not_in_memory_begin_a_window() {
        let file = tempfile::tempfile().unwrap();
        let size = 100 << 20;
        file.set_len(size).unwrap();
        let mut ahead = ReadAhead::default();
        let read = |ahead: &mut ReadAhead, time| {
            (0..16).for_each(|_| ahead.note(65_536, time));
            ahead.judge(file.as_fd(), 16 * 65_536, size);
            ahead.window.is_some()
        };
        ahead.judge(file.as_fd(), 0, size);
        assert!(ahead.window.is_none(), "nothing is known yet");
        assert!(!read(&mut ahead, Duration::from_micros(300)), "fast");
        assert!(!read(&mut ahead, Duration::from_micros(900)));
        assert!(read(&mut ahead, Duration::from_millis(5)));
        ahead.ask(file.as_fd(), 16 * 65_536, size);
        let end = ahead.window.as_ref().unwrap().end;
        assert!((WINDOW / 16..=WINDOW).contains(&(end - 16 * 65_536)), "{end}");
        ahead.ask(file.as_fd(), 17 * 65_536, size);
        assert_eq!(ahead.window.as_ref().unwrap().end, end, "half of the window is enough");
    }

    #[test]
    fn what_is_in_memory_is_not_asked_for() {
        // In memory for sure: a disk's page may be freed at any time.
        let file = rustix::fs::memfd_create("data", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&file, &vec![7; 2 << 20]).unwrap();
        let mut ahead = ReadAhead::default();
        ahead.note(1 << 20, Duration::from_secs(1));
        ahead.judge(file.as_fd(), 1 << 20, 2 << 20);
        assert!(ahead.window.is_none());
    }
}
