//! What a daemon's start needs and the standard library can't do: going to the background, keeping
//! one capability.
//!
//! No policy: when this is called is up to the program.

use std::fs;
use std::io;

/// Which of the two processes goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The one that was started; it should end with status 0 at once.
    Starter,
    /// Its child, in a session of its own, without a terminal.
    Daemon,
}

/// `CAP_DAC_READ_SEARCH`: reading every file and directory (capabilities(7)).
const DAC_READ_SEARCH: u32 = 1 << 2;
/// `_LINUX_CAPABILITY_VERSION_3`.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Forks, and makes the child a daemon: a session of its own, every descriptor from `first_closed`
/// up closed, standard input, output and error read-only on `/dev/null` as far as they are among
/// these, and at least the bits 026 in the umask. The working directory stays (reference 06 §5.1).
///
/// To be called at the start of the program, before there is a second thread and before anything is
/// opened: the child has only the calling thread, and loses the descriptors.
///
/// # Errors
/// When there are other threads already, or the system refuses to fork or to open `/dev/null`.
pub fn into_background(first_closed: u32) -> io::Result<Role> {
    if fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        return Err(io::Error::other("there are other threads already"));
    }
    // SAFETY: fork has no arguments. The process has one thread (checked where /proc is mounted,
    // else promised by the caller), so that no lock is held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        _ => return Ok(Role::Starter),
    }
    // SAFETY: setsid has no arguments. It can't fail in a child that has just been forked.
    unsafe { libc::setsid() };
    // SAFETY: nothing in this process owns a descriptor yet, by the caller's promise.
    unsafe { close(first_closed, u32::MAX) };
    for _ in first_closed..3 {
        // SAFETY: the path is a C string that lives for ever; the lowest free descriptors are those
        // just closed.
        if unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: umask takes and returns a number and can't fail.
    let old = unsafe { libc::umask(0o077) };
    // SAFETY: as above.
    unsafe { libc::umask(old | 0o026) };
    Ok(Role::Daemon)
}

/// Closes the descriptors with the numbers from `first` to `last`. Not by the C library's function
/// of that name, which those before 2.34 do not have.
///
/// # Safety
/// Nothing in this process may own one of them.
pub unsafe fn close(first: u32, last: u32) {
    // SAFETY: three numbers; closing descriptors touches no memory.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
    if closed == 0 {
        return;
    }
    // A kernel before 5.9: one by one.
    for descriptor in first..=last.min(1023) {
        // SAFETY: as above; descriptors that are not open give an error that does not matter.
        unsafe { libc::close(libc::c_int::try_from(descriptor).unwrap_or(-1)) };
    }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Keeps exactly `CAP_DAC_READ_SEARCH`, permitted and effective, in the calling thread and those
/// that it starts.
///
/// # Errors
/// The system's, usually `EPERM` when the capability is not permitted any more.
pub fn keep_only_read_capability() -> io::Result<()> {
    set_read_capability(0)
}

/// Has the programs that this thread starts keep `CAP_DAC_READ_SEARCH`, and no other capability.
/// The thread must have called, or have been started behind, [`keep_only_read_capability`].
///
/// # Errors
/// The system's, usually `EPERM` when the capability is not permitted.
pub fn pass_on_read_capability() -> io::Result<()> {
    set_read_capability(DAC_READ_SEARCH)?;
    let (raise, number) = (libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong, DAC_READ_SEARCH.trailing_zeros());
    let none: libc::c_ulong = 0;
    // SAFETY: numbers only.
    let result = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, libc::c_ulong::from(number), none, none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_read_capability(inheritable: u32) -> io::Result<()> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let kept = CapabilityData { effective: DAC_READ_SEARCH, permitted: DAC_READ_SEARCH, inheritable };
    let none = CapabilityData { effective: 0, permitted: 0, inheritable: 0 };
    let data = [kept, none];
    // SAFETY: version 3 reads one header and two data structs of exactly these layouts; both live
    // during the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_threads_does_not_fork() {
        // The test harness runs this test in a thread of its own.
        let error = into_background(0).unwrap_err();
        assert!(error.to_string().contains("threads"), "{error}");
    }
}
