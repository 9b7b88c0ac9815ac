//! The frame at the front of what has come.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fd_bsock::{FrameError, HEADER_LEN, Parsed, Signal, parse_up_to};

use super::{Channel, Health};
use crate::wire::Wait;
use crate::{ChannelError, Fault};

/// A whole frame at the front of the link's input.
pub(super) struct Frame {
    pub(super) content: Content,
    pub(super) consumed: usize,
}

pub(super) enum Content {
    Data { payload: Range<usize>, compressed: bool },
    Empty,
    Signal(Signal),
}

impl Channel {
    /// The next whole frame; without a timeout only one that is there. The clock is read only to
    /// wait.
    pub(super) fn next_frame(&mut self, timeout: Option<Duration>) -> Result<Option<Frame>, ChannelError> {
        self.take_back();
        let mut wait = None;
        loop {
            let needed = match parse_up_to(self.link.input(), self.incoming.largest) {
                Ok(Parsed::Need(needed)) => needed,
                Ok(Parsed::Data { payload, compressed, consumed }) => {
                    let payload = consumed - payload.len()..consumed;
                    return Ok(Some(Frame { content: Content::Data { payload, compressed }, consumed }));
                }
                Ok(Parsed::Empty { consumed }) => return Ok(Some(Frame { content: Content::Empty, consumed })),
                Ok(Parsed::Signal { signal, consumed }) => {
                    return Ok(Some(Frame { content: Content::Signal(signal), consumed }));
                }
                Err(error) => return Err(self.impossible(error)),
            };
            let wait = *wait.get_or_insert_with(|| match timeout {
                Some(timeout) => Wait::Until(Instant::now().checked_add(timeout)),
                None => Wait::No,
            });
            match self.link.fill(wait) {
                Ok(Some(0)) => return Err(self.ended(needed)),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
    }

    /// Notes that a frame is used; its bytes go with the next call.
    pub(super) fn take(&mut self, frame: &Frame) {
        self.incoming.lent = frame.consumed;
        self.incoming.count.fetch_add(1, Ordering::Relaxed);
        if matches!(frame.content, Content::Signal(Signal::Terminate)) {
            self.health = Health::Terminated;
        }
    }

    /// Ends the loan of the last frame.
    pub(super) fn take_back(&mut self) {
        self.link.consume(self.incoming.lent);
        self.incoming.lent = 0;
    }

    /// A frame that cannot be read. The stock daemon then acts as if it had received TERMINATE.
    fn impossible(&mut self, error: FrameError) -> ChannelError {
        self.health = Health::Terminated;
        self.error(Fault::Frame(error))
    }

    /// The peer has closed while `needed` bytes were wanted.
    fn ended(&mut self, needed: usize) -> ChannelError {
        let have = self.link.input().len();
        let fault = match have.checked_sub(HEADER_LEN) {
            Some(got) => Fault::ShortRead { expected: needed.saturating_sub(HEADER_LEN), got },
            None => Fault::Closed,
        };
        self.failed(fault)
    }
}
