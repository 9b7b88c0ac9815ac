//! What the targets that read volumes share: records from memory, and a log that judges messages.

use fd_messages::{JobLog, MessageType};
use fd_restore::{RecordSource, SourceError};

/// The frames of a read session.
pub struct Frames(std::vec::IntoIter<Vec<u8>>, Vec<u8>);

impl Frames {
    pub fn new(frames: Vec<Vec<u8>>) -> Self {
        Self(frames.into_iter(), Vec::new())
    }
}

impl RecordSource for Frames {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        match self.0.next() {
            Some(frame) => {
                self.1 = frame;
                Ok(Some(&self.1))
            }
            None => Ok(None),
        }
    }
}

/// A log that keeps nothing. Each message must end its line.
pub struct Silent;

impl JobLog for Silent {
    fn message(&self, _kind: MessageType, text: &[u8]) {
        assert!(text.ends_with(b"\n"), "a message without an end");
    }

    fn wants(&self, _kind: MessageType) -> bool {
        true
    }
}
