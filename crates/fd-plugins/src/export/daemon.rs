//! The daemon's functions as a [`Host`] (reference 07 §3.5, §3.6).

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use fd_messages::MessageType;

use super::convert::{Kept, save_for_daemon};
use crate::api::call::{Gone, Status};
use crate::api::host::{AccurateAttributes, Change, FileEvent, FileSetChange, Host, JobFacts, Value, Variable};
use crate::api::packets::SavePacket;
use crate::library::abi::{AccurateAttributesPacket, Context, DaemonFunctions, FileEventPacket};
use crate::library::values::{from_stat, text};

/// What the daemon has given to the library.
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// The daemon's functions.
struct Functions(DaemonFunctions);

// SAFETY: it holds addresses of functions, which any thread may call.
unsafe impl Send for Functions {}
// SAFETY: the same.
unsafe impl Sync for Functions {}

type RegisterEvents = unsafe extern "C" fn(*mut Context, ...) -> c_int;
type JobMessage = unsafe extern "C" fn(*mut Context, *const c_char, c_int, c_int, i64, *const c_char, ...) -> c_int;
type DebugMessage = unsafe extern "C" fn(*mut Context, *const c_char, c_int, c_int, *const c_char, ...) -> c_int;

const SOURCE: *const c_char = c"plugin".as_ptr();
const FORMAT: *const c_char = c"%s".as_ptr();

/// Keeps the daemon's functions. Whether they are complete.
pub(super) fn keep(functions: DaemonFunctions) -> bool {
    let variadic = [functions.register_events, functions.job_message, functions.debug_message];
    variadic.iter().all(|address| !address.is_null()) && FUNCTIONS.set(Functions(functions)).is_ok()
}

/// The daemon during a call in this context, and what it says of its job.
#[derive(Debug)]
pub(super) struct Daemon {
    context: *mut Context,
}

// SAFETY: the daemon's functions may be called by any thread with a context, for as long as it
// lives; and this lives during a call only.
unsafe impl Send for Daemon {}
// SAFETY: the same.
unsafe impl Sync for Daemon {}

impl Daemon {
    /// The daemon that has handed over this context.
    ///
    /// # Safety
    /// The context is the daemon's, and lives longer than this.
    pub(super) unsafe fn of(context: *mut Context) -> Self {
        Self { context }
    }

    /// Asks for the data of the files that a job verifies (event 27).
    pub(super) fn register_for_verify(&mut self) {
        const VERIFY_STREAM: c_int = 27;
        let Some(Functions(functions)) = FUNCTIONS.get() else { return };
        // SAFETY: it is the address of a function with these arguments (reference 07 §3.5).
        let register: RegisterEvents = unsafe { std::mem::transmute(functions.register_events) };
        // SAFETY: the list ends with 0.
        unsafe { register(self.context, VERIFY_STREAM, 0 as c_int) };
    }

    /// Says that the plugin can't be called any more. Returns the number that the daemon gets.
    pub(super) fn report(&mut self, gone: &Gone) -> c_int {
        self.message(MessageType::Error, &gone.text);
        Status::Error.code()
    }

    /// Calls one of the daemon's functions with this context.
    fn call(&self, call: impl FnOnce(&DaemonFunctions, *mut Context) -> c_int) -> Status {
        FUNCTIONS.get().map_or(Status::Error, |Functions(functions)| Status::from_code(call(functions, self.context)))
    }
}

fn c_text(text: &[u8]) -> CString {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(text).unwrap_or_default()
}

/// What kind of value a variable has.
fn is_text(variable: Variable) -> bool {
    matches!(
        variable,
        Variable::FdName
            | Variable::Client
            | Variable::JobName
            | Variable::WorkingDir
            | Variable::PluginDir
            | Variable::Where
            | Variable::RegexWhere
            | Variable::ExePath
            | Variable::Version
            | Variable::DistName
            | Variable::PrevJobName
            | Variable::SysConfigPath
    )
}

impl JobFacts for Daemon {
    fn value(&self, variable: Variable) -> Option<Value> {
        let Functions(functions) = FUNCTIONS.get()?;
        if is_text(variable) {
            let mut found: *mut c_char = std::ptr::null_mut();
            // SAFETY: a variable of this kind is stored as an address.
            let status = unsafe { (functions.get_value)(self.context, variable.number(), (&raw mut found).cast()) };
            // SAFETY: it is a text of the daemon, which lives during the call.
            return (status == 0).then(|| Value::Text(unsafe { text(found) }));
        }
        let mut found: i32 = 0;
        // SAFETY: a variable of this kind is stored as a number of 32 bits.
        let status = unsafe { (functions.get_value)(self.context, variable.number(), (&raw mut found).cast()) };
        (status == 0).then_some(Value::Number(found))
    }

    fn is_canceled(&self) -> bool {
        matches!(self.value(Variable::IsCanceled), Some(Value::Number(1..)))
    }

    /// The interface has no such list: a plugin from outside starts programs at its own discretion.
    fn allowed_programs(&self) -> &[Vec<u8>] {
        &[]
    }

