//! What the distribution's libraries expect of the program that loads them (reference 07 §3.9):
//! five variables and three functions, which nothing here uses; and a function of theirs that is
//! looked for here first.
//!
//! The program exports them (`bacula-fd/build.rs`). They are of use in a plugin host only.
#![allow(non_upper_case_globals, reason = "C's names")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::instance::Shared;
use crate::bpipe::shell::check_program;

/// Memory of zeros that C may change.
#[repr(C, align(64))]
struct Zeros<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: Rust never reads or writes it.
unsafe impl<const N: usize> Sync for Zeros<N> {}

impl<const N: usize> Zeros<N> {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; N]))
    }
}

/// More than any of the structures has.
const MUCH: usize = 64 << 10;

// SAFETY: no other library has a variable of this name.
#[unsafe(no_mangle)]
static r_first: Zeros<64> = Zeros::new();
// SAFETY: as above.
#[unsafe(no_mangle)]
static r_last: Zeros<64> = Zeros::new();
// SAFETY: as above.
#[unsafe(no_mangle)]
static res_head: Zeros<64> = Zeros::new();
// SAFETY: as above.
#[unsafe(no_mangle)]
static res_all: Zeros<MUCH> = Zeros::new();
// SAFETY: as above.
#[unsafe(no_mangle)]
static resources: Zeros<MUCH> = Zeros::new();

// SAFETY: no other library has a function of this name.
#[unsafe(export_name = "_Z13dump_resourceiP3RESPFvPvPKczES1_")]
extern "C" fn dump_resource() {}
// SAFETY: as above.
#[unsafe(export_name = "_Z13free_resourceP3RESi")]
extern "C" fn free_resource() {}
// SAFETY: as above.
#[unsafe(export_name = "_Z13save_resourceP6CONFIGiP8RES_ITEMi")]
extern "C" fn save_resource() -> c_int {
    1
}

/// `open_bpipe(program, wait, mode, environment)` of the distribution's library.
type OpenBpipe = unsafe extern "C" fn(*mut c_char, c_int, *const c_char, *mut *mut c_char) -> *mut c_void;

static OPEN_BPIPE: OnceLock<OpenBpipe> = OnceLock::new();

/// Which function starts programs, once the library with it is loaded.
pub(super) fn set_open_bpipe(function: OpenBpipe) {
    OPEN_BPIPE.get_or_init(|| function);
}

/// Starts a program for a plugin, if *Allowed Script Directories* of its job take it: the library
/// itself looks for the job where there is none.
///
/// # Safety
/// The plugin calls it as the library's own.
// SAFETY: it stands in for the library's function on purpose.
#[unsafe(export_name = "_Z10open_bpipePciPKcPS_")]
unsafe extern "C" fn open_bpipe(
    program: *mut c_char,
    wait: c_int,
    mode: *const c_char,
    environment: *mut *mut c_char,
) -> *mut c_void {
    let Some(open) = OPEN_BPIPE.get() else { return std::ptr::null_mut() };
    if !program.is_null() {
        // SAFETY: a text of the plugin.
        let line = unsafe { CStr::from_ptr(program) }.to_bytes();
        if let Err(number) = Shared::allowed_here(|allowed| check_program(line, allowed)) {
            // SAFETY: it takes nothing.
            let place = unsafe { libc::__errno_location() };
            // SAFETY: the error number of this thread.
            unsafe { *place = number };
            return std::ptr::null_mut();
        }
    }
    // SAFETY: the library's function, with what the plugin has passed.
    unsafe { open(program, wait, mode, environment) }
}

/// Names what is above, so that it is in the program.
pub(super) fn keep() -> usize {
    let addresses = [
        (&raw const r_first).cast::<c_void>(),
        (&raw const r_last).cast(),
        (&raw const res_head).cast(),
        (&raw const res_all).cast(),
        (&raw const resources).cast(),
        dump_resource as *const c_void,
        free_resource as *const c_void,
        save_resource as *const c_void,
        open_bpipe as *const c_void,
    ];
    addresses.into_iter().filter(|address| !std::hint::black_box(*address).is_null()).count()
}
