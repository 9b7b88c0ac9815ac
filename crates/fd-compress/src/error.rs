//! The errors, with the numbers for the messages about them (reference 04 §8.5–8.6, 05 §7.2).
//!
//! The texts here are for the daemon's log. The caller writes the job messages, which also name the
//! file.

use crate::lzo1x;

/// Why a block could not be compressed. All of them end the job in the stock daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompressError {
    /// The algorithm has no such level.
    #[error("{algorithm} has no level {level}")]
    Level {
        /// "GZIP" or "ZSTD".
        algorithm: &'static str,
        /// The requested level.
        level: i32,
    },
    /// `Compression deflate error: %d`
    #[error("deflate failed with code {code}")]
    Deflate {
        /// In zlib's numbering (-5: the output buffer was too small).
        code: i32,
    },
    /// `Compression LZO error: %d`, the number by [`lzo1x::Error::code`]. No block is known to
    /// cause it.
    #[error("LZO1X: {0}")]
    Lzo(lzo1x::Error),
    /// `Compression ZSTD error: %d`
    #[error("zstd failed with code {code}")]
    Zstd {
        /// In zstd's numbering, negative.
        code: i32,
    },
    /// `Compression ZSTD error. Unable to allocate the ZSTD context`
    #[error("zstd has no memory for its context")]
    ZstdContext,
    /// The compressed block does not fit into the 32-bit length of the record header.
    #[error("{len} compressed bytes do not fit into the header's 32-bit length")]
    TooLong {
        /// Compressed length in bytes.
        len: usize,
    },
}

/// Why a record could not be decompressed. The record is lost; the output is as it was before the
/// call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// `Uncompression error on file %s. ERR=Zlib data error`: cut, damaged, or no zlib stream at
    /// all.
    #[error("the record is not a complete, undamaged zlib stream")]
    ZlibData,
    /// The record is shorter than the 12 bytes of its header. (The stock daemon does not check
    /// that.)
    #[error("a compression header has 12 bytes, the record has {len}")]
    ShortHeader {
        /// Length of the record in bytes.
        len: usize,
    },
    /// `Compressed header version error. Got=0x%x want=0x%x`
    #[error("compression header version: got {got:#x}, expected {want:#x}")]
    HeaderVersion {
        /// The version in the record.
        got: u16,
        /// The only version, 1.
        want: u16,
    },
    /// `Compressed header size error. comp_len=%d, msglen=%d`
    #[error("compression header announces {comp_len} bytes, the whole record has {msg_len}")]
    HeaderSize {
        /// Length of the compressed data as the header says.
        comp_len: u32,
        /// Length of the record with its header.
        msg_len: usize,
    },
    /// `Compression algorithm 0x%x found, but not supported!`
    #[error("unknown compression magic {magic:#010x}")]
    Algorithm {
        /// The first four bytes of the record.
        magic: u32,
    },
    /// `LZO uncompression error on file %s. ERR=%d`, the number by [`lzo1x::Error::code`].
    #[error("LZO1X: {0}")]
    Lzo(lzo1x::Error),
    /// `ZSTD uncompression error on file %s. Invalid content size. ERR=%d`
    #[error("zstd: no content size in the frame (code {code})")]
    ZstdContentSize {
        /// -1: the frame does not say; -2: no zstd frame.
        code: i32,
    },
    /// `ZSTD uncompression error on file %s. Decompress error. ERR=%d`
    #[error("zstd: decompression failed with code {code}")]
    ZstdDecompress {
        /// In zstd's numbering, negative.
        code: i32,
    },
    /// zstd has no memory for its context.
    #[error("zstd has no memory for its context")]
    ZstdContext,
    /// The data is longer than the limit of the [`crate::Decompressor`]. (The stock daemon has no
    /// limit.)
    #[error("the record holds more than {limit} bytes of data")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}
