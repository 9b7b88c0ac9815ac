//! One block of a file in, one record of a compressed stream out, and back again.
//!
//! [`Compressor`] appends the exact bytes of a record of stream 4 (GZIP: one complete zlib stream)
//! or of stream 29 (LZO, ZSTD: a 12-byte header and the compressed data); [`Decompressor`] undoes
//! it. One file per algorithm: `gzip`, [`lzo1x`] and `zstd` (reference 04 §8.5–8.6, 05 §7.2). The
//! header is that of `fd-records`.
//!
//! Not here: the 8-byte address of sparse records (it precedes the bytes made here), encryption,
//! threads, and the choice of the algorithm. Only buffers are kept from one block to the next: a
//! record depends on its block and on the algorithm alone.

mod compressor;
mod decompressor;
mod error;
mod gzip;
pub mod lzo1x;
mod zstd;

pub use compressor::Compressor;
pub use decompressor::{DEFAULT_LIMIT, Decompressor};
pub use error::{CompressError, DecompressError};
