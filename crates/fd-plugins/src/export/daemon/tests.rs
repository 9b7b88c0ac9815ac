//! What is got from the daemon, and given back.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::functions::offer;
use super::*;
use crate::api::call::Called;
use crate::api::event::Event;
use crate::api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};
use crate::library::abi::{EventPacket, PluginFunctions, SavePacketC, VERSION};

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

extern "C" fn add_plugin(context: *mut Context, command: *const c_char) -> c_int {
    event(context, 20, command)
}

/// The plugin of this library, as the daemon calls it.
fn loaded() -> &'static PluginFunctions {
    static LOADED: OnceLock<&PluginFunctions> = OnceLock::new();
    LOADED.get_or_init(|| {
        let address: *const c_void = DIGEST.as_ptr().cast();
        let functions = DaemonFunctions {
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
            add_plugin,
            add_file_event: of_event,
        };
        let info = PluginInfo { file: b"adds-fd.so".to_vec(), version: b"1".to_vec() };
        offer(Arc::new(Adds(info)), functions).unwrap()
    })
}

fn event(context: *mut Context, number: u32, command: *const c_char) -> c_int {
    let mut event = EventPacket { event_type: number };
    // SAFETY: a context with an instance, and an event with its value.
    unsafe { loaded().handle_plugin_event.unwrap()(context, &raw mut event, command.cast_mut().cast()) }
}

/// A plugin that adds a command of its own when it gets one.
#[derive(Debug)]
struct Adds(PluginInfo);

impl Plugin for Adds {
    fn info(&self) -> &PluginInfo {
        &self.0
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        Ok((Box::new(AddsInstance), Status::Ok))
    }
}

struct AddsInstance;

impl CancelEvent for AddsInstance {
    fn cancel(&self, _host: &mut dyn Host) {}
}

impl Instance for AddsInstance {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Self)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        Ok(match event {
            Event::BackupCommand(command) => host.change_fileset(b"adds", FileSetChange::new(Change::Plugin, command)),
            _ => Status::Stop,
        })
    }
}

#[test]
fn a_plugin_that_adds_a_command_of_its_own_is_not_called_in_that_call() {
    let mut context = Context { daemon: std::ptr::null_mut(), plugin: std::ptr::null_mut() };
    let context = &raw mut context;
    // SAFETY: a context without an instance.
    assert_eq!(unsafe { loaded().new_plugin.unwrap()(context) }, 0);
    assert_eq!(event(context, 9, c"adds: one".as_ptr()), 0);
    // Another one's is told it.
    assert_eq!(event(context, 20, c"adds: two".as_ptr()), Status::Stop.code());
    // SAFETY: a context with an instance.
    assert_eq!(unsafe { loaded().free_plugin.unwrap()(context) }, 0);
}

#[test]
fn the_digest_of_a_known_file_is_given_back() {
    loaded();
    // SAFETY: none of the functions above looks at the context.
    let mut daemon = unsafe { Daemon::of(std::ptr::null_mut()) };
    let known = daemon.accurate_attributes(b"/file").unwrap();
    assert_eq!((known.checksum.as_deref(), LENT.load(Ordering::Relaxed)), (Some(&b"digest"[..]), 0));
}
