//! GZIP in Bacula's sense: every record is one complete zlib stream (reference 04 §8.5, 05 §7.2).

use libdeflater::{CompressionLvl, DecompressionError};

use crate::error::CompressError;

/// zlib's code for "output buffer too small".
const Z_BUF_ERROR: i32 = -5;

/// For each of zlib's levels: the two bytes with which zlib itself starts such a stream, and the
/// fastest level of libdeflate that stays within 2 % of zlib's size on text, programs and logs
/// (`bench/README.md`, and the bench `codecs`).
const LEVELS: [([u8; 2], i32); 10] = [
    ([0x78, 0x01], 0),
    ([0x78, 0x01], 1),
    ([0x78, 0x5e], 1),
    ([0x78, 0x5e], 2),
    ([0x78, 0x5e], 3),
    ([0x78, 0x5e], 5),
    ([0x78, 0x9c], 6),
    ([0x78, 0xda], 6),
    ([0x78, 0xda], 7),
    ([0x78, 0xda], 7),
];

/// The compressor of one level.
pub(crate) struct Gzip {
    deflate: libdeflater::Compressor,
    head: [u8; 2],
    /// Room for the largest record so far. It is kept, because a new one would be zeroed for every
    /// block.
    buffer: Vec<u8>,
}

impl Gzip {
    /// Level 0 to 9.
    pub(crate) fn new(level: u8) -> Result<Self, CompressError> {
        let bad_level = CompressError::Level { algorithm: "GZIP", level: i32::from(level) };
        let (head, effort) = *LEVELS.get(usize::from(level)).ok_or(bad_level)?;
        let effort = CompressionLvl::new(effort).map_err(|_| bad_level)?;
        Ok(Self { deflate: libdeflater::Compressor::new(effort), head, buffer: Vec::new() })
    }

    /// The zlib stream of a block.
    pub(crate) fn compress(&mut self, block: &[u8]) -> Result<&[u8], CompressError> {
        let bound = self.deflate.zlib_compress_bound(block.len());
        if self.buffer.len() < bound {
            self.buffer.resize(bound, 0);
        }
        let len = self
            .deflate
            .zlib_compress(block, &mut self.buffer)
            .map_err(|libdeflater::CompressionError::InsufficientSpace| CompressError::Deflate { code: Z_BUF_ERROR })?;
        if let Some(head) = self.buffer.first_chunk_mut() {
            *head = self.head;
        }
        Ok(self.buffer.get(..len).unwrap_or_default())
    }
}

/// Why a zlib stream could not be inflated.
pub(crate) enum InflateError {
    /// The data needs more room than `out` has.
    Room,
    /// It is cut, damaged, or no zlib stream.
    Data,
}

/// Writes the data of the zlib stream at the front of `record` to `out` and returns their number.
/// Bytes after the stream are ignored, as the stock daemon does.
pub(crate) fn inflate(
    state: &mut libdeflater::Decompressor,
    record: &[u8],
    out: &mut [u8],
) -> Result<usize, InflateError> {
    state.zlib_decompress(record, out).map_err(|error| match error {
        DecompressionError::InsufficientSpace => InflateError::Room,
        DecompressionError::BadData => InflateError::Data,
    })
}
