//! The functions that the plugin may call (`bFuncs`, reference 07 §3.5, §3.6).

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::convert::array;
use super::instance::{GENERAL, Kept, Shared};
use super::line::print;
use crate::api::host::{Change, FileEvent, Value};
use crate::library::abi::{AccurateAttributesPacket, Context, DaemonFunctions, FileEventPacket, SavePacketC, VERSION};
use crate::library::values::{c_text, from_save_head, text, to_stat};
use crate::library::variadic;
use crate::library::wire::{Bytes, Note, Reply, Request};
use crate::texts;

const OK: c_int = 0;
const ERROR: c_int = 2;
const SEEN: c_int = 5;

/// The variable of the JobId.
const JOB_ID: c_int = 1;
/// Variables that are no ordinary values.
const FILE_SEEN: c_int = 10;
const VSS_OBJECT: c_int = 11;
/// The last variable.
const LAST_VARIABLE: c_int = 29;
const INTERACTIVE: c_int = 22;
/// Number of the event of verifying data.
const VERIFY_STREAM: u32 = 27;
/// Number of [`fd_messages::MessageType::Fatal`].
const FATAL: i32 = 4;

/// The table that a plugin gets.
pub(super) fn table() -> DaemonFunctions {
    variadic::set_handlers(variadic::Handlers { register_events, job_message, debug_message });
    DaemonFunctions {
        size: u32::try_from(size_of::<DaemonFunctions>()).unwrap_or_default(),
        version: VERSION,
        register_events: variadic::register_events_address(),
        get_value,
        set_value,
        job_message: variadic::job_message_address(),
        debug_message: variadic::debug_message_address(),
        malloc,
        free,
        add_exclude,
        add_include,
        add_options,
        add_regex,
        add_wild,
        new_options,
        new_include,
        new_pre_include,
        check_changes,
        accept_file,
        accurate_attributes,
        add_plugin,
        add_file_event,
    }
}

/// The instance of a context that a plugin has handed over.
fn instance(context: *mut Context) -> Option<Arc<Shared>> {
    // SAFETY: a plugin hands over the context that it got, or null.
    unsafe { Shared::of_context(context) }
}

fn register_events(context: *mut Context, events: &[u32]) {
    if events.contains(&VERIFY_STREAM)
        && let Some(instance) = instance(context)
    {
        instance.note(Note::Verifies);
    }
}

fn job_message(context: *mut Context, kind: c_int, text: &[u8]) {
    match instance(context) {
        Some(instance) => instance.note(Note::Message(kind, text.into())),
        None => print(text),
    }
}

fn debug_message(context: *mut Context, level: c_int, (file, line): variadic::Place<'_>, text: &[u8]) {
    let Some(instance) = instance(context).or_else(Shared::of_this_thread) else { return print(text) };
    let job = match instance.snapshot(JOB_ID) {
        Some(Value::Number(job)) => job,
        _ => 0,
    };
    let place = [file, format!(":{line}-{job} ").as_bytes()].concat();
    // A negative level asks for the text alone.
    let place = if level < 0 { &[] } else { &*place };
    instance.note(Note::Debug(level, Bytes([place, text].concat())));
}

/// Stores a value where the plugin wants it.
///
/// # Safety
/// There is room for it.
unsafe fn store_number(number: i32, place: *mut c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { place.cast::<i32>().write_unaligned(number) };
}

