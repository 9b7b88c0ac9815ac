//! Why a worker can't go on.

use fd_bsock::FrameError;
use fd_compress::CompressError;
use fd_crypto::DigestError;
use fd_crypto::pki::DataError;
use fd_messages::MessageType;
use fd_plugins::Gone;
use fd_records::DigestKind;

use crate::exchange::Stopped;
use crate::exchange::piece::{Event, Piece};
use crate::texts;

/// Why a worker stops in the middle of its work.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The pipeline is stopped.
    Stopped,
    /// A record is too long for a frame.
    Record(FrameError),
    /// A block can't be compressed.
    Compression(CompressError),
    /// A digest can't be computed.
    Digest(DigestKind),
    /// More files than a FileIndex can count.
    FileIndex,
    /// A file can't be encrypted or signed as configured.
    Protection(ProtectionError),
    /// A plugin is gone, or can't be reached any more.
    Plugin(Gone),
    /// This fatal message ends the job.
    Fatal(Vec<u8>),
    /// A fatal message with this text is in the stream already.
    Ended(Vec<u8>),
}

impl Halt {
    /// Adds the reason to a piece. `false` if there is none to be reported. `path` is the present
    /// entry.
    pub(crate) fn note(&self, path: &[u8], piece: &mut Piece) -> bool {
        let text = match self {
            Self::Stopped => return false,
            // The job is over already: it is canceled, or has had a fatal message.
            Self::Plugin(gone) if gone.canceled => {
                piece.note(Event::Ended { text: gone.text.clone() });
                return true;
            }
            Self::Plugin(gone) => gone.text.clone(),
            Self::Fatal(text) => text.clone(),
            Self::Ended(text) => {
                piece.note(Event::Ended { text: text.clone() });
                return true;
            }
            Self::Record(error) => texts::record_refused(path, error),
            Self::Compression(error) => texts::compression_failed(*error),
            Self::Digest(kind) => texts::digest_failed(*kind),
            Self::FileIndex => texts::too_many_files(),
            Self::Protection(error) => {
                for text in &error.errors {
                    piece.note(Event::Message { kind: MessageType::Error, text: text.clone(), failed: false });
                }
                error.fatal.clone()
            }
        };
        piece.note(Event::Fatal { text });
        true
    }
}

/// Why data can't be protected, as messages.
#[derive(Debug)]
pub(crate) struct ProtectionError {
    /// The errors of OpenSSL, as messages.
    pub(crate) errors: Vec<Vec<u8>>,
    /// The message that ends the job.
    pub(crate) fatal: Vec<u8>,
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<Gone> for Halt {
    fn from(gone: Gone) -> Self {
        Self::Plugin(gone)
    }
}

impl From<FrameError> for Halt {
    fn from(error: FrameError) -> Self {
        Self::Record(error)
    }
}

impl From<DataError> for Halt {
    fn from(error: DataError) -> Self {
        Self::Protection(error.into())
    }
}

impl From<ProtectionError> for Halt {
    fn from(error: ProtectionError) -> Self {
        Self::Protection(error)
    }
}

impl From<DigestError> for Halt {
    fn from(error: DigestError) -> Self {
        Self::Digest(error.kind())
    }
}

impl From<CompressError> for Halt {
    fn from(error: CompressError) -> Self {
        Self::Compression(error)
    }
}
