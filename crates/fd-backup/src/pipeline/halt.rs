//! Why a worker can't go on.

use fd_bsock::FrameError;
use fd_compress::CompressError;
use fd_crypto::DigestError;
use fd_crypto::pki::DataError;
use fd_messages::MessageType;
use fd_records::DigestKind;

use crate::digests::protect::Unprotected;
use crate::pipeline::exchange::Stopped;
use crate::pipeline::piece::{Event, Piece};
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
    Unprotected(Unprotected),
}

impl Halt {
    /// Adds the reason to a piece. `false` if there is none to be reported. `path` is the present
    /// entry.
    pub(crate) fn note(&self, path: &[u8], piece: &mut Piece) -> bool {
        if let Self::Unprotected(unprotected) = self {
            for text in &unprotected.errors {
                piece.note(Event::Message { kind: MessageType::Error, text: text.clone(), failed: false });
            }
        }
        let message = self.message(path);
        let is_told = message.is_some();
        if let Some(text) = message {
            piece.note(Event::Fatal { text });
        }
        is_told
    }

    /// The fatal message, if any; `path` is the present entry.
    fn message(&self, path: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Stopped => None,
            Self::Record(error) => Some(texts::record_refused(path, error)),
            Self::Compression(error) => Some(texts::compression_failed(*error)),
            Self::Digest(kind) => Some(texts::digest_failed(*kind)),
            Self::FileIndex => Some(texts::too_many_files()),
            Self::Unprotected(unprotected) => Some(unprotected.fatal.clone()),
        }
    }
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<FrameError> for Halt {
    fn from(error: FrameError) -> Self {
        Self::Record(error)
    }
}

impl From<DataError> for Halt {
    fn from(error: DataError) -> Self {
        Self::Unprotected(error.into())
    }
}

impl From<Unprotected> for Halt {
    fn from(unprotected: Unprotected) -> Self {
        Self::Unprotected(unprotected)
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
