//! The daemon's three variadic functions (reference 07 §3.1, §3.5). Rust can't define such
//! functions: a few instructions make a `va_list` of the registers and the stack, and pass it on.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::abi::Context;
use super::printf::{self, Arguments};

/// Bytes of a formatted text, the final NUL included; longer ones are cut off.
const LONGEST_TEXT: usize = 2000;
/// The most events in one call.
const MOST_EVENTS: usize = 64;

/// A place in the plugin's source: its file and line.
pub(crate) type Place<'p> = (&'p [u8], c_int);

/// What the functions do, once their arguments are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handlers {
    /// `registerBaculaEvents`: the numbers.
    pub(crate) register_events: fn(*mut Context, &[u32]),
    /// `JobMessage`: its type and its text.
    pub(crate) job_message: fn(*mut Context, c_int, &[u8]),
    /// `DebugMessage`: its level, where it stands, and its text.
    pub(crate) debug_message: fn(*mut Context, c_int, Place<'_>, &[u8]),
}

static HANDLERS: OnceLock<Handlers> = OnceLock::new();

/// Sets what the functions do. Later calls change nothing.
pub(crate) fn set_handlers(handlers: Handlers) {
    HANDLERS.get_or_init(|| handlers);
}

/// The address of `registerBaculaEvents`.
pub(crate) fn register_events_address() -> *const c_void {
    register_events as *const c_void
}

/// The address of `JobMessage`.
pub(crate) fn job_message_address() -> *const c_void {
    job_message as *const c_void
}

/// The address of `DebugMessage`.
pub(crate) fn debug_message_address() -> *const c_void {
    debug_message as *const c_void
}

/// The arguments of a call: registers as System V's `reg_save_area` has them, then the `va_list`
/// for the arguments behind the named ones.
#[repr(C)]
struct Frame {
    general: [u64; 6],
    vectors: [[u64; 2]; 8],
    rest: VaList,
}

/// One element of System V's `va_list`.
#[repr(C)]
struct VaList {
    gp_offset: u32,
    fp_offset: u32,
    overflow: *mut c_void,
    registers: *mut c_void,
}

/// The body of a variadic function that has `$named` arguments of integers or pointers before the
/// others: stores a [`Frame`], and calls `$target` with its address.
macro_rules! variadic {
    ($named:literal, $target:ident) => {
        naked_asm!(
            "sub rsp, 200",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "mov [rsp + 24], rcx",
            "mov [rsp + 32], r8",
            "mov [rsp + 40], r9",
            "test al, al",
            "je 2f",
            "movaps [rsp + 48], xmm0",
            "movaps [rsp + 64], xmm1",
            "movaps [rsp + 80], xmm2",
            "movaps [rsp + 96], xmm3",
            "movaps [rsp + 112], xmm4",
            "movaps [rsp + 128], xmm5",
            "movaps [rsp + 144], xmm6",
            "movaps [rsp + 160], xmm7",
            "2:",
            "mov dword ptr [rsp + 176], {used}",
            "mov dword ptr [rsp + 180], 48",
            "lea rax, [rsp + 208]",
            "mov [rsp + 184], rax",
            "mov [rsp + 192], rsp",
            "mov rdi, rsp",
            "call {target}",
            "add rsp, 200",
            "xor eax, eax",
            "ret",
            used = const $named * 8,
            target = sym $target,
        )
    };
}

/// `registerBaculaEvents(ctx, …, 0)`.
///
/// # Safety
/// The caller passes these arguments, by the rules of C.
#[unsafe(naked)]
unsafe extern "C" fn register_events() {
    variadic!(1, register_events_frame)
}

/// `JobMessage(ctx, file, line, type, mtime, fmt, …)`.
///
/// # Safety
/// The caller passes these arguments, by the rules of C.
#[unsafe(naked)]
unsafe extern "C" fn job_message() {
    variadic!(6, job_message_frame)
}

/// `DebugMessage(ctx, file, line, level, fmt, …)`.
///
/// # Safety
/// The caller passes these arguments, by the rules of C.
#[unsafe(naked)]
unsafe extern "C" fn debug_message() {
    variadic!(5, debug_message_frame)
}

