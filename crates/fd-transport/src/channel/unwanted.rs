//! What a peer says while its answer isn't asked for yet.

use fd_bsock::Signal;

use super::front::{Content, Frame};
use super::{Channel, Unwanted};

/// So many frames are dropped between two tries to write.
const DROPPED_AT_ONCE: usize = 100_000;

impl Channel {
    /// While a write stands still, what the peer sends is dropped from now on, as with
    /// [`Channel::drop_what_came`]: a peer that waits for us to read would not read, either. With
    /// `None` it stays where it is.
    pub fn drop_what_comes(&mut self, unwanted: Option<Unwanted>) {
        self.incoming.unwanted = unwanted;
        if let Some(wire) = self.link.wire_mut() {
            wire.pause_writes(unwanted.map(|unwanted| unwanted.every));
        }
    }

    /// Drops the unwanted frames that are there, without waiting. The first frame that is wanted
    /// stays, with all behind it, and so does TERMINATE; an end or an error is returned by the next
    /// call that receives or sends.
    pub fn drop_what_came(&mut self) {
        let Some(unwanted) = self.incoming.unwanted else { return };
        let health = self.health;
        for _ in 0..DROPPED_AT_ONCE {
            match self.next_frame(None) {
                Ok(Some(frame)) if self.is_unwanted(&frame, unwanted) => self.take(&frame),
                Ok(_) | Err(_) => break,
            }
        }
        self.health = health;
    }

    fn is_unwanted(&self, frame: &Frame, unwanted: Unwanted) -> bool {
        match &frame.content {
            Content::Data { payload, compressed: false } => {
                (unwanted.is_text)(self.link.input().get(payload.clone()).unwrap_or_default())
            }
            Content::Data { compressed: true, .. } | Content::Empty => true,
            Content::Signal(signal) => *signal != Signal::Terminate,
        }
    }
}
