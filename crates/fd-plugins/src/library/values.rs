//! Between the structures of C and the types of the API: what plugin hosts and plugins in Rust
//! have in common.

use std::ffi::{CStr, CString, c_char};

use fd_records::Stat;

use super::abi::{MetaPacket, SavePacketC};
use crate::api::packets::{MetadataPacket, SavePacket};

/// A structure of zeros.
///
/// # Safety
/// Zeros are a value of it.
pub(crate) unsafe fn zeroed<T>() -> T {
    // SAFETY: the caller vouches for it.
    unsafe { std::mem::zeroed() }
}

/// A text for C, up to its first NUL.
pub(crate) fn c_text(text: &[u8]) -> CString {
    CString::new(text.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default()
}

/// Texts that live as long as a structure points to them.
#[derive(Debug, Default)]
pub(crate) struct Texts(Vec<CString>);

impl Texts {
    /// The address of a copy.
    pub(crate) fn hold(&mut self, text: &[u8]) -> *mut c_char {
        let text = c_text(text);
        // A plugin may not write to it; C's structures don't say so.
        let address = text.as_ptr().cast_mut();
        self.0.push(text);
        address
    }

    /// The address of a copy; null for no text.
    pub(crate) fn hold_option(&mut self, text: Option<&[u8]>) -> *mut c_char {
        text.map_or(std::ptr::null_mut(), |text| self.hold(text))
    }
}

/// The text at an address; `None` for null.
///
/// # Safety
/// It points to a text that ends with NUL, or is null.
pub(crate) unsafe fn text(address: *const c_char) -> Option<Vec<u8>> {
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
pub(crate) unsafe fn bytes<'b>(address: *const c_char, length: i32) -> &'b [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller vouches for it.
        Ok(length) if length > 0 && !address.is_null() => unsafe { std::slice::from_raw_parts(address.cast(), length) },
        _ => &[],
    }
}

/// Attributes as C has them.
pub(crate) fn to_stat(from: &Stat) -> libc::stat {
    // SAFETY: it has only numbers.
    let mut to: libc::stat = unsafe { zeroed() };
    write_stat(from, &mut to);
    to
}

/// Writes attributes into those of C. What the API has not stays.
pub(crate) const fn write_stat(from: &Stat, to: &mut libc::stat) {
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
}

/// Attributes from C.
pub(crate) fn from_stat(from: &libc::stat) -> Stat {
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

/// Writes what has no address of what a packet says of a file.
pub(crate) fn write_save_head(from: &SavePacket, to: &mut SavePacketC) {
    write_stat(&from.stat, &mut to.statp);
    to.file_type = from.file_type;
    to.flags = from.flags;
    to.no_read = u8::from(from.no_read);
    to.portable = u8::from(from.portable);
    to.accurate_found = u8::from(from.accurate_found);
    to.stat_update = u8::from(from.stat_update);
    to.delta_seq = from.delta_seq;
    to.link_fi = from.link_fi;
}

/// What a packet says of a file, without objects and metadata.
///
/// # Safety
/// Its addresses are right or null.
pub(crate) unsafe fn from_save_head(from: &SavePacketC) -> SavePacket {
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

/// A packet of metadata, of a list with these totals.
///
/// # Safety
/// Its buffer has the length that it says.
pub(crate) unsafe fn from_metadata_packet(from: &MetaPacket, total_size: u32, total_count: u16) -> MetadataPacket {
    MetadataPacket {
        total_size,
        total_count,
        kind: from.kind,
        index: from.index,
        // SAFETY: the caller vouches for it.
        data: unsafe { bytes(from.buf.cast(), i32::try_from(from.buf_len).unwrap_or(i32::MAX)) }.to_vec(),
    }
}
