//! The kinds of metadata that records of their own hold.

use fd_records::{Stream, StreamClass};

/// What a metadata record holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataKind {
    /// An ACL.
    Acl,
    /// Extended attributes.
    Xattr,
}

impl MetadataKind {
    /// That of a stream of metadata.
    pub fn of(stream: Stream) -> Self {
        if stream.class() == StreamClass::Acl { Self::Acl } else { Self::Xattr }
    }

    /// As the summaries of a job call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Acl => "acl",
            Self::Xattr => "xattr",
        }
    }
}
