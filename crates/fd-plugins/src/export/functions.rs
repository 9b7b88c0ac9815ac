//! The plugin's functions for the daemon (reference 07 §3.4).

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use fd_os::lock::Mutex;
use fd_records::MetadataKind;

use super::convert::{Kept, listed_from_c, object_from_c, restore_from_c, save_to_c};
use super::daemon::{Daemon, keep};
use crate::api::call::{Called, Io, IoDone, Status};
use crate::api::event::Event;
use crate::api::packets::{Query, SavePacket};
use crate::api::plugin::{CancelEvent, Instance, Plugin};
use crate::library::abi::{
    Context, DaemonFunctions, EventPacket, IoPacket, MetaPacket, PluginFunctions, QueryPacket, RestoreFileListPacket,
    RestoreObjectPacket, RestorePacketC, SavePacketC, StreamPacket, VERSION, XaclPacket, io_func, xacl_func,
};
use crate::library::values::{bytes, from_metadata_packet, from_save_head, text};

/// The plugin of this library.
static PLUGIN: OnceLock<Arc<dyn Plugin>> = OnceLock::new();

const ERROR: c_int = 2;

/// What a context of the daemon points to.
struct Job {
    /// Called by another thread while the rest is in use.
    canceler: Arc<dyn CancelEvent>,
    state: Mutex<State>,
}

struct State {
    /// `None` once it has ended.
    instance: Option<Box<dyn Instance>>,
    /// What the daemon has addresses of.
    kept: Kept,
    /// The commands are only estimated.
    estimates: bool,
    /// A Verify job has begun, and the plugin has not asked for its data.
    may_register: bool,
}

/// Keeps plugin and daemon, and makes the table of functions. `None` if this library was loaded
/// before.
pub(super) fn offer(plugin: Arc<dyn Plugin>, daemon: DaemonFunctions) -> Option<&'static mut PluginFunctions> {
    let offers = plugin.offers();
    if !keep(daemon) || PLUGIN.set(plugin).is_err() {
        return None;
    }
    Some(Box::leak(Box::new(PluginFunctions {
        size: u32::try_from(size_of::<PluginFunctions>()).unwrap_or_default(),
        version: VERSION,
        new_plugin: Some(new_plugin),
        free_plugin: Some(free_plugin),
        get_plugin_value: None,
        set_plugin_value: None,
        handle_plugin_event: Some(handle_plugin_event),
        start_backup_file: offers.backup.then_some(start_backup_file),
        end_backup_file: offers.backup.then_some(end_backup_file),
        start_restore_file: offers.restore.then_some(start_restore_file),
        end_restore_file: offers.restore.then_some(end_restore_file),
        plugin_io: offers.io.then_some(plugin_io),
        create_file: offers.create_file.then_some(create_file),
        set_file_attributes: offers.set_attributes.then_some(set_file_attributes),
        check_file: offers.check_file.then_some(check_file),
        handle_xacl_data: offers.xacl.then_some(handle_xacl_data),
        restore_file_list: offers.restore_file_list.then_some(restore_file_list),
        check_stream: offers.check_stream.then_some(check_stream),
        query_parameter: offers.query.then_some(query_parameter),
        metadata_restore: offers.metadata.then_some(metadata_restore),
        start_verify_file: offers.start_verify.then_some(start_verify_file),
        end_verify_file: offers.end_verify.then_some(end_verify_file),
    })))
}

/// A panic must not leave the library: it would end the daemon.
fn guarded(call: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(ERROR)
}

