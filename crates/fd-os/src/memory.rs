//! Memory that has been freed, and that the C library keeps for later.

/// Gives freed memory back to the system, where the C library can do so. Takes some milliseconds; to be called after
/// much has been freed.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time by any thread; it only touches memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
}