    fn debug(&self, level: i32, text: &[u8]) {
        let Some(Functions(functions)) = FUNCTIONS.get() else { return };
        // SAFETY: it is the address of a function with these arguments (reference 07 §3.5).
        let debug: DebugMessage = unsafe { std::mem::transmute(functions.debug_message) };
        let text = c_text(text);
        // SAFETY: the format has one text.
        unsafe { debug(self.context, SOURCE, 0, level, FORMAT, text.as_ptr()) };
    }

    fn set_interactive(&self) {
        const INTERACTIVE: c_int = 22;
        let Some(Functions(functions)) = FUNCTIONS.get() else { return };
        // SAFETY: this variable takes the value itself in place of an address.
        unsafe { (functions.set_value)(self.context, INTERACTIVE, std::ptr::without_provenance_mut::<c_void>(1)) };
    }
}

impl Host for Daemon {
    fn facts(&self) -> &dyn JobFacts {
        self
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        let Some(Functions(functions)) = FUNCTIONS.get() else { return };
        // SAFETY: it is the address of a function with these arguments (reference 07 §3.5).
        let message: JobMessage = unsafe { std::mem::transmute(functions.job_message) };
        let text = c_text(text);
        // SAFETY: the format has one text.
        unsafe { message(self.context, SOURCE, 0, c_int::from(kind.number()), 0, FORMAT, text.as_ptr()) };
    }

    fn mark_seen(&mut self, name: &[u8]) -> Status {
        const FILE_SEEN: c_int = 10;
        let name = c_text(name);
        // SAFETY: this variable takes a text.
        self.call(|functions, context| unsafe {
            (functions.set_value)(context, FILE_SEEN, name.as_ptr().cast_mut().cast())
        })
    }

    fn change_fileset(&mut self, _plugin: &[u8], change: FileSetChange<'_>) -> Status {
        let (argument, kind) = (c_text(change.item), c_int::from(change.kind));
        let text = argument.as_ptr();
        // SAFETY: each function gets the context, and the text that it takes.
        self.call(|functions, context| unsafe {
            match change.how {
                Change::Exclude => (functions.add_exclude)(context, text),
                Change::Include => (functions.add_include)(context, text),
                Change::Options => (functions.add_options)(context, text),
                Change::Regex => (functions.add_regex)(context, text, kind),
                Change::Wild => (functions.add_wild)(context, text, kind),
                Change::Plugin => (functions.add_plugin)(context, text),
                Change::NewOptions => (functions.new_options)(context),
                Change::NewInclude => (functions.new_include)(context),
                Change::NewPreInclude => (functions.new_pre_include)(context),
            }
        })
    }

    fn check_changes(&mut self, file: &mut SavePacket) -> Status {
        let mut kept = Kept::default();
        let mut packet = save_for_daemon(file, &mut kept);
        // SAFETY: the packet is whole, and what it points to is kept.
        let status = self.call(|functions, context| unsafe { (functions.check_changes)(context, &raw mut packet) });
        file.delta_seq = packet.delta_seq;
        file.accurate_found = packet.accurate_found != 0;
        status
    }

    fn accept_file(&mut self, file: &SavePacket) -> Status {
        let mut kept = Kept::default();
        let mut packet = save_for_daemon(file, &mut kept);
        // SAFETY: the packet is whole, and what it points to is kept.
        self.call(|functions, context| unsafe { (functions.accept_file)(context, &raw mut packet) })
    }

    fn accurate_attributes(&mut self, name: &[u8]) -> Option<AccurateAttributes> {
        let name = c_text(name);
        // SAFETY: all of its fields may be zero.
        let mut packet: AccurateAttributesPacket = unsafe { std::mem::zeroed() };
        packet.fname = name.as_ptr().cast_mut();
        // SAFETY: the packet has its name.
        let status =
            self.call(|functions, context| unsafe { (functions.accurate_attributes)(context, &raw mut packet) });
        if status != Status::Seen {
            return None;
        }
        // SAFETY: the daemon has stored a text or null.
        let checksum = unsafe { text(packet.chksum) };
        if checksum.is_some() {
            self.call(|functions, context| {
                // SAFETY: the text is a copy for the plugin. It is memory of the daemon's, which in
                // the stock daemon is not that of the C library (reference 07 §3.5).
                unsafe { (functions.free)(context, SOURCE, 0, packet.chksum.cast()) };
                0
            });
        }
        Some(AccurateAttributes {
            stat: from_stat(&packet.statp),
            checksum,
            delta_seq: packet.delta_seq,
            seen: packet.seen != 0,
        })
    }

    fn add_file_event(&mut self, event: FileEvent) -> Status {
        let mut packet = FileEventPacket {
            file_index: event.file_index,
            kind: event.kind.cast_signed(),
            severity: event.severity,
            description: [0; 128],
            source: [0; 128],
        };
        for (from, to) in [(&event.description, &mut packet.description), (&event.source, &mut packet.source)] {
            // The last byte stays NUL.
            let places = to.iter_mut().take(127);
            for (place, byte) in places.zip(from.iter().take_while(|byte| **byte != 0)) {
                *place = byte.cast_signed();
            }
        }
        // SAFETY: the packet is whole.
        self.call(|functions, context| unsafe { (functions.add_file_event)(context, &raw mut packet) })
    }
}

#[cfg(test)]
mod tests;
