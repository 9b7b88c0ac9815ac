//! The structures of the C interface, version 23, as they are on x86-64 (reference 07 §3.3 to
//! §3.5). Names are those of the reference.

use std::ffi::{c_char, c_int, c_void};

/// Magic of `pInfo`.
pub(crate) const MAGIC: &[u8] = b"*FDPluginData*";
/// Version of the interface.
pub(crate) const VERSION: u32 = 23;
/// Licenses that the stock daemon accepts.
pub(crate) const LICENSES: [&[u8]; 2] = [b"Bacula AGPLv3", b"AGPLv3"];

/// The size of a structure as its fields say it.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a few hundred bytes")]
pub(crate) const fn size_field<T>() -> i32 {
    size_of::<T>() as i32
}

/// `bpContext`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) daemon: *mut c_void,
    pub(crate) plugin: *mut c_void,
}

/// `bInfo`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct DaemonInfo {
    pub(crate) size: u32,
    pub(crate) version: u32,
}

/// `bEvent`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct EventPacket {
    pub(crate) event_type: u32,
}

/// `pInfo`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PluginInfoPacket {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) magic: *const c_char,
    pub(crate) license: *const c_char,
    pub(crate) author: *const c_char,
    pub(crate) date: *const c_char,
    pub(crate) plugin_version: *const c_char,
    pub(crate) description: *const c_char,
}

/// `restore_object_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RestoreObjectPacket {
    pub(crate) pkt_size: i32,
    pub(crate) object_name: *mut c_char,
    pub(crate) object: *mut c_char,
    pub(crate) plugin_name: *mut c_char,
    pub(crate) object_type: i32,
    pub(crate) object_len: i32,
    pub(crate) object_full_len: i32,
    pub(crate) object_index: i32,
    pub(crate) object_compression: i32,
    pub(crate) stream: i32,
    pub(crate) job_id: u32,
    pub(crate) pkt_end: i32,
}

/// `stream_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct StreamPacket {
    pub(crate) pkt_size: i32,
    pub(crate) stream: i32,
    pub(crate) pkt_end: i32,
}

/// `restore_object`, in `save_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RestoreObjectPart {
    pub(crate) object_name: *mut c_char,
    pub(crate) object: *mut c_char,
    pub(crate) object_len: i32,
    pub(crate) index: i32,
    pub(crate) object_compression: i32,
}

/// `plugin_object`, in `save_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PluginObjectPart {
    pub(crate) path: *mut c_char,
    pub(crate) plugin_name: *mut c_char,
    pub(crate) object_category: *mut c_char,
    pub(crate) object_type: *mut c_char,
    pub(crate) object_name: *mut c_char,
    pub(crate) object_source: *mut c_char,
    pub(crate) object_uuid: *mut c_char,
    pub(crate) object_size: u64,
    pub(crate) status: i32,
    pub(crate) count: u32,
}

/// `save_pkt`.
#[repr(C)]
pub(crate) struct SavePacketC {
    pub(crate) pkt_size: i32,
    pub(crate) fname: *mut c_char,
    pub(crate) snap_fname: *mut c_char,
    pub(crate) plugin_mode: i32,
    pub(crate) link: *mut c_char,
    pub(crate) statp: libc::stat,
    pub(crate) file_type: i32,
    pub(crate) flags: u64,
    pub(crate) no_read: bool8,
    pub(crate) portable: bool8,
    pub(crate) accurate_found: bool8,
    pub(crate) do_dedup: bool8,
    pub(crate) stat_update: bool8,
    pub(crate) cmd: *mut c_char,
    pub(crate) restore_obj: RestoreObjectPart,
    pub(crate) plugin_obj: PluginObjectPart,
    pub(crate) plug_meta: *mut PluginMetadata,
    pub(crate) delta_seq: u32,
    pub(crate) link_fi: i32,
    pub(crate) pkt_end: i32,
}

/// C++'s `bool`, of which a plugin may make any byte.
#[expect(non_camel_case_types, reason = "a C type")]
pub(crate) type bool8 = u8;

