//! What comes from the Storage Daemon: frames, the sequence of records in them, and how the data of
//! a record is packed.

mod lookahead;
mod records;
mod source;
mod unpack;
mod win32;

pub use records::{End, SequenceError};
pub use source::{RecordSource, SourceError};

pub(crate) use lookahead::{Lookahead, Seen};
pub(crate) use records::{Next, next_record};
pub(crate) use unpack::{UnpackError, Unpacked, Unpacker};
pub(crate) use win32::Win32Stream;
