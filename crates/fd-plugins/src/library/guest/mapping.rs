//! The memory that an instance shares with the daemon.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use crate::library::wire::{SHARED, marks};

/// Memory that the daemon reads and writes as a file.
#[derive(Debug)]
pub(super) struct Mapping(NonNull<u8>);

// SAFETY: it is plain memory, used through its address only.
unsafe impl Sync for Mapping {}
// SAFETY: as above.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: a new mapping, wherever the system wants it; only we could shorten the file.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// An address inside of it.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < SHARED, "inside the shared memory");
        // SAFETY: the callers' offsets are constants and slots below its end.
        unsafe { self.0.as_ptr().add(offset.min(SHARED - 1)) }
    }

    /// Where a deadly signal is noted.
    pub(super) fn fault_mark(&self) -> *mut u8 {
        self.at(marks::FAULT)
    }

    /// Whether the daemon wants nothing called ahead any more.
    pub(super) fn is_halted(&self) -> bool {
        // SAFETY: a byte of the first page.
        unsafe { self.at(marks::HALT).read_volatile() != 0 }
    }

    /// Has seen that.
    pub(super) fn take_halt(&self) {
        // SAFETY: as above.
        unsafe { self.at(marks::HALT).write_volatile(0) };
    }

    /// Notes which function runs.
    pub(super) fn mark(&self, function: u8) {
        // SAFETY: a byte of the first page, which only this side writes.
        unsafe { self.at(marks::FUNCTION).write_volatile(function) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody uses it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), SHARED) };
    }
}
