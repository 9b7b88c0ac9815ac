//! Whether the kernel's clock is kept right.

use std::io;

/// Whether a time service keeps the system's clock synchronized, as far as it tells the kernel.
///
/// # Errors
/// The kernel's, where it does not tell, as in some containers.
pub fn is_synchronized() -> io::Result<bool> {
    // SAFETY: a struct of numbers, for which zeros are values; `modes` 0 changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to the struct, which lives during the call.
    let answer = unsafe { libc::adjtimex(&raw mut state) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(state.status & libc::STA_UNSYNC == 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_the_clock_is_told_or_refused_by_the_system() {
        match is_synchronized() {
            Ok(one) => assert_eq!(is_synchronized().unwrap(), one),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
