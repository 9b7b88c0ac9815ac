//! LZO1X, the algorithm of FileSet option `Zo`: streams that the C library reads, and a bounds-checked reader of
//! every valid stream (reference 08, whose section numbers stand in the comments as §).
//!
//! Written from the description of the format alone. No `unsafe`.

mod decode;
mod encode;
mod fast;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "a test that can't go on fails")]
mod vectors;
mod write;

pub use decode::{Error, decompress};
pub use encode::Encoder;

use crate::compressor::CompressBlock;
use crate::error::CompressError;
use crate::header;

/// Makes records with LZO data.
pub(crate) struct Lzo {
    encoder: Encoder,
}

impl Lzo {
    pub(crate) fn new() -> Self {
        Self { encoder: Encoder::new() }
    }
}

impl CompressBlock for Lzo {
    fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let stream = self.encoder.compress(block).map_err(CompressError::Lzo)?;
        out.extend_from_slice(&header::encode(header::MAGIC_LZO, stream.len())?);
        out.extend_from_slice(stream);
        Ok(())
    }
}
