//! Where the records come from.

use std::time::Duration;

/// The frames of a read session between `3000 OK data` and the end of the data (reference 05 §2.2
/// to §2.5).
///
/// The source handles signals that do not concern the data (heartbeats, polls).
pub trait RecordSource {
    /// The payload of the next data frame, empty frames included. `None` where the data ends: at
    /// `EOD`, `EOD_POLL` or `TERMINATE`. Fails where the connection is lost or a frame is none.
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError>;

    /// Whether [`Self::next_frame`] would return within about `patience`. If not, deferred work is
    /// done meanwhile.
    fn is_near(&mut self, _patience: Duration) -> bool {
        true
    }
}

/// Why no frame came; the text of the system's or the protocol's error, as a message shows it after
/// `ERR=`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);
