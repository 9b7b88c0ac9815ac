//! The wire's alphabet: frames, signals, LZ4 frames, Hello and CRAM-MD5 texts, the two command
//! scanners.
//!
//! Every connection of every Bacula daemon carries the same frames, in clear or inside TLS
//! (reference 01 §1). Here bytes become types and types become bytes; no sockets, files, threads or
//! clocks. `examples/frames.rs` prints the frames of a conversation.

pub mod cram;
pub mod hello;
pub mod lz4;
pub mod scan;

mod count;
mod effort;
mod encoder;
mod error;
mod frame;
mod signal;
mod texts;

pub use count::CommCount;
pub use encoder::Encoder;
pub use error::FrameError;
pub use frame::{HEADER_LEN, MAX_PAYLOAD, Parsed, parse, parse_up_to};
pub use lz4::{decompress, decompress_behind};
pub use signal::Signal;
