//! What the volume records about a file's data, and the outcome of comparing the restored data.

use fd_crypto::pki::Signature;
use fd_records::DigestValue;
use nix::errno::Errno;

/// What the volume records about the data of a file.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    /// Its digest.
    Digest(DigestValue),
    /// Its signature, by a known signer.
    Signature(Signature),
}

/// The outcome for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// Nothing: there is no digest of the kind that is needed.
    None,
    /// Nothing: the job was canceled before.
    Canceled,
    /// It has this digest.
    Has(DigestValue),
    /// It has this one, and another process has written to it meanwhile.
    Changed(DigestValue),
    /// It could not be read.
    Unreadable(Errno),
}

/// The number of a file whose outcome comes later, in the order of the files.
pub(crate) type Ticket = u64;

/// A file with its outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a> {
    /// Its ticket.
    pub(crate) ticket: Ticket,
    /// Its name, as messages show it.
    pub(crate) name: &'a [u8],
    /// What the volume records about its data.
    pub(crate) recorded: &'a Recorded,
    /// The outcome.
    pub(crate) finding: Finding,
}
