//! Where the records come from.

use std::sync::Arc;
use std::time::Duration;

/// Memory that frames stand in. Whoever holds it can look at them later; it is not used again as long.
pub type FrameMemory = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A frame, and the memory that it stands in.
pub type KeptFrame<'a> = (&'a [u8], Option<&'a FrameMemory>);

/// The frames of a read session between `3000 OK data` and the end of the data (reference 05 §2.2 to §2.5).
///
/// Signals that have nothing to do with the data (heartbeats, polls) are the source's business.
pub trait RecordSource {
    /// The payload of the next data frame, empty frames included. `None` where the data ends: at `EOD`, `EOD_POLL` or
    /// `TERMINATE`. Fails where the connection is lost or a frame is none.
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError>;

    /// The same with the memory that the frame stands in, if that can be held longer than the frame is lent.
    fn next_kept(&mut self) -> Result<Option<KeptFrame<'_>>, SourceError> {
        Ok(self.next_frame()?.map(|frame| (frame, None)))
    }

    /// Whether [`Self::next_frame`] would not wait long: not much more than `patience`. While it waits, what was put off
    /// can be done.
    fn is_near(&mut self, _patience: Duration) -> bool {
        true
    }
}

/// Why no frame came; the text of the system's or the protocol's error, as a message shows it behind `ERR=`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);
