//! What a plugin in Rust says, in the structures of C, and what a daemon has put into those.

use std::ffi::c_char;

use crate::api::packets::{ChosenFile, MetadataPacket, PluginObject, RestoreFile, SaveObject, SavePacket, SavedObject};
use crate::library::abi::{
    MetaPacket, PluginMetadata, PluginObjectPart, RestoreFileListPacket, RestoreObjectPacket, RestoreObjectPart,
    RestorePacketC, SavePacketC, size_field,
};
use crate::library::values::{Texts, bytes, from_stat, text, write_save_head, zeroed};

/// What a structure of C points to. It lives until the daemon is done with the structure.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) texts: Texts,
    bytes: Vec<Vec<u8>>,
    metadata: Vec<MetaPacket>,
    list: Vec<*mut MetaPacket>,
    head: Option<Box<PluginMetadata>>,
}

// SAFETY: the addresses in it are those of its own boxes.
unsafe impl Send for Kept {}

impl Kept {
    pub(super) fn bytes(&mut self, bytes: Vec<u8>) -> *mut c_char {
        let mut bytes = bytes;
        let address = bytes.as_mut_ptr().cast();
        self.bytes.push(bytes);
        address
    }
}

/// Writes what the plugin says of a file into the daemon's structure.
pub(super) fn save_to_c(file: &SavePacket, packet: &mut SavePacketC, kept: &mut Kept) {
    packet.fname = kept.texts.hold_option(file.name.as_deref());
    packet.link = kept.texts.hold_option(file.link.as_deref());
    write_save_head(file, packet);
    packet.restore_obj = object(&file.object, kept);
    packet.plugin_obj = plugin_object(&file.plugin_object, kept);
    packet.plug_meta = metadata(file.metadata.as_deref(), kept);
}

/// A structure of this file for one of the daemon's functions.
pub(super) fn save_for_daemon(file: &SavePacket, kept: &mut Kept) -> SavePacketC {
    // SAFETY: all of its fields may be zero.
    let mut packet: SavePacketC = unsafe { zeroed() };
    packet.pkt_size = size_field::<SavePacketC>();
    packet.pkt_end = size_field::<SavePacketC>();
    save_to_c(file, &mut packet, kept);
    packet.snap_fname = kept.texts.hold_option(file.snap_name.as_deref());
    packet
}

fn object(object: &SaveObject, kept: &mut Kept) -> RestoreObjectPart {
    RestoreObjectPart {
        object_name: kept.texts.hold_option(object.name.as_deref()),
        object_len: i32::try_from(object.data.len()).unwrap_or(i32::MAX),
        object: kept.bytes(object.data.clone()),
        index: object.index,
        object_compression: 0,
    }
}

fn plugin_object(object: &PluginObject, kept: &mut Kept) -> PluginObjectPart {
    PluginObjectPart {
        path: kept.texts.hold(&object.path),
        plugin_name: kept.texts.hold(&object.plugin_name),
        object_category: kept.texts.hold(&object.category),
        object_type: kept.texts.hold(&object.object_type),
        object_name: kept.texts.hold(&object.name),
        object_source: kept.texts.hold(&object.source),
        object_uuid: kept.texts.hold(&object.uuid),
        object_size: object.size,
        status: object.status,
        count: object.count,
    }
}

fn metadata(packets: Option<&[MetadataPacket]>, kept: &mut Kept) -> *mut PluginMetadata {
    let Some(packets) = packets else { return std::ptr::null_mut() };
    let (total_size, total_count) =
        packets.first().map_or_else(Default::default, |first| (first.total_size, first.total_count));
    let mut made = Vec::with_capacity(packets.len());
    for packet in packets {
        made.push(MetaPacket {
            decoded: 0,
            total_size: packet.total_size,
            total_count: packet.total_count,
            kind: packet.kind,
            index: packet.index,
            buf_len: u32::try_from(packet.data.len()).unwrap_or(u32::MAX),
            buf: kept.bytes(packet.data.clone()).cast(),
        });
    }
    kept.metadata = made;
    kept.list = kept.metadata.iter_mut().map(std::ptr::from_mut).collect();
    let count = i32::try_from(kept.list.len()).unwrap_or(i32::MAX);
    let head = kept.head.insert(Box::new(PluginMetadata {
        total_size,
        total_count,
        items: kept.list.as_mut_ptr(),
        num_items: count,
        last_item: count,
        max_items: count,
        num_grow: 0,
        cur_item: 0,
        own_items: 0,
    }));
    &raw mut **head
}

/// A file that is to be restored or verified.
///
/// # Safety
/// Its addresses are null or those of texts.
pub(super) unsafe fn restore_from_c(packet: &RestorePacketC, verifies: bool) -> RestoreFile {
    // SAFETY: the caller vouches for it.
    let text = |address: *const c_char| unsafe { text(address) };
    RestoreFile {
        stream: packet.stream,
        data_stream: packet.data_stream,
        file_type: packet.file_type,
        file_index: packet.file_index,
        link_fi: packet.link_fi,
        uid: packet.uid,
        stat: from_stat(&packet.statp),
        attr_ex: text(packet.attr_ex).unwrap_or_default(),
        name: text(packet.ofname).unwrap_or_default(),
        // The stock daemon leaves it to chance when it verifies (reference 07 §9).
        link: if verifies { None } else { text(packet.olname) },
        place: text(packet.place),
        regex_where: text(packet.regex_where),
        replace: u8::try_from(packet.replace).unwrap_or(b'a'),
        delta_seq: packet.delta_seq,
    }
}

/// An object on its way back.
///
/// # Safety
/// Its addresses are null or those of texts, and of as many bytes as it says.
pub(super) unsafe fn object_from_c(packet: &RestoreObjectPacket) -> SavedObject {
    // SAFETY: the caller vouches for it.
    let text = |address: *mut c_char| unsafe { text(address) }.unwrap_or_default();
    SavedObject {
        name: text(packet.object_name),
        // SAFETY: the same.
        data: unsafe { bytes(packet.object, packet.object_len) }.to_vec(),
        command: text(packet.plugin_name),
        object_type: packet.object_type,
        full_length: packet.object_full_len,
        index: packet.object_index,
        compression: packet.object_compression,
        job_id: packet.job_id,
    }
}

/// A file that was chosen for a restore.
///
/// # Safety
/// Its addresses are null or those of texts.
pub(super) unsafe fn listed_from_c(packet: &RestoreFileListPacket) -> ChosenFile {
    // SAFETY: the caller vouches for it.
    let text = |address: *const c_char| unsafe { text(address) }.unwrap_or_default();
    ChosenFile {
        name: text(packet.ofname),
        stat: from_stat(&packet.statp),
        link_fi: packet.link_fi,
        delta_seq: packet.delta_seq,
        checksum: text(packet.chksum),
    }
}
