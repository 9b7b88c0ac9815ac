//! What a volume holds: stream numbers, record headers, the attribute record and the payloads of the other streams.
//!
//! Encoders append to a `Vec<u8>` and allocate nothing else; decoders check every bound and borrow from their input.
//! Not here: sockets, files, clocks, and any knowledge of how a job runs. Names of users and groups, where a text
//! needs them, come from the caller.

mod attributes;
mod decimal;
mod file_type;
mod header;
mod lstat;
mod number;
mod stream;
#[cfg(test)]
mod test_bytes;

pub use attributes::{Attributes, AttributesError, AttributesRecord};
pub use file_type::FileType;
pub use header::{RecordHeader, RecordHeaderError, stream_header};
pub use lstat::{LStat, LStatError, Stat};
pub use stream::Stream;