/// `restore_pkt`.
#[repr(C)]
pub(crate) struct RestorePacketC {
    pub(crate) pkt_size: i32,
    pub(crate) plugin_mode: i32,
    pub(crate) stream: i32,
    pub(crate) data_stream: i32,
    pub(crate) file_type: i32,
    pub(crate) file_index: i32,
    pub(crate) link_fi: i32,
    pub(crate) uid: u32,
    pub(crate) statp: libc::stat,
    pub(crate) attr_ex: *const c_char,
    pub(crate) ofname: *const c_char,
    pub(crate) olname: *const c_char,
    pub(crate) place: *const c_char,
    pub(crate) regex_where: *const c_char,
    pub(crate) replace: i32,
    pub(crate) create_status: i32,
    pub(crate) delta_seq: u32,
    pub(crate) pkt_end: i32,
}

/// `restore_filelist_pkt`.
#[repr(C)]
pub(crate) struct RestoreFileListPacket {
    pub(crate) pkt_size: i32,
    pub(crate) plugin_mode: i32,
    pub(crate) file_index: i32,
    pub(crate) link_fi: i32,
    pub(crate) statp: libc::stat,
    pub(crate) attr_ex: *const c_char,
    pub(crate) ofname: *const c_char,
    pub(crate) delta_seq: u32,
    pub(crate) chksum: *const c_char,
    pub(crate) pkt_end: i32,
}

/// `io_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct IoPacket {
    pub(crate) pkt_size: i32,
    pub(crate) func: i32,
    pub(crate) count: i32,
    pub(crate) flags: i32,
    pub(crate) mode: u32,
    pub(crate) buf: *mut c_char,
    pub(crate) fname: *const c_char,
    pub(crate) status: i32,
    pub(crate) io_errno: i32,
    pub(crate) lerror: i32,
    pub(crate) whence: i32,
    pub(crate) offset: i64,
    pub(crate) win32: bool8,
    pub(crate) pkt_end: i32,
}

/// Values of [`IoPacket::func`].
pub(crate) mod io_func {
    pub(crate) const OPEN: i32 = 1;
    pub(crate) const READ: i32 = 2;
    pub(crate) const WRITE: i32 = 3;
    pub(crate) const CLOSE: i32 = 4;
    pub(crate) const SEEK: i32 = 5;
}

/// `xacl_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct XaclPacket {
    pub(crate) pkt_size: i32,
    pub(crate) func: i32,
    pub(crate) count: i32,
    pub(crate) content: *mut c_char,
    pub(crate) pkt_end: i32,
}

/// Values of [`XaclPacket::func`].
pub(crate) mod xacl_func {
    pub(crate) const ACL_BACKUP: i32 = 1;
    pub(crate) const ACL_RESTORE: i32 = 2;
    pub(crate) const XATTR_BACKUP: i32 = 3;
    pub(crate) const XATTR_RESTORE: i32 = 4;
}

/// `accurate_attribs_pkt`.
#[repr(C)]
pub(crate) struct AccurateAttributesPacket {
    pub(crate) fname: *mut c_char,
    pub(crate) statp: libc::stat,
    pub(crate) chksum: *mut c_char,
    pub(crate) delta_seq: i32,
    pub(crate) seen: bool8,
}

/// `query_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct QueryPacket {
    pub(crate) pkt_size: i32,
    pub(crate) parameter: *mut c_char,
    pub(crate) command: *mut c_char,
    pub(crate) api_opts: *mut c_char,
    pub(crate) result: *mut c_char,
    pub(crate) pkt_end: i32,
}

/// `fileevent_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FileEventPacket {
    pub(crate) file_index: i32,
    pub(crate) kind: c_char,
    pub(crate) severity: i32,
    pub(crate) description: [c_char; 128],
    pub(crate) source: [c_char; 128],
}

/// `meta_pkt`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MetaPacket {
    pub(crate) decoded: bool8,
    pub(crate) total_size: u32,
    pub(crate) total_count: u16,
    pub(crate) kind: i32,
    pub(crate) index: u16,
    pub(crate) buf_len: u32,
    pub(crate) buf: *mut c_void,
}