/// # Safety
/// `frame` is the shim's own, with the arguments of its caller.
unsafe extern "C" fn register_events_frame(frame: *mut Frame) {
    // SAFETY: the shim passes its own frame.
    let frame = unsafe { &mut *frame };
    let mut events = [0; MOST_EVENTS];
    let mut count = 0;
    for event in &mut events {
        // The caller ends its arguments with a 0, and nothing is read behind it.
        *event = (frame.rest.word() & 0xFFFF_FFFF) as u32;
        if *event == 0 {
            break;
        }
        count += 1;
    }
    if let (Some(handlers), Some(events)) = (HANDLERS.get(), events.get(..count)) {
        (handlers.register_events)(frame.context(), events);
    }
}

/// # Safety
/// `frame` is the shim's own, with the arguments of its caller.
unsafe extern "C" fn job_message_frame(frame: *mut Frame) {
    // SAFETY: the shim passes its own frame.
    let frame = unsafe { &mut *frame };
    // SAFETY: the sixth argument is the format of the rest.
    let text = unsafe { frame.text(5) };
    if let Some(handlers) = HANDLERS.get() {
        (handlers.job_message)(frame.context(), frame.number(3), &text);
    }
}

/// # Safety
/// `frame` is the shim's own, with the arguments of its caller.
unsafe extern "C" fn debug_message_frame(frame: *mut Frame) {
    // SAFETY: the shim passes its own frame.
    let frame = unsafe { &mut *frame };
    // SAFETY: the fifth argument is the format of the rest.
    let text = unsafe { frame.text(4) };
    // SAFETY: the second argument is the name of a file, or null.
    let file = unsafe { frame.file(1) };
    if let Some(handlers) = HANDLERS.get() {
        (handlers.debug_message)(frame.context(), frame.number(3), (file.as_slice(), frame.number(2)), &text);
    }
}

impl Frame {
    fn register(&self, index: usize) -> u64 {
        self.general.get(index).copied().unwrap_or_default()
    }

    fn context(&self) -> *mut Context {
        self.register(0) as *mut Context
    }

    /// An argument that is an `int`: the lower half of its register.
    fn number(&self, index: usize) -> c_int {
        let [first, second, third, fourth, ..] = self.register(index).to_le_bytes();
        c_int::from_le_bytes([first, second, third, fourth])
    }

    /// The last two parts of the name of a file in this register. A slash at its begin parts
    /// nothing.
    ///
    /// # Safety
    /// The register has the address of a text, or null.
    unsafe fn file(&self, index: usize) -> Vec<u8> {
        let name = self.register(index) as *const c_char;
        if name.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller vouches for the text.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let slashes = name.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        name.get(slashes.rev().nth(1).map_or(0, |at| at + 1)..).unwrap_or_default().to_vec()
    }

    /// The text that the format in this register makes of the rest. `%c` may put a NUL into it, and
    /// what is a text in C ends there.
    ///
    /// # Safety
    /// The register has the address of a format, or null, and the rest are its arguments.
    unsafe fn text(&mut self, index: usize) -> Vec<u8> {
        let format = self.register(index) as *const c_char;
        if format.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller vouches for the format.
        let format = unsafe { CStr::from_ptr(format) };
        let mut text = printf::format(format.to_bytes(), LONGEST_TEXT - 1, &mut self.rest);
        text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
        text
    }
}

impl VaList {
    /// The address of the next argument of eight bytes: in a general or a floating-point register,
    /// or on the stack.
    fn next(&mut self, general: bool) -> *const c_void {
        let (offset, end, step) = if general { (&mut self.gp_offset, 48, 8) } else { (&mut self.fp_offset, 176, 16) };
        if *offset < end {
            let place = self.registers.wrapping_byte_add(*offset as usize);
            *offset += step;
            return place;
        }
        let place = self.overflow;
        self.overflow = place.wrapping_byte_add(8);
        place
    }
}