/// Stores the address of a text where the plugin wants it.
///
/// # Safety
/// There is room for it.
unsafe fn store_address(address: *const c_char, place: *mut c_void) {
    // SAFETY: the caller vouches for it.
    unsafe { place.cast::<*const c_char>().write_unaligned(address) };
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn get_value(context: *mut Context, variable: c_int, place: *mut c_void) -> c_int {
    if place.is_null() {
        return ERROR;
    }
    let instance = instance(context);
    if let Some((_, kept)) = GENERAL.get().into_iter().flatten().find(|(known, _)| *known == variable) {
        match kept {
            // SAFETY: the plugin has room for a value of this variable.
            Kept::Number(number) => unsafe { store_number(*number, place) },
            Kept::Text(text) => {
                let address = text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
                // SAFETY: as above.
                unsafe { store_address(address, place) };
            }
        }
        return if instance.is_some() { OK } else { ERROR };
    }
    let Some(instance) = instance else { return ERROR };
    if variable == VSS_OBJECT {
        // SAFETY: as above.
        unsafe { store_address(std::ptr::null(), place) };
    }
    if variable == FILE_SEEN {
        return OK;
    }
    let value = match instance.ask(Request::Value(variable)) {
        Some(Reply::Value(value)) => value,
        Some(_) => None,
        None => instance.snapshot(variable),
    };
    match value {
        // SAFETY: as above.
        Some(Value::Number(number)) => unsafe { store_number(number, place) },
        Some(Value::Text(text)) => {
            let address = text.map_or(std::ptr::null(), |text| instance.keep(&text));
            // SAFETY: as above.
            unsafe { store_address(address, place) };
        }
        // One that does not exist is left as it is.
        None if !(1..=LAST_VARIABLE).contains(&variable) => {}
        None => return ERROR,
    }
    OK
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn set_value(context: *mut Context, variable: c_int, value: *mut c_void) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    if value.is_null() {
        return ERROR;
    }
    match variable {
        FILE_SEEN => {
            // SAFETY: the value of this variable is a text.
            let name = unsafe { text(value.cast()) }.unwrap_or_default();
            status(instance.ask(Request::MarkSeen(Bytes(name))))
        }
        INTERACTIVE if value as usize == 1 => status(instance.ask(Request::SetInteractive)),
        _ => OK,
    }
}

/// What a plugin gets for a reply.
#[expect(clippy::needless_pass_by_value, reason = "it is what asking returns")]
fn status(reply: Option<Reply>) -> c_int {
    match reply {
        Some(Reply::Status(code)) => code,
        _ => ERROR,
    }
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn malloc(_: *mut Context, _: *const c_char, _: c_int, size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { libc::malloc(size) }
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn free(_: *mut Context, _: *const c_char, _: c_int, memory: *mut c_void) {
    // SAFETY: the plugin gives back what it got from the function above.
    unsafe { libc::free(memory) };
}

/// A function that changes the FileSet.
///
/// # Safety
/// `item` points to a text.
unsafe fn change(context: *mut Context, change: Change, item: *const c_char, kind: c_int) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    // SAFETY: the caller vouches for it.
    let Some(item) = (unsafe { text(item) }) else { return ERROR };
    status(instance.ask(Request::Change(change, Bytes(item), u8::try_from(kind).unwrap_or(b' '))))
}

/// The functions that are one [`Change`] each: by a text, by a text and its kind, or by nothing.
macro_rules! changes {
    ($($what:ident $name:ident = $change:ident;)*) => { $(changes!(@$what $name, $change);)* };
    (@text $name:ident, $change:ident) => {
        /// # Safety
        /// The plugin calls it as the C interface says.
        unsafe extern "C" fn $name(context: *mut Context, item: *const c_char) -> c_int {
            // SAFETY: the plugin hands over a text.
            unsafe { change(context, Change::$change, item, 0) }
        }
    };
    (@kind $name:ident, $change:ident) => {
        /// # Safety
        /// The plugin calls it as the C interface says.
        unsafe extern "C" fn $name(context: *mut Context, item: *const c_char, kind: c_int) -> c_int {
            // SAFETY: as above.
            unsafe { change(context, Change::$change, item, kind) }
        }
    };
    (@nothing $name:ident, $change:ident) => {
        /// # Safety
        /// The plugin calls it as the C interface says.
        unsafe extern "C" fn $name(context: *mut Context) -> c_int {
            // SAFETY: an empty text.
            unsafe { change(context, Change::$change, c"".as_ptr(), 0) }
        }
    };
}

changes! {
    text add_exclude = Exclude;
    text add_include = Include;
    text add_options = Options;
    kind add_regex = Regex;
    kind add_wild = Wild;
    nothing new_options = NewOptions;
    nothing new_include = NewInclude;
    nothing new_pre_include = NewPreInclude;
    text add_plugin = Plugin;
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn check_changes(context: *mut Context, packet: *mut SavePacketC) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    // SAFETY: the plugin hands over a packet.
    let Some(packet) = (unsafe { packet.as_mut() }) else { return ERROR };
    if packet.fname.is_null() {
        instance.note(Note::Message(FATAL, texts::NO_NAME_TO_CHECK.into()));
        return ERROR;
    }
    // SAFETY: with right addresses.
    let file = Box::new(unsafe { from_save_head(packet) });
    match instance.ask(Request::CheckChanges(file)) {
        Some(Reply::Checked(code, delta_seq, found)) => {
            packet.delta_seq = delta_seq;
            packet.accurate_found = u8::from(found);
            code
        }
        _ => ERROR,
    }
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn accept_file(context: *mut Context, packet: *mut SavePacketC) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    // SAFETY: the plugin hands over a packet.
    let Some(packet) = (unsafe { packet.as_ref() }) else { return ERROR };
    // SAFETY: with right addresses.
    let file = Box::new(unsafe { from_save_head(packet) });
    status(instance.ask(Request::AcceptFile(file)))
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn accurate_attributes(context: *mut Context, packet: *mut AccurateAttributesPacket) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    // SAFETY: the plugin hands over a packet.
    let Some(packet) = (unsafe { packet.as_mut() }) else { return ERROR };
    // SAFETY: with a text in it.
    let Some(name) = (unsafe { text(packet.fname) }) else { return ERROR };
    let Some(Reply::Accurate(Some(found))) = instance.ask(Request::Accurate(Bytes(name))) else { return OK };
    packet.statp = to_stat(&found.stat);
    packet.chksum = match &found.checksum {
        // SAFETY: a copy for the plugin, which gives it back to `free`.
        Some(checksum) => unsafe { libc::strdup(c_text(checksum).as_ptr()) },
        None => std::ptr::null_mut(),
    };
    packet.delta_seq = found.delta_seq;
    packet.seen = u8::from(found.seen);
    SEEN
}

/// # Safety
/// The plugin calls it as the C interface says.
unsafe extern "C" fn add_file_event(context: *mut Context, packet: *mut FileEventPacket) -> c_int {
    let Some(instance) = instance(context) else { return ERROR };
    // SAFETY: the plugin hands over a packet.
    let Some(packet) = (unsafe { packet.as_ref() }) else { return ERROR };
    status(instance.ask(Request::FileEvent(FileEvent {
        file_index: packet.file_index,
        kind: packet.kind.cast_unsigned(),
        severity: packet.severity,
        source: array(&packet.source),
        description: array(&packet.description),
    })))
}
