//! The end of this process and of its process group, when the daemon ends.

use std::ffi::c_int;
use std::io;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, getpid};

/// Has this process and its group end when the daemon does. To be called again when the process
/// has become another user: the kernel forgets it then.
pub(super) fn end_with_the_daemon() -> io::Result<()> {
    // A signal that no plugin is likely to use. It can't be SIGKILL: the group is to end, too.
    let signal = libc::SIGRTMAX();
    // SAFETY: it has numbers, addresses, and a set of signals that is empty.
    let mut action: libc::sigaction = unsafe { crate::library::values::zeroed() };
    action.sa_sigaction = ends as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler does nothing that a handler may not.
    if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a number only.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn ends(_signal: c_int) {
    end();
}

/// Ends the group and with it this process, if the process leads the group: a process that a
/// plugin has forked does not.
pub(super) fn end() {
    // These three may be called in a handler.
    if getpgrp() == getpid() {
        // Of a group of its own it has the right to.
        let _ended = kill(Pid::from_raw(0), Signal::SIGKILL);
    }
}
