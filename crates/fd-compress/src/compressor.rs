//! The face of the three algorithms for a backup: one block in, one record out.

use crate::error::CompressError;
use crate::{gzip, lzo1x, zstd};

/// What every algorithm can do. An implementation keeps its tables and buffers, never data of an earlier block.
pub(crate) trait CompressBlock: Send {
    /// See [`Compressor::compress`].
    fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError>;
}

/// Compresses blocks, each on its own, into what stands in a record. One per thread: it owns the algorithm's
/// working memory (16 KiB to some megabytes, by algorithm and level), which is reused from block to block.
pub struct Compressor(Box<dyn CompressBlock>);

impl Compressor {
    /// Records of stream 4, 7 or 23: one complete zlib stream each. `level` is 1 to 9, the digit of FileSet option
    /// `Z` (plain `GZIP` is 6); 0 stores.
    pub fn gzip(level: u8) -> Result<Self, CompressError> {
        Ok(Self(Box::new(gzip::Gzip::new(level)?)))
    }

    /// Records of stream 29, 30 or 32 with LZO1X data: FileSet option `Zo`.
    pub fn lzo() -> Self {
        Self(Box::new(lzo1x::Lzo::new()))
    }

    /// Records of stream 29, 30 or 32 with one zstd frame. `level` is 1 to 22; the Director's keywords make
    /// 1, 3, 10 and 19.
    pub fn zstd(level: i32) -> Result<Self, CompressError> {
        Ok(Self(Box::new(zstd::Zstd::new(level)?)))
    }

    /// Appends the record of `block` to `out`, which on an error is as it was. The record is made and kept even if
    /// it is longer than the block: there is no "stored" form. An incompressible block of 65536 bytes grows by
    /// less than 400 bytes.
    pub fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        self.0.compress(block, out)
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}
