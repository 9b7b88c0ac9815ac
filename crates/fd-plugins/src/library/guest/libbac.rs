//! What the distribution's libbac expects of the program that has loaded it: keys for what belongs
//! to a thread, its lock manager in each thread, and a handler for the signal of its timers. The
//! stock daemon sees to all of that when it starts, so plugins take it for granted.

use std::io;
use std::sync::OnceLock;

use libloading::os::unix::Library;

/// A function of the library without arguments.
type Plain = unsafe extern "C" fn();

/// What is called in each thread that calls the plugin: first and last.
static THREADS: OnceLock<(Plain, Plain)> = OnceLock::new();

/// Sets the library up, if it is this one, or if this one needs it. Once.
pub(super) fn set_up(library: &Library) {
    // SAFETY: functions of these names take nothing.
    let function = |name: &[u8]| unsafe { library.get::<Plain>(name) }.ok().map(|function| *function);
    let (Some(begin), Some(end)) = (function(b"_Z16lmgr_init_threadv\0"), function(b"_Z19lmgr_cleanup_threadv\0"))
    else {
        return;
    };
    if THREADS.set((begin, end)).is_err() {
        return;
    }
    // Without it the key is 0, which is another library's.
    if let Some(create) = function(b"_Z14create_jcr_keyv\0") {
        // SAFETY: the library's function, called once.
        unsafe { create() };
    }
    enter();
}

/// This thread is going to call the plugin.
pub(super) fn enter() {
    if let Some((begin, _)) = THREADS.get() {
        // SAFETY: the library's function, called once in each thread.
        unsafe { begin() };
    }
}

/// This thread calls the plugin no longer.
pub(super) fn leave() {
    if let Some((_, end)) = THREADS.get() {
        // SAFETY: as above.
        unsafe { end() };
    }
}

/// Lets the signal of the library's timers interrupt a call, and nothing else. Also for plugins
/// that bring such timers along.
pub(super) fn survive_timers() -> io::Result<()> {
    // SAFETY: it has numbers, addresses, and a set of signals that is empty.
    let mut action: libc::sigaction = unsafe { crate::library::values::zeroed() };
    action.sa_sigaction = interrupted as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler does nothing.
    if unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn interrupted(_signal: std::ffi::c_int) {}
