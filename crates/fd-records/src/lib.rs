//! The contents of a volume, and the vocabulary that all crates share for them.
//!
//! The vocabulary is one table for each kind of fact: [`Stream`] (number, name, class of each
//! stream), [`DigestKind`], [`ContentCipher`], [`Compression`], [`FileType`], [`Replace`]. A new
//! stream or kind of digest is a row there.
//!
//! The records are pairs of an encoder, which appends to a `Vec<u8>`, and a decoder, which checks
//! every bound and borrows from its input. Not here: sockets, files, clocks, and how a job runs.
//! Names of users and groups come from the caller ([`Names`], [`Identities`]).
//! `examples/dump_stream.rs` prints the records of a stream.

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