/// `plugin_metadata`: the head, and the list of its packets.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PluginMetadata {
    pub(crate) total_size: u32,
    pub(crate) total_count: u16,
    pub(crate) items: *mut *mut MetaPacket,
    pub(crate) num_items: i32,
    pub(crate) last_item: i32,
    pub(crate) max_items: i32,
    pub(crate) num_grow: i32,
    pub(crate) cur_item: i32,
    pub(crate) own_items: bool8,
}

/// A function that takes the context only.
pub(crate) type OfContext = unsafe extern "C" fn(*mut Context) -> c_int;
/// A function that takes a packet.
pub(crate) type OfPacket<P> = unsafe extern "C" fn(*mut Context, *mut P) -> c_int;
/// A function that takes a text.
pub(crate) type OfText = unsafe extern "C" fn(*mut Context, *const c_char) -> c_int;
/// A function that takes a text and the kind of it.
pub(crate) type OfItem = unsafe extern "C" fn(*mut Context, *const c_char, c_int) -> c_int;
/// A function that takes a variable and its value.
pub(crate) type OfValue = unsafe extern "C" fn(*mut Context, c_int, *mut c_void) -> c_int;

/// `pFuncs`: what a plugin offers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PluginFunctions {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) new_plugin: Option<OfContext>,
    pub(crate) free_plugin: Option<OfContext>,
    pub(crate) get_plugin_value: Option<OfValue>,
    pub(crate) set_plugin_value: Option<OfValue>,
    pub(crate) handle_plugin_event: Option<unsafe extern "C" fn(*mut Context, *mut EventPacket, *mut c_void) -> c_int>,
    pub(crate) start_backup_file: Option<OfPacket<SavePacketC>>,
    pub(crate) end_backup_file: Option<OfContext>,
    pub(crate) start_restore_file: Option<OfText>,
    pub(crate) end_restore_file: Option<OfContext>,
    pub(crate) plugin_io: Option<OfPacket<IoPacket>>,
    pub(crate) create_file: Option<OfPacket<RestorePacketC>>,
    pub(crate) set_file_attributes: Option<OfPacket<RestorePacketC>>,
    pub(crate) check_file: Option<unsafe extern "C" fn(*mut Context, *mut c_char) -> c_int>,
    pub(crate) handle_xacl_data: Option<OfPacket<XaclPacket>>,
    pub(crate) restore_file_list: Option<OfPacket<RestoreFileListPacket>>,
    pub(crate) check_stream: Option<OfPacket<StreamPacket>>,
    pub(crate) query_parameter: Option<OfPacket<QueryPacket>>,
    pub(crate) metadata_restore: Option<OfPacket<MetaPacket>>,
    pub(crate) start_verify_file: Option<OfPacket<RestorePacketC>>,
    pub(crate) end_verify_file: Option<OfContext>,
}

/// `bFuncs`: what the daemon offers. The three variadic functions are addresses of the shims in
/// [`super::variadic`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DaemonFunctions {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) register_events: *const c_void,
    pub(crate) get_value: OfValue,
    pub(crate) set_value: OfValue,
    pub(crate) job_message: *const c_void,
    pub(crate) debug_message: *const c_void,
    pub(crate) malloc: unsafe extern "C" fn(*mut Context, *const c_char, c_int, usize) -> *mut c_void,
    pub(crate) free: unsafe extern "C" fn(*mut Context, *const c_char, c_int, *mut c_void),
    pub(crate) add_exclude: OfText,
    pub(crate) add_include: OfText,
    pub(crate) add_options: OfText,
    pub(crate) add_regex: OfItem,
    pub(crate) add_wild: OfItem,
    pub(crate) new_options: OfContext,
    pub(crate) new_include: OfContext,
    pub(crate) new_pre_include: OfContext,
    pub(crate) check_changes: OfPacket<SavePacketC>,
    pub(crate) accept_file: OfPacket<SavePacketC>,
    pub(crate) accurate_attributes: OfPacket<AccurateAttributesPacket>,
    pub(crate) add_plugin: OfText,
    pub(crate) add_file_event: OfPacket<FileEventPacket>,
}

