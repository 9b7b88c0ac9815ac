//! Frames that cannot be read or made.

/// Why a frame is no good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The header announces, or the caller gave, more than [`crate::MAX_PAYLOAD`] bytes.
    #[error("packet of {len} bytes, at most {max} are allowed", max = crate::MAX_PAYLOAD)]
    TooBig {
        /// Length of the payload in bytes.
        len: usize,
    },
    /// The payload is marked as compressed but is no LZ4 block.
    #[error("compressed packet of {len} bytes is not an LZ4 block")]
    BadBlock {
        /// Length of the compressed payload in bytes.
        len: usize,
    },
    /// The LZ4 block would grow beyond [`crate::lz4::MAX_DECOMPRESSED`] bytes.
    #[error("compressed packet of {len} bytes would grow beyond {max}", max = crate::lz4::MAX_DECOMPRESSED)]
    Expands {
        /// Length of the compressed payload in bytes.
        len: usize,
    },
    /// A dedup command between daemons (reference 01 §1.2), which no community daemon sends.
    #[error("dedup command packet of {len} bytes, which this daemon does not speak")]
    DedupCommand {
        /// Length of the payload in bytes.
        len: usize,
    },
}
