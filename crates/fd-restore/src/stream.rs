//! What comes from the Storage Daemon: frames, the sequence of records in them, and the parts of a Windows stream.

mod source;
mod win32;

pub(crate) mod records;

pub use records::{End, SequenceError};
pub use source::{FrameMemory, KeptFrame, RecordSource, SourceError};

pub(crate) use win32::Win32Stream;
