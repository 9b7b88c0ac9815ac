//! Between the structures of C and those of Rust.

use std::ffi::{CStr, CString, c_char};

use fd_records::Stat;

use super::instance::c_text;
use crate::api::packets::{MetadataPacket, PluginObject, SaveObject, SavePacket};
use crate::library::abi::{PluginMetadata, SavePacketC};
use crate::library::wire::MOST_METADATA;

/// A structure of zeros.
///
/// # Safety
/// Zeros are a value of it.
pub(super) unsafe fn zeroed<T>() -> T {
    // SAFETY: the caller vouches for it.
    unsafe { std::mem::zeroed() }
}

/// The text at an address; `None` for null.
///
/// # Safety
/// It points to a text that ends with NUL, or is null.
pub(super) unsafe fn text(address: *const c_char) -> Option<Vec<u8>> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    Some(unsafe { CStr::from_ptr(address) }.to_bytes().to_vec())
}

/// So many bytes at an address; none for null or a count below 1.
///
/// # Safety
/// There are so many.
pub(super) unsafe fn bytes(address: *const c_char, count: i32) -> Vec<u8> {
    match usize::try_from(count) {
        // SAFETY: the caller vouches for them.
        Ok(count) if !address.is_null() => unsafe { std::slice::from_raw_parts(address.cast::<u8>(), count) }.to_vec(),
        _ => Vec::new(),
    }
}

/// The text of an array of characters.
pub(super) fn array(characters: &[c_char]) -> Vec<u8> {
    characters.iter().map(|character| character.cast_unsigned()).take_while(|byte| *byte != 0).collect()
}

/// Attributes as C has them.
pub(super) fn to_stat(from: &Stat) -> libc::stat {
    // SAFETY: it has only numbers.
    let mut to: libc::stat = unsafe { zeroed() };
    to.st_dev = from.dev;
    to.st_ino = from.ino;
    to.st_mode = from.mode;
    to.st_nlink = from.nlink;
    to.st_uid = from.uid;
    to.st_gid = from.gid;
    to.st_rdev = from.rdev;
    to.st_size = from.size;
    to.st_blksize = from.blksize;
    to.st_blocks = from.blocks;
    to.st_atime = from.atime;
    to.st_mtime = from.mtime;
    to.st_ctime = from.ctime;
    to
}

/// Attributes from C.
pub(super) fn from_stat(from: &libc::stat) -> Stat {
    Stat {
        dev: from.st_dev,
        ino: from.st_ino,
        mode: from.st_mode,
        nlink: from.st_nlink,
        uid: from.st_uid,
        gid: from.st_gid,
        rdev: from.st_rdev,
        size: from.st_size,
        blksize: from.st_blksize,
        blocks: from.st_blocks,
        atime: from.st_atime,
        mtime: from.st_mtime,
        ctime: from.st_ctime,
    }
}

/// What a packet says of a file, without objects and metadata.
///
/// # Safety
/// Its addresses are right or null.
pub(super) unsafe fn from_save_head(from: &SavePacketC) -> SavePacket {
    SavePacket {
        // SAFETY: the caller vouches for the addresses.
        name: unsafe { text(from.fname) },
        // SAFETY: as above.
        snap_name: unsafe { text(from.snap_fname) },
        // SAFETY: as above.
        link: unsafe { text(from.link) },
        stat: from_stat(&from.statp),
        file_type: from.file_type,
        flags: from.flags,
        no_read: from.no_read != 0,
        portable: from.portable != 0,
        accurate_found: from.accurate_found != 0,
        stat_update: from.stat_update != 0,
        delta_seq: from.delta_seq,
        link_fi: from.link_fi,
        ..SavePacket::default()
    }
}

/// A packet that a plugin has filled.
///
/// # Safety
/// Its addresses are right or null.
pub(super) unsafe fn from_save(from: &SavePacketC) -> SavePacket {
    // Types of files with objects (reference 07 §3.2).
    const RESTORE_FIRST: i32 = 25;
    const PLUGIN_CONFIG: i32 = 27;
    const PLUGIN_OBJECT: i32 = 29;
    const SECURITY_OBJECT: i32 = 30;
    // SAFETY: the caller vouches for the addresses.
    let mut packet = unsafe { from_save_head(from) };
    match from.file_type {
        RESTORE_FIRST | PLUGIN_CONFIG | SECURITY_OBJECT => {
            let object = &from.restore_obj;
            packet.object = SaveObject {
                // SAFETY: as above.
                name: unsafe { text(object.object_name) },
                // SAFETY: as above.
                data: unsafe { bytes(object.object, object.object_len) },
                index: object.index,
            };
        }
        PLUGIN_OBJECT => {
            let object = &from.plugin_obj;
            // SAFETY: as above.
            let text = |address| unsafe { text(address) }.unwrap_or_default();
            packet.plugin_object = PluginObject {
                path: text(object.path),
                plugin_name: text(object.plugin_name),
                category: text(object.object_category),
                object_type: text(object.object_type),
                name: text(object.object_name),
                source: text(object.object_source),
                uuid: text(object.object_uuid),
                size: object.object_size,
                status: object.status,
                count: object.count,
            };
        }
        // SAFETY: as above.
        _ => packet.metadata = unsafe { from_metadata(from.plug_meta) },
    }
    packet
}

/// A list of metadata.
///
/// # Safety
/// It is one, or null.
unsafe fn from_metadata(list: *const PluginMetadata) -> Vec<MetadataPacket> {
    // SAFETY: the caller vouches for it.
    let Some(list) = (unsafe { list.as_ref() }) else { return Vec::new() };
    let count = usize::try_from(list.last_item).unwrap_or_default().min(MOST_METADATA);
    if list.items.is_null() {
        return Vec::new();
    }
    // SAFETY: so many packets are in the list.
    let items = unsafe { std::slice::from_raw_parts(list.items, count) };
    // SAFETY: each is a packet, or null.
    let packets = items.iter().filter_map(|packet| unsafe { packet.as_ref() });
    packets
        .map(|packet| MetadataPacket {
            total_size: list.total_size,
            total_count: list.total_count,
            kind: packet.kind,
            index: packet.index,
            // SAFETY: it has so many bytes.
            data: unsafe { bytes(packet.buf.cast(), i32::try_from(packet.buf_len).unwrap_or(i32::MAX)) },
        })
        .collect()
}

/// Texts that live as long as a structure points to them.
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<CString>);

impl Texts {
    /// The address of a copy.
    pub(super) fn hold(&mut self, text: &[u8]) -> *mut c_char {
        let text = c_text(text);
        // A plugin may not write to it; C's structures don't say so.
        let address = text.as_ptr().cast_mut();
        self.0.push(text);
        address
    }

    /// The address of a copy; null for no text.
    pub(super) fn hold_option(&mut self, text: Option<&[u8]>) -> *mut c_char {
        text.map_or(std::ptr::null_mut(), |text| self.hold(text))
    }
}
