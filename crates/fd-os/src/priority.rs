//! How much of the processors and disks the calling thread gets beside others. Threads that it
//! starts begin with the same.

use std::io;

use fd_messages::IoPriority;

const CLASS_SHIFT: libc::c_long = 13;
const WHO_PROCESS: libc::c_long = 1;
const THIS_THREAD: libc::c_long = 0;
const BEST_EFFORT: libc::c_long = 2;
const IDLE: libc::c_long = 3;

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

/// Sets the calling thread's nice value, -20 to 19; others of the process keep theirs.
///
/// # Errors
/// What the kernel says: only root may go below the present value.
pub fn set_nice(value: i32) -> io::Result<()> {
    set_nice_of(0, value)
}

/// Sets the nice value of a thread of this process, -20 to 19. The caller knows that the thread has
/// not ended: its number may be another one's then.
///
/// # Errors
/// What the kernel says: only root may go below the present value.
pub fn set_nice_of(thread: i32, value: i32) -> io::Result<()> {
    // SAFETY: takes three numbers.
    done(unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, thread, value) })
}

/// Sets the calling thread's share of the disks.
///
/// # Errors
/// What the kernel says.
pub fn set_io_priority(priority: IoPriority) -> io::Result<()> {
    let value = match priority {
        IoPriority::Unset => 0,
        IoPriority::BestEffort(level) => (BEST_EFFORT << CLASS_SHIFT) | libc::c_long::from(level.min(7)),
        IoPriority::Idle => IDLE << CLASS_SHIFT,
    };
    // SAFETY: takes three numbers.
    done(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, THIS_THREAD, value) })
}

/// The calling thread's share of the disks.
///
/// # Errors
/// What the kernel says.
pub fn io_priority() -> io::Result<IoPriority> {
    // SAFETY: takes two numbers.
    let raw = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, THIS_THREAD) };
    done(raw.min(0))?;
    let level = u8::try_from(raw & 7).unwrap_or(7);
    Ok(match raw >> CLASS_SHIFT {
        BEST_EFFORT => IoPriority::BestEffort(level),
        IDLE => IoPriority::Idle,
        _ => IoPriority::Unset,
    })
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
        let other = thread::spawn(move || {
            set_nice((before + 3).min(19)).unwrap();
            set_io_priority(IoPriority::BestEffort(6)).unwrap();
            let child = thread::spawn(|| (nice().unwrap(), io_priority().unwrap()));
            assert_eq!((nice().unwrap(), io_priority().unwrap()), child.join().unwrap());
            set_io_priority(IoPriority::Idle).unwrap();
            (nice().unwrap(), io_priority().unwrap())
        });
        assert_eq!(other.join().unwrap(), ((before + 3).min(19), IoPriority::Idle));
        assert_eq!(nice().unwrap(), before);
    }
}