impl Arguments for VaList {
    fn word(&mut self) -> u64 {
        let place = self.next(true);
        // SAFETY: the caller of the variadic function vouches for an argument here.
        unsafe { place.cast::<u64>().read() }
    }

    fn double(&mut self) -> f64 {
        let place = self.next(false);
        // SAFETY: as above.
        unsafe { place.cast::<f64>().read() }
    }

    fn long_double(&mut self) -> f64 {
        let place = self.overflow.wrapping_byte_add(self.overflow.align_offset(16));
        self.overflow = place.wrapping_byte_add(16);
        // SAFETY: as above; it has ten bytes, in sixteen.
        let mantissa = unsafe { place.cast::<u64>().read() };
        // SAFETY: as above.
        let exponent = unsafe { place.wrapping_byte_add(8).cast::<u16>().read() };
        let sign = if exponent & 0x8000 == 0 { 1.0 } else { -1.0 };
        let power = i32::from(exponent & 0x7FFF) - 16_383 - 63;
        #[expect(clippy::cast_precision_loss, reason = "a text of it has fewer digits")]
        let mantissa = mantissa as f64;
        sign * mantissa * 2.0_f64.powi(power)
    }

    fn text(&self, address: u64, most: usize) -> Vec<u8> {
        let start = address as *const c_char;
        // SAFETY: the caller vouches for a text here that ends with a NUL or has `most` bytes.
        let length = unsafe { libc::strnlen(start, most) };
        // SAFETY: these bytes were looked at.
        unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec()
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::multiple_unsafe_ops_per_block,
    reason = "small numbers; calls alike"
)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static SEEN: RefCell<Vec<(usize, c_int, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
    }

    fn note(context: *mut Context, number: c_int, text: &[u8]) {
        SEEN.with_borrow_mut(|seen| seen.push((context as usize, number, text.to_vec())));
    }

    type Variadic = unsafe extern "C" fn(usize, ...) -> c_int;

    fn variadic(address: *const c_void) -> Variadic {
        // SAFETY: the shims are variadic functions with a context before the rest.
        unsafe { std::mem::transmute::<*const c_void, Variadic>(address) }
    }

    #[test]
    fn arguments_in_registers_and_on_the_stack_are_read() {
        set_handlers(Handlers {
            register_events: |context, events| {
                let text: Vec<u8> = events.iter().map(|event| *event as u8).collect();
                note(context, 0, &text);
            },
            job_message: note,
            debug_message: |context, level, (file, line), text| {
                note(context, level, &[file, format!(":{line} ").as_bytes(), text].concat());
            },
        });
        let (register, job, debug) =
            (variadic(register_events_address()), variadic(job_message_address()), variadic(debug_message_address()));
        let format = c"%s %d %5.2f %llu %c %x %g %s";
        // SAFETY: arguments as the functions and the format want them.
        unsafe {
            register(7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0);
            job(
                8,
                c"file.c".as_ptr(),
                12 as c_int,
                7 as c_int,
                0_i64,
                format.as_ptr(),
                c"text".as_ptr(),
                -3 as c_int,
                2.5_f64,
                u64::MAX,
                c_int::from(b'x'),
                255 as c_int,
                0.125_f64,
                c"end".as_ptr(),
            );
            debug(
                9,
                c"/x/a/file.c".as_ptr(),
                12 as c_int,
                150 as c_int,
                c"%s and %.1f\n".as_ptr(),
                c"a".as_ptr(),
                1.5_f64,
            );
            debug(9, c"file.c".as_ptr(), 12 as c_int, 1 as c_int, c"%5000d".as_ptr(), 1 as c_int);
        }
        let seen = SEEN.take();
        assert_eq!(seen[0], (7, 0, (1..=12).collect()));
        assert_eq!(seen[1], (8, 7, b"text -3  2.50 18446744073709551615 x ff 0.125000 end".to_vec()));
        assert_eq!(seen[2], (9, 150, b"a/file.c:12 a and 1.5\n".to_vec()));
        assert_eq!(seen[3].2.len(), "file.c:12 ".len() + LONGEST_TEXT - 1);
    }
}