/// Calls the instance of a context, unless it is in a call. Returns the number that the daemon
/// gets; a plugin that can't be called any more is reported.
///
/// # Safety
/// The context is one that [`new_plugin`] got.
unsafe fn with(context: *mut Context, call: impl FnOnce(&mut dyn Instance, &mut Call<'_>) -> Called<Status>) -> c_int {
    guarded(|| {
        // SAFETY: the caller vouches for the context.
        let Some(job) = (unsafe { job(context) }) else { return ERROR };
        // A daemon tells a plugin that adds a command of its own of that at once, within the call
        // (reference 07 §3.5). Nothing else is called in a call.
        let Some(mut state) = job.state.try_lock() else { return 0 };
        let State { instance, kept, estimates, may_register } = &mut *state;
        let Some(instance) = instance else { return ERROR };
        // SAFETY: the same.
        let daemon = unsafe { Daemon::of(context) };
        let mut during = Call { daemon, kept, estimates, may_register };
        match call(instance.as_mut(), &mut during) {
            Ok(status) => status.code(),
            Err(gone) => during.daemon.report(&gone),
        }
    })
}

/// The same with the packet that the function gets; an error without one.
///
/// # Safety
/// The same, and the packet is one, or null.
unsafe fn with_packet<P>(
    context: *mut Context,
    packet: *mut P,
    call: impl FnOnce(&mut dyn Instance, &mut Call<'_>, &mut P) -> Called<Status>,
) -> c_int {
    // SAFETY: the caller vouches for both.
    unsafe {
        with(context, |instance, during| match packet.as_mut() {
            Some(packet) => call(instance, during, packet),
            None => Ok(Status::Error),
        })
    }
}

/// What there is during a call.
struct Call<'c> {
    daemon: Daemon,
    kept: &'c mut Kept,
    estimates: &'c mut bool,
    may_register: &'c mut bool,
}

/// # Safety
/// The context is one that [`new_plugin`] got, and [`free_plugin`] did not.
unsafe fn job<'j>(context: *mut Context) -> Option<&'j Job> {
    // SAFETY: the caller vouches for it.
    let context = unsafe { context.as_ref() }?;
    // SAFETY: it is what `new_plugin` has stored.
    unsafe { context.plugin.cast::<Job>().as_ref() }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn new_plugin(context: *mut Context) -> c_int {
    guarded(|| {
        let Some(plugin) = PLUGIN.get() else { return ERROR };
        // SAFETY: the daemon hands over its context.
        let Some(place) = (unsafe { context.as_mut() }) else { return ERROR };
        place.plugin = std::ptr::null_mut();
        // SAFETY: the same.
        let mut daemon = unsafe { Daemon::of(context) };
        match plugin.begin(&mut daemon) {
            Ok((instance, status)) => {
                let canceler = instance.canceler();
                let (kept, instance) = (Kept::default(), Some(instance));
                let state = Mutex::new(State { instance, kept, estimates: false, may_register: false });
                place.plugin = Box::into_raw(Box::new(Job { canceler, state })).cast();
                status.code()
            }
            Err(gone) => daemon.report(&gone),
        }
    })
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn free_plugin(context: *mut Context) -> c_int {
    guarded(|| {
        // SAFETY: the daemon hands over its context.
        let Some(place) = (unsafe { context.as_mut() }) else { return ERROR };
        let job = std::mem::replace(&mut place.plugin, std::ptr::null_mut()).cast::<Job>();
        if job.is_null() {
            return 0;
        }
        // SAFETY: `new_plugin` has made it, and this is the last call with this context.
        let job = unsafe { Box::from_raw(job) };
        // SAFETY: the context is the daemon's.
        let mut daemon = unsafe { Daemon::of(context) };
        let state = job.state.into_inner();
        if let Some(instance) = state.instance
            && let Err(gone) = instance.end(&mut daemon)
        {
            daemon.report(&gone);
        }
        0
    })
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn handle_plugin_event(context: *mut Context, event: *mut EventPacket, value: *mut c_void) -> c_int {
    const CANCEL: u32 = 14;
    // SAFETY: the daemon hands over an event.
    let Some(number) = (unsafe { event.as_ref() }).map(|event| event.event_type) else { return ERROR };
    if number == CANCEL {
        return guarded(|| {
            // SAFETY: the daemon hands over its context.
            let Some(job) = (unsafe { job(context) }) else { return ERROR };
            // SAFETY: the same.
            job.canceler.cancel(&mut unsafe { Daemon::of(context) });
            0
        });
    }
    // SAFETY: the daemon hands over its context, and a value that belongs to the event.
    unsafe {
        with(context, |instance, call| {
            let status = deliver(instance, call, number, value);
            if *call.may_register && instance.verifies() {
                *call.may_register = false;
                call.daemon.register_for_verify();
            }
            status
        })
    }
}

/// An event whose value is a text.
fn event_of_text(number: u32, line: &[u8]) -> Event<'_> {
    match number {
        1 => Event::JobStart(line),
        9 => Event::BackupCommand(line),
        10 => Event::RestoreCommand(line),
        11 => Event::EstimateCommand(line),
        20 => Event::PluginCommand(line),
        25 => Event::ComponentInfo(line),
        _ => Event::PluginOptions(line),
    }
}

/// # Safety
/// The value is what belongs to the event (reference 07 §3.7).
unsafe fn deliver(instance: &mut dyn Instance, call: &mut Call<'_>, number: u32, value: *mut c_void) -> Called<Status> {
    const HANDLE_FILE: u32 = 24;
    const FEATURES: u32 = 26;
    let (line, object);
    let event = match number {
        1 | 9 | 10 | 11 | 20 | 25 | 28 => {
            // SAFETY: the caller vouches for it: a text.
            line = unsafe { text(value.cast()) }.unwrap_or_default();
            event_of_text(number, &line)
        }
        2 => Event::JobEnd,
        3 => Event::StartBackupJob,
        4 => Event::EndBackupJob,
        5 => Event::StartRestoreJob,
        6 => Event::EndRestoreJob,
        7 => Event::StartVerifyJob,
        8 => Event::EndVerifyJob,
        12 => Event::Level(u8::try_from(value.addr()).unwrap_or(b' ')),
        13 => Event::Since(i64::try_from(value.addr()).unwrap_or_default()),
        18 => {
            // SAFETY: the caller vouches for it: a packet, or null.
            object = unsafe { value.cast::<RestoreObjectPacket>().as_ref().map(|packet| object_from_c(packet)) };
            Event::RestoreObject(object.as_ref())
        }
        19 => Event::EndFileSet,
        HANDLE_FILE => {
            // SAFETY: the caller vouches for it.
            let Some(packet) = (unsafe { value.cast::<SavePacketC>().as_mut() }) else { return Ok(Status::Error) };
            // SAFETY: the same.
            let (mut file, command) = unsafe { (from_save_head(packet), text(packet.cmd).unwrap_or_default()) };
            let called = instance.handle_file(&mut call.daemon, &command, &mut file);
            packet.flags = file.flags;
            packet.portable = u8::from(file.portable);
            packet.delta_seq = file.delta_seq;
            packet.stat_update = u8::from(file.stat_update);
            return called;
        }
        FEATURES => {
            match instance.features(&mut call.daemon) {
                Ok(Some(features)) if !value.is_null() => {
                    let features = call.kept.texts.hold(&features);
                    // SAFETY: the caller vouches for it: a place for the address of a text.
                    unsafe { value.cast::<*const c_char>().write(features) };
                }
                Ok(_) => {}
                Err(gone) => {
                    call.daemon.report(&gone);
                }
            }
            return Ok(Status::Ok);
        }
        _ => return Ok(Status::Ok),
    };
    match event {
        Event::EstimateCommand(_) => *call.estimates = true,
        Event::BackupCommand(_) => *call.estimates = false,
        // From now on the job's level is known to the daemon.
        Event::StartVerifyJob => *call.may_register = true,
        _ => {}
    }
    instance.event(&mut call.daemon, &event)
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn start_backup_file(context: *mut Context, packet: *mut SavePacketC) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let command = text(packet.cmd).unwrap_or_default();
            let mut file = SavePacket { portable: packet.portable != 0, ..SavePacket::default() };
            *call.kept = Kept::default();
            let called = instance.start_backup_file(&mut call.daemon, &command, !*call.estimates, &mut file);
            save_to_c(&file, packet, call.kept);
            called
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn end_backup_file(context: *mut Context) -> c_int {
    // SAFETY: the daemon hands over its context.
    unsafe { with(context, |instance, call| instance.end_backup_file(&mut call.daemon)) }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn start_restore_file(context: *mut Context, command: *const c_char) -> c_int {
    // SAFETY: the daemon hands over its context and a text.
    unsafe {
        with(context, |instance, call| {
            instance.start_restore_file(&mut call.daemon, &text(command).unwrap_or_default())
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn end_restore_file(context: *mut Context) -> c_int {
    // SAFETY: the daemon hands over its context.
    unsafe { with(context, |instance, call| instance.end_restore_file(&mut call.daemon)) }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn plugin_io(context: *mut Context, packet: *mut IoPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet, with a buffer of the length that it
    // says.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let name;
            let io = match packet.func {
                io_func::OPEN => {
                    name = text(packet.fname).unwrap_or_default();
                    Io::Open { name: &name, flags: packet.flags, mode: packet.mode }
                }
                io_func::READ => match usize::try_from(packet.count) {
                    Ok(count) if !packet.buf.is_null() => {
                        Io::Read { buffer: std::slice::from_raw_parts_mut(packet.buf.cast(), count) }
                    }
                    _ => return Ok(Status::Error),
                },
                io_func::WRITE => Io::Write { data: bytes(packet.buf, packet.count) },
                io_func::SEEK => Io::Seek { offset: packet.offset, whence: packet.whence },
                io_func::CLOSE => Io::Close,
                _ => return Ok(Status::Error),
            };
            let reads = matches!(io, Io::Read { .. });
            let called = instance.io(&mut call.daemon, io);
            let done = called.as_ref().copied().unwrap_or(IoDone::error(libc::EIO));
            packet.status = done.status;
            packet.io_errno = done.errno;
            if reads {
                packet.offset = done.offset;
            }
            called.map(|done| done.returned)
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn create_file(context: *mut Context, packet: *mut RestorePacketC) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let (status, create) = instance.create_file(&mut call.daemon, &restore_from_c(packet, false))?;
            packet.create_status = create.code();
            Ok(status)
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn set_file_attributes(context: *mut Context, packet: *mut RestorePacketC) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let (status, create) = instance.set_attributes(&mut call.daemon, &restore_from_c(packet, false))?;
            packet.create_status = create.code();
            Ok(status)
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn check_file(context: *mut Context, name: *mut c_char) -> c_int {
    // SAFETY: the daemon hands over its context and a text.
    unsafe { with(context, |instance, call| instance.check_file(&mut call.daemon, &text(name).unwrap_or_default())) }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn handle_xacl_data(context: *mut Context, packet: *mut XaclPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let (kind, reads) = match packet.func {
                xacl_func::ACL_BACKUP => (MetadataKind::Acl, true),
                xacl_func::ACL_RESTORE => (MetadataKind::Acl, false),
                xacl_func::XATTR_BACKUP => (MetadataKind::Xattr, true),
                xacl_func::XATTR_RESTORE => (MetadataKind::Xattr, false),
                _ => return Ok(Status::Error),
            };
            if !reads {
                return instance.write_xacl(&mut call.daemon, kind, bytes(packet.content, packet.count));
            }
            let mut data = Vec::new();
            let called = instance.read_xacl(&mut call.daemon, kind, &mut data);
            packet.count = i32::try_from(data.len()).unwrap_or(0);
            packet.content = call.kept.bytes(data);
            called
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn restore_file_list(context: *mut Context, packet: *mut RestoreFileListPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet, or null after the last one.
    unsafe {
        with(context, |instance, call| {
            let file = packet.as_ref().map(|packet| listed_from_c(packet));
            instance.restore_file_list(&mut call.daemon, file.as_ref())
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn check_stream(context: *mut Context, packet: *mut StreamPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            instance.check_stream(&mut call.daemon, &mut packet.stream)
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn query_parameter(context: *mut Context, packet: *mut QueryPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let parameter = text(packet.parameter).unwrap_or_default();
            let command = text(packet.command).unwrap_or_default();
            let mut result = Vec::new();
            let query = Query { parameter: &parameter, command: &command };
            let called = instance.query(&mut call.daemon, query, &mut result);
            *call.kept = Kept::default();
            packet.result = call.kept.texts.hold(&result);
            called
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn metadata_restore(context: *mut Context, packet: *mut MetaPacket) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            let packet = from_metadata_packet(packet, packet.total_size, packet.total_count);
            instance.restore_metadata(&mut call.daemon, &packet)
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn start_verify_file(context: *mut Context, packet: *mut RestorePacketC) -> c_int {
    // SAFETY: the daemon hands over its context and a packet.
    unsafe {
        with_packet(context, packet, |instance, call, packet| {
            instance.start_verify_file(&mut call.daemon, &restore_from_c(packet, true))
        })
    }
}

/// # Safety
/// The arguments are those of a daemon (reference 07 §3.4).
unsafe extern "C" fn end_verify_file(context: *mut Context) -> c_int {
    // SAFETY: the daemon hands over its context.
    unsafe { with(context, |instance, call| instance.end_verify_file(&mut call.daemon)) }
}
