//! Memory that has been freed, and that the C library keeps for later.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::page_cache::page_size;

/// As much freed memory as an area of the C library may keep at its end, bytes. There is an area
/// for about every thread of the largest job so far.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 1 << 18;
/// As large as a block may be that comes from such an area, bytes. A larger one, as the pieces of a
/// backup are, goes back to the system when it is freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 1 << 18;
/// So much is worth the time to give it back, bytes.
const MUCH: u64 = 8 << 20;

/// The least that the process had since memory was given back last, bytes.
static LEAST: AtomicU64 = AtomicU64::new(0);

/// Lets the C library keep little of what is freed. Left to itself it keeps up to 64 MiB in each of
/// eight areas for every processor, and [`give_back`] does not reach the ends of these areas. To be
/// called before there is a second thread.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for (number, bytes) in [(libc::M_TRIM_THRESHOLD, KEPT), (libc::M_TOP_PAD, KEPT), (libc::M_MMAP_THRESHOLD, LARGE)] {
        // SAFETY: `mallopt` only sets a number of the allocator; no other thread is there yet.
        unsafe { libc::mallopt(number, bytes) };
    }
}

/// Gives freed memory back to the system, where the C library can do so and where there is much of
/// it: where the process has 8 MiB more than it has had since the last time. To be called when
/// something has ended. It may take some milliseconds, and the next job pays again for what it
/// needs: a small one leaves everything where it is.
pub fn give_back() {
    let Some(resident) = resident() else { return };
    if resident.saturating_sub(LEAST.fetch_min(resident, Ordering::Relaxed)) < MUCH {
        return;
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time by any thread; it only touches memory that is
    // free.
    unsafe {
        libc::malloc_trim(0)
    };
    if let Some(resident) = self::resident() {
        LEAST.store(resident, Ordering::Relaxed);
    }
}

/// Memory that the process has, in bytes; `None` where the system does not say.
fn resident() -> Option<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(u64::try_from(page_size()).ok()?)
}
