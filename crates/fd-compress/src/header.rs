//! The 12 bytes in front of LZO and ZSTD data: magic, length, level, version, big-endian (reference 04 §8.6).

use crate::error::{CompressError, DecompressError};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 12;
/// "LZOX": one LZO1X stream follows.
pub const MAGIC_LZO: u32 = 0x4c5a_4f58;
/// "LZOY": one zstd frame follows.
pub const MAGIC_ZSTD: u32 = 0x4c5a_4f59;
/// The only version of the header.
pub const VERSION: u16 = 1;

/// The header of `len` compressed bytes. The level field is 0 whatever the level was, as the stock daemon writes it.
pub(crate) fn encode(magic: u32, len: usize) -> Result<[u8; HEADER_LEN], CompressError> {
    let len = u32::try_from(len).map_err(|_| CompressError::TooLong { len })?;
    let [m0, m1, m2, m3] = magic.to_be_bytes();
    let [l0, l1, l2, l3] = len.to_be_bytes();
    let [v0, v1] = VERSION.to_be_bytes();
    Ok([m0, m1, m2, m3, l0, l1, l2, l3, 0, 0, v0, v1])
}

/// Magic and compressed data of a record. Checks in the order of reference 05 §7.2: version, then length; the
/// magic is the caller's to judge.
pub(crate) fn decode(record: &[u8]) -> Result<(u32, &[u8]), DecompressError> {
    let Some((&[m0, m1, m2, m3, l0, l1, l2, l3, _, _, v0, v1], data)) = record.split_first_chunk::<HEADER_LEN>() else {
        return Err(DecompressError::ShortHeader { len: record.len() });
    };
    let got = u16::from_be_bytes([v0, v1]);
    if got != VERSION {
        return Err(DecompressError::HeaderVersion { got, want: VERSION });
    }
    let comp_len = u32::from_be_bytes([l0, l1, l2, l3]);
    if u32::try_from(data.len()) != Ok(comp_len) {
        return Err(DecompressError::HeaderSize { comp_len, msg_len: record.len() });
    }
    Ok((u32::from_be_bytes([m0, m1, m2, m3]), data))
}
