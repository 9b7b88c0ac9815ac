//! What is got from the daemon, and given back.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::library::abi::{SavePacketC, VERSION};

const DIGEST: &CStr = c"digest";
/// Digests that the plugin has got and not given back.
static LENT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn of_context(_: *mut Context) -> c_int {
    0
}

extern "C" fn of_text(_: *mut Context, _: *const c_char) -> c_int {
    0
}

extern "C" fn of_item(_: *mut Context, _: *const c_char, _: c_int) -> c_int {
    0
}

extern "C" fn of_value(_: *mut Context, _: c_int, _: *mut c_void) -> c_int {
    0
}

extern "C" fn of_save(_: *mut Context, _: *mut SavePacketC) -> c_int {
    0
}

extern "C" fn of_event(_: *mut Context, _: *mut FileEventPacket) -> c_int {
    0
}

extern "C" fn malloc(_: *mut Context, _: *const c_char, _: c_int, _: usize) -> *mut c_void {
    std::ptr::null_mut()
}

extern "C" fn free(_: *mut Context, _: *const c_char, _: c_int, memory: *mut c_void) {
    if memory.cast_const() == DIGEST.as_ptr().cast() {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

extern "C" fn known(_: *mut Context, packet: *mut AccurateAttributesPacket) -> c_int {
    // SAFETY: the function under test hands over a packet.
    let packet = unsafe { &mut *packet };
    packet.chksum = DIGEST.as_ptr().cast_mut();
    LENT.fetch_add(1, Ordering::Relaxed);
    5
}

#[test]
fn the_digest_of_a_known_file_is_given_back() {
    let address: *const c_void = DIGEST.as_ptr().cast();
    assert!(keep(DaemonFunctions {
        size: u32::try_from(size_of::<DaemonFunctions>()).unwrap(),
        version: VERSION,
        register_events: address,
        get_value: of_value,
        set_value: of_value,
        job_message: address,
        debug_message: address,
        malloc,
        free,
        add_exclude: of_text,
        add_include: of_text,
        add_options: of_text,
        add_regex: of_item,
        add_wild: of_item,
        new_options: of_context,
        new_include: of_context,
        new_pre_include: of_context,
        check_changes: of_save,
        accept_file: of_save,
        accurate_attributes: known,
        add_plugin: of_text,
        add_file_event: of_event,
    }));
    // SAFETY: none of the functions above looks at the context.
    let mut daemon = unsafe { Daemon::of(std::ptr::null_mut()) };
    let known = daemon.accurate_attributes(b"/file").unwrap();
    assert_eq!((known.checksum.as_deref(), LENT.load(Ordering::Relaxed)), (Some(&b"digest"[..]), 0));
}
