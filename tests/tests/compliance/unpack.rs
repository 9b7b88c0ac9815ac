//! Undoes compression in records, with decoders that are not the product's, so that volumes of two
//! encoders can be compared.

use std::io::Read as _;

use bed::Record;

/// Stream numbers (reference 04 §7).
const GZIP: i32 = 4;
const SPARSE_GZIP: i32 = 7;
pub(crate) const COMPRESSED: i32 = 29;
pub(crate) const DATA: i32 = 2;
const SPARSE_COMPRESSED: i32 = 30;
/// The address in front of a block of a sparse file.
const ADDRESS: usize = 8;
/// Magic number, length, level and version in front of an LZO block (reference 04 §8.6).
const HEADER: usize = 12;
/// A block before compression is never longer.
const LARGEST: usize = 1 << 17;
const LZO: &[u8] = b"LZOX";
const ZSTD: &[u8] = b"LZOY";
/// What stays in front of the content of a compressed block: its header without the length.
pub(crate) const FRONT: usize = 8;

/// The record with its content unpacked. What precedes the compressed bytes and does not depend on
/// the encoder stays in front.
pub(crate) fn unpack(mut record: Record) -> Result<Record, String> {
    let at = match record.stream & 0x7ff {
        SPARSE_GZIP | SPARSE_COMPRESSED => ADDRESS,
        _ => 0,
    };
    let problem = |what: &str| format!("FileIndex {} stream {}: {what}", record.file_index, record.stream);
    let (front, packed) = record.data.split_at_checked(at).ok_or_else(|| problem("shorter than its address"))?;
    let data = match record.stream & 0x7ff {
        GZIP | SPARSE_GZIP => {
            let mut content = front.to_vec();
            flate2::read::ZlibDecoder::new(packed)
                .read_to_end(&mut content)
                .map_err(|error| problem(&error.to_string()))?;
            content
        }
        COMPRESSED | SPARSE_COMPRESSED => {
            let (header, block) = packed.split_at_checked(HEADER).ok_or_else(|| problem("shorter than its header"))?;
            let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            if !(header.starts_with(LZO) || header.starts_with(ZSTD)) || length as usize != block.len() {
                return Err(problem(&format!("header {header:02x?} before {} bytes", block.len())));
            }
            let content = if header.starts_with(LZO) {
                lzokay_native::decompress_all(block, Some(LARGEST)).map_err(|error| problem(&format!("{error:?}")))?
            } else {
                zstd::bulk::decompress(block, LARGEST).map_err(|error| problem(&error.to_string()))?
            };
            // Not the length, which depends on the encoder.
            [front, &header[..4], &header[8..], &content].concat()
        }
        _ => return Ok(record),
    };
    record.data = data;
    Ok(record)
}
