//! Memory that has been freed, and that the C library keeps for later.

/// As much freed memory as an area of the C library may keep at its end, and as large as a piece may be that comes from
/// one, bytes.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 1 << 20;

/// Lets the C library keep little of what is freed. Left to itself it keeps up to 64 MiB in each of eight areas for every
/// processor, and [`give_back`] does not reach the ends of these areas. To be called before there is a second thread.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for number in [libc::M_TRIM_THRESHOLD, libc::M_MMAP_THRESHOLD] {
        // SAFETY: `mallopt` only sets a number of the allocator; no other thread is there yet.
        unsafe { libc::mallopt(number, KEPT) };
    }
}

/// Gives freed memory back to the system, where the C library can do so. Takes some milliseconds; to be called after
/// much has been freed.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time by any thread; it only touches memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
}
