//! Between the structures of C and those of Rust.

use std::ffi::{CStr, CString, c_char};

use fd_records::Stat;

use crate::api::packets::{ChosenFile, MetadataPacket, PluginObject, RestoreFile, SaveObject, SavePacket, SavedObject};
use crate::library::abi::{
    MetaPacket, PluginMetadata, PluginObjectPart, RestoreFileListPacket, RestoreObjectPacket, RestoreObjectPart,
    RestorePacketC, SavePacketC, size_field,
};

/// What a structure of C points to. It lives until the daemon is done with the structure.
#[derive(Default)]
pub(super) struct Kept {
    texts: Vec<CString>,
    bytes: Vec<Vec<u8>>,
    metadata: Vec<MetaPacket>,
    list: Vec<*mut MetaPacket>,
    head: Option<Box<PluginMetadata>>,
}

// SAFETY: the addresses in it are those of its own boxes.
unsafe impl Send for Kept {}

impl Kept {
    pub(super) fn text(&mut self, text: &[u8]) -> *mut c_char {
        // A text of C ends at its first NUL.
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let text = CString::new(text.get(..end).unwrap_or_default()).unwrap_or_default();
        let address = text.as_ptr().cast_mut();
        self.texts.push(text);
        address
    }

    fn text_or_null(&mut self, text: Option<&[u8]>) -> *mut c_char {
        text.map_or(std::ptr::null_mut(), |text| self.text(text))
    }

    pub(super) fn bytes(&mut self, bytes: Vec<u8>) -> *mut c_char {
        let mut bytes = bytes;
        let address = bytes.as_mut_ptr().cast();
        self.bytes.push(bytes);
        address
    }
}

/// The text at an address; `None` for null.
///
/// # Safety
/// It is null or points to a text with its final NUL.
pub(super) unsafe fn text(address: *const c_char) -> Option<Vec<u8>> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    Some(unsafe { CStr::from_ptr(address) }.to_bytes().to_vec())
}

/// The bytes at an address; none for null or a length of 0 or less.
///
/// # Safety
/// So many bytes are there.
pub(super) unsafe fn bytes<'b>(address: *const c_char, length: i32) -> &'b [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller vouches for it.
        Ok(length) if length > 0 && !address.is_null() => unsafe { std::slice::from_raw_parts(address.cast(), length) },
        _ => &[],
    }
}

pub(super) fn stat_from_c(stat: &libc::stat) -> Stat {
    Stat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        mode: stat.st_mode,
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev,
        size: stat.st_size,
        blksize: stat.st_blksize,
        blocks: stat.st_blocks,
        atime: stat.st_atime,
        mtime: stat.st_mtime,
        ctime: stat.st_ctime,
    }
}

fn stat_to_c(stat: &Stat, to: &mut libc::stat) {
    to.st_dev = stat.dev;
    to.st_ino = stat.ino;
    to.st_mode = stat.mode;
    to.st_nlink = stat.nlink;
    to.st_uid = stat.uid;
    to.st_gid = stat.gid;
    to.st_rdev = stat.rdev;
    to.st_size = stat.size;
    to.st_blksize = stat.blksize;
    to.st_blocks = stat.blocks;
    to.st_atime = stat.atime;
    to.st_mtime = stat.mtime;
    to.st_ctime = stat.ctime;
}

/// A file as the daemon describes it.
///
/// # Safety
/// Its addresses are null or those of texts.
pub(super) unsafe fn save_from_c(packet: &SavePacketC) -> SavePacket {
    // SAFETY: the caller vouches for it.
    let text = |address: *mut c_char| unsafe { text(address) };
    SavePacket {
        name: text(packet.fname),
        snap_name: text(packet.snap_fname),
        link: text(packet.link),
        stat: stat_from_c(&packet.statp),
        file_type: packet.file_type,
        flags: packet.flags,
        no_read: packet.no_read != 0,
        portable: packet.portable != 0,
        accurate_found: packet.accurate_found != 0,
        stat_update: packet.stat_update != 0,
        delta_seq: packet.delta_seq,
        link_fi: packet.link_fi,
        ..SavePacket::default()
    }
}

/// Writes what the plugin says of a file into the daemon's structure.
pub(super) fn save_to_c(file: &SavePacket, packet: &mut SavePacketC, kept: &mut Kept) {
    packet.fname = kept.text_or_null(file.name.as_deref());
    packet.link = kept.text_or_null(file.link.as_deref());
    stat_to_c(&file.stat, &mut packet.statp);
    packet.file_type = file.file_type;
    packet.flags = file.flags;
    packet.no_read = u8::from(file.no_read);
    packet.portable = u8::from(file.portable);
    packet.accurate_found = u8::from(file.accurate_found);
    packet.stat_update = u8::from(file.stat_update);
    packet.delta_seq = file.delta_seq;
    packet.link_fi = file.link_fi;
    packet.restore_obj = object(&file.object, kept);
    packet.plugin_obj = plugin_object(&file.plugin_object, kept);
    packet.plug_meta = metadata(&file.metadata, kept);
}

/// A structure of this file for one of the daemon's functions.
pub(super) fn save_for_daemon(file: &SavePacket, kept: &mut Kept) -> SavePacketC {
    // SAFETY: all of its fields may be zero.
    let mut packet: SavePacketC = unsafe { std::mem::zeroed() };
    packet.pkt_size = size_field::<SavePacketC>();
    packet.pkt_end = size_field::<SavePacketC>();
    save_to_c(file, &mut packet, kept);
    packet.snap_fname = kept.text_or_null(file.snap_name.as_deref());
    packet
}

fn object(object: &SaveObject, kept: &mut Kept) -> RestoreObjectPart {
    RestoreObjectPart {
        object_name: kept.text_or_null(object.name.as_deref()),
        object_len: i32::try_from(object.data.len()).unwrap_or(i32::MAX),
        object: kept.bytes(object.data.clone()),
        index: object.index,
        object_compression: 0,
    }
}

fn plugin_object(object: &PluginObject, kept: &mut Kept) -> PluginObjectPart {
    PluginObjectPart {
        path: kept.text(&object.path),
        plugin_name: kept.text(&object.plugin_name),
        object_category: kept.text(&object.category),
        object_type: kept.text(&object.object_type),
        object_name: kept.text(&object.name),
        object_source: kept.text(&object.source),
        object_uuid: kept.text(&object.uuid),
        object_size: object.size,
        status: object.status,
        count: object.count,
    }
}

fn metadata(packets: &[MetadataPacket], kept: &mut Kept) -> *mut PluginMetadata {
    let Some(first) = packets.first() else { return std::ptr::null_mut() };
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
        total_size: first.total_size,
        total_count: first.total_count,
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

/// A packet of metadata from the daemon.
///
/// # Safety
/// Its buffer has the length that it says.
pub(super) unsafe fn metadata_from_c(packet: &MetaPacket) -> MetadataPacket {
    // SAFETY: the caller vouches for it.
    let data = unsafe { bytes(packet.buf.cast(), i32::try_from(packet.buf_len).unwrap_or(i32::MAX)) };
    MetadataPacket {
        total_size: packet.total_size,
        total_count: packet.total_count,
        kind: packet.kind,
        index: packet.index,
        data: data.to_vec(),
    }
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
        stat: stat_from_c(&packet.statp),
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
        stat: stat_from_c(&packet.statp),
        link_fi: packet.link_fi,
        delta_seq: packet.delta_seq,
        checksum: text(packet.chksum),
    }
}