/// `loadPlugin`.
pub(crate) type LoadPlugin = unsafe extern "C" fn(
    *mut DaemonInfo,
    *const DaemonFunctions,
    *mut *mut PluginInfoPacket,
    *mut *mut PluginFunctions,
) -> c_int;
/// `unloadPlugin`.
pub(crate) type UnloadPlugin = unsafe extern "C" fn() -> c_int;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_reference() {
        let sizes = [
            (size_of::<Context>(), 16),
            (size_of::<DaemonInfo>(), 8),
            (size_of::<PluginInfoPacket>(), 56),
            (size_of::<DaemonFunctions>(), 168),
            (size_of::<PluginFunctions>(), 168),
            (size_of::<RestoreObjectPacket>(), 64),
            (size_of::<StreamPacket>(), 12),
            (size_of::<RestoreObjectPart>(), 32),
            (size_of::<PluginObjectPart>(), 72),
            (size_of::<SavePacketC>(), 344),
            (size_of::<RestorePacketC>(), 232),
            (size_of::<RestoreFileListPacket>(), 200),
            (size_of::<IoPacket>(), 72),
            (size_of::<XaclPacket>(), 32),
            (size_of::<AccurateAttributesPacket>(), 168),
            (size_of::<QueryPacket>(), 48),
            (size_of::<FileEventPacket>(), 268),
            (size_of::<MetaPacket>(), 32),
            (size_of::<PluginMetadata>(), 40),
            (size_of::<libc::stat>(), 144),
        ];
        for (index, (found, expected)) in sizes.into_iter().enumerate() {
            assert_eq!(found, expected, "structure {index}");
        }
        assert_eq!(size_field::<SavePacketC>(), 344);
    }

    #[test]
    fn fields_have_the_offsets_of_the_reference() {
        assert_eq!(offset_of!(SavePacketC, statp), 40);
        assert_eq!(offset_of!(SavePacketC, flags), 192);
        assert_eq!(offset_of!(SavePacketC, stat_update), 204);
        assert_eq!(offset_of!(SavePacketC, cmd), 208);
        assert_eq!(offset_of!(SavePacketC, restore_obj), 216);
        assert_eq!(offset_of!(SavePacketC, plugin_obj), 248);
        assert_eq!(offset_of!(SavePacketC, plug_meta), 320);
        assert_eq!(offset_of!(SavePacketC, pkt_end), 336);
        assert_eq!(offset_of!(RestorePacketC, statp), 32);
        assert_eq!(offset_of!(RestorePacketC, attr_ex), 176);
        assert_eq!(offset_of!(RestorePacketC, create_status), 220);
        assert_eq!(offset_of!(RestorePacketC, pkt_end), 228);
        assert_eq!(offset_of!(RestoreFileListPacket, attr_ex), 160);
        assert_eq!(offset_of!(RestoreFileListPacket, chksum), 184);
        assert_eq!(offset_of!(IoPacket, buf), 24);
        assert_eq!(offset_of!(IoPacket, status), 40);
        assert_eq!(offset_of!(IoPacket, offset), 56);
        assert_eq!(offset_of!(IoPacket, pkt_end), 68);
        assert_eq!(offset_of!(XaclPacket, content), 16);
        assert_eq!(offset_of!(AccurateAttributesPacket, chksum), 152);
        assert_eq!(offset_of!(AccurateAttributesPacket, seen), 164);
        assert_eq!(offset_of!(FileEventPacket, severity), 8);
        assert_eq!(offset_of!(FileEventPacket, source), 140);
        assert_eq!(offset_of!(MetaPacket, kind), 12);
        assert_eq!(offset_of!(MetaPacket, buf_len), 20);
        assert_eq!(offset_of!(PluginMetadata, items), 8);
        assert_eq!(offset_of!(PluginMetadata, last_item), 20);
        assert_eq!(offset_of!(PluginFunctions, plugin_io), 80);
        assert_eq!(offset_of!(PluginFunctions, check_file), 104);
        assert_eq!(offset_of!(PluginFunctions, end_verify_file), 160);
        assert_eq!(offset_of!(DaemonFunctions, job_message), 32);
        assert_eq!(offset_of!(DaemonFunctions, check_changes), 128);
        assert_eq!(offset_of!(DaemonFunctions, add_file_event), 160);
    }
}
