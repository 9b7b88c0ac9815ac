//! How much of the processors a thread gets beside others. Threads that it starts begin with the
//! same.

use std::io;

/// The calling thread's nice value, -20 to 19.
///
/// # Errors
/// What the kernel says.
pub fn nice() -> io::Result<i32> {
    // SAFETY: takes three numbers and returns 1 to 40, so that errors can be told from values.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    match i32::try_from(raw) {
        Ok(value) if value > 0 => Ok(20 - value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the nice value of a thread of this process, -20 to 19; 0 is the calling thread. The caller
/// knows that the thread has not ended: its number may be another one's then.
///
/// # Errors
/// What the kernel says: only root may go below the present value.
pub fn set_nice_of(thread: i32, value: i32) -> io::Result<()> {
    // SAFETY: takes three numbers.
    done(unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, thread, value) })
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_changes_itself_and_those_that_it_starts() {
        let before = nice().unwrap();
        let lower = (before + 3).min(19);
        let other = thread::spawn(move || {
            set_nice_of(0, lower).unwrap();
            (nice().unwrap(), thread::spawn(|| nice().unwrap()).join().unwrap())
        });
        assert_eq!(other.join().unwrap(), (lower, lower));
        assert_eq!(nice().unwrap(), before);
    }
}
