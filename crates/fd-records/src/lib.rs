//! What a volume holds: stream numbers, record headers, the attribute record and the payloads of the other streams.
//!
//! Encoders append to a `Vec<u8>` and allocate nothing else; decoders check every bound and borrow from their input.
//! Not here: sockets, files, clocks, and any knowledge of how a job runs. Names of users and groups, where a text
//! needs them, come from the caller ([`Names`], [`Identities`]).

mod accurate;
mod acl;
mod attributes;
mod cipher;
mod compression;
mod decimal;
mod digest;
pub mod digest_text;
mod file_type;
mod header;
pub mod listing;
mod lstat;
mod names;
mod number;
mod plugin_name;
mod replace;
mod stream;
#[cfg(test)]
mod test_bytes;
mod verify_packet;
pub mod xattr;

pub use accurate::AccurateEntry;
pub use acl::{Acl, AclEntry, AclError, AclTag, InvalidAcl};
pub use attributes::{Attributes, AttributesError, AttributesRecord};
pub use cipher::ContentCipher;
pub use compression::{Compression, CompressionHeader, Packing};
pub use digest::{DigestKind, DigestValue};
pub use file_type::FileType;
pub use header::{RecordHeader, RecordHeaderError, stream_header};
pub use lstat::{LStat, LStatError, Stat};
pub use names::{Identities, Names};
pub use plugin_name::PluginName;
pub use replace::Replace;
pub use stream::{DataLayout, Stream, StreamClass};
pub use verify_packet::{VerifyAttributes, VerifyDigest};
