//! What a plugin has put into the structures of C.

use std::ffi::c_char;

use crate::api::packets::{MetadataPacket, PluginObject, SaveObject, SavePacket};
use crate::library::abi::{PluginMetadata, SavePacketC};
use crate::library::values::{bytes, from_metadata_packet, from_save_head, text};
use crate::library::wire::MOST_METADATA;

/// The text of an array of characters.
pub(super) fn array(characters: &[c_char]) -> Vec<u8> {
    characters.iter().map(|character| character.cast_unsigned()).take_while(|byte| *byte != 0).collect()
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
                data: unsafe { bytes(object.object, object.object_len) }.to_vec(),
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
unsafe fn from_metadata(list: *const PluginMetadata) -> Option<Vec<MetadataPacket>> {
    // SAFETY: the caller vouches for it.
    let list = unsafe { list.as_ref() }?;
    let count = usize::try_from(list.last_item).unwrap_or_default().min(MOST_METADATA);
    if list.items.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: so many packets are in the list.
    let items = unsafe { std::slice::from_raw_parts(list.items, count) };
    // SAFETY: each is a packet, or null.
    let packets = items.iter().filter_map(|packet| unsafe { packet.as_ref() });
    // SAFETY: it has so many bytes.
    Some(packets.map(|packet| unsafe { from_metadata_packet(packet, list.total_size, list.total_count) }).collect())
}
