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

mod director;
mod record;
#[cfg(test)]
mod test_bytes;
mod text;
mod vocabulary;

pub use director::accurate::AccurateEntry;
pub use director::file_event_packet::VerifyFileEvent;
pub use director::listing;
pub use director::verify_packet::{VerifyAttributes, VerifyDigest};
pub use record::acl::{Acl, AclEntry, AclHere, AclTag};
pub use record::attributes::{Attributes, AttributesRecord};
pub use record::file_event::FileEventRecord;
pub use record::header::{RecordHeader, stream_header};
pub use record::lstat::{LStat, Stat};
pub use record::plugin_metadata::{PluginMetadata, PluginMetadataError};
pub use record::plugin_name::PluginName;
pub use record::plugin_object::PluginObjectRecord;
pub use record::restore_object::RestoreObjectRecord;
pub use record::xattr;
pub use text::digest_text;
pub use text::names::{Identities, Names};
pub use vocabulary::cipher::ContentCipher;
pub use vocabulary::compression::{Compression, CompressionHeader, Packing};
pub use vocabulary::digest::{DigestKind, DigestValue};
pub use vocabulary::file_type::FileType;
pub use vocabulary::replace::Replace;
pub use vocabulary::stream::{DataLayout, MetadataKind, Stream, StreamClass};
