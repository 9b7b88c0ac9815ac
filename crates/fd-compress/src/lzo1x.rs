//! LZO1X, the algorithm of FileSet option `Zo`: an encoder of streams that the C library reads, and
//! a bounds-checked decoder of every valid stream (reference 08, whose section numbers are cited as
//! §).
//!
//! Written from the description of the format alone. No `unsafe`.

mod decode;
mod encode;
mod fast;
#[cfg(test)]
#[expect(clippy::string_slice, reason = "a test that can't go on fails")]
mod tests;
mod write;

pub use decode::{Error, decompress};
pub use encode::LzoEncoder;
