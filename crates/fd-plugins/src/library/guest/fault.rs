//! Noting for the daemon which instance's thread has received a deadly signal.

use std::cell::Cell;
use std::ffi::c_int;

thread_local! {
    /// Where this thread notes it; null for a thread that works for no instance.
    static MARK: Cell<*mut u8> = const { Cell::new(std::ptr::null_mut()) };
}

/// From now on this thread notes it here; null: no longer.
pub(super) fn note_at(mark: *mut u8) {
    MARK.set(mark);
}

/// Has deadly signals noted.
pub(super) fn watch() {
    const DEADLY: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
    // SAFETY: it has numbers, addresses, and a set of signals that is empty.
    let mut action: libc::sigaction = unsafe { crate::library::values::zeroed() };
    action.sa_sigaction = note as *const () as libc::sighandler_t;
    // On the stack that each thread has for it: the ordinary one may be full. Only once: what the
    // signal does by itself follows when the handler returns.
    action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
    for signal in DEADLY {
        // SAFETY: the handler does nothing that a handler may not.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// The handler. The signal comes again when it returns, also if the plugin has raised it itself.
extern "C" fn note(signal: c_int) {
    let mark = MARK.get();
    if !mark.is_null() {
        // SAFETY: a byte of the instance's memory, which is there as long as its thread.
        unsafe { mark.write_volatile(1) };
    }
    // SAFETY: it may be called in a handler; until this one returns the signal is blocked.
    unsafe { libc::raise(signal) };
}
