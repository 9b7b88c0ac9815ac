//! What the volume says of a file's data, and what a digest of the restored data says about that.

use fd_crypto::pki::Signature;
use fd_records::DigestValue;
use nix::errno::Errno;

/// What the volume says of the data of a file.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    /// That it has this digest.
    Digest(DigestValue),
    /// That this is its signature, by a known signer.
    Signature(Signature),
}

/// What came out for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// Nothing: there is no digest of the kind that is needed.
    None,
    /// Nothing: the job was cancelled before.
    Cancelled,
    /// It has this digest.
    Has(DigestValue),
    /// It has this one, and another process has written to it meanwhile.
    Changed(DigestValue),
    /// It could not be read.
    Unreadable(Errno),
}

/// The number of a file whose finding comes later, in the order of the files.
pub(crate) type Ticket = u64;

/// A file whose finding is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// Its ticket.
    pub(crate) ticket: Ticket,
    /// Its name, as messages show it.
    pub(crate) name: &'a [u8],
    /// What the volume says of its data.
    pub(crate) recorded: &'a Recorded,
    /// What came out.
    pub(crate) finding: Finding,
}
