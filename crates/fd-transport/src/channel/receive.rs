//! Receiving frames, one at a time or gathered.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fd_bsock::{FrameError, HEADER_LEN, Parsed, Signal, decompress_behind, parse_up_to};
use rustix::event::{PollFd, PollFlags, poll};

use super::frames::Frames;
use super::{Channel, Health};
use crate::wire::Wait;
use crate::{ChannelError, Fault};

/// What one call of [`Channel::recv`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'a> {
    /// The payload of a frame, decompressed.
    Data(&'a [u8]),
    /// A frame without payload.
    Empty,
    /// A signal.
    Signal(Signal),
}

/// What one call of [`Channel::gather`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gathered {
    /// A frame, empty or not; it is the last one of the [`Frames`] now.
    Frame,
    /// A signal.
    Signal(Signal),
}

/// What a peer may say while its answer isn't asked for yet.
#[derive(Clone, Copy, Debug)]
pub struct Unwanted {
    /// How long a write stands still between two looks.
    pub every: Duration,
    /// Whether the text of a frame is dropped. Signals and compressed frames are.
    pub is_text: fn(&[u8]) -> bool,
}

/// So many frames are dropped between two tries to write.
const DROPPED_AT_ONCE: usize = 100_000;

/// Waits until there is something to receive on one of two channels, at most this long. Both must
/// have been emptied with [`Channel::try_recv`] before; a channel that has failed counts as one
/// with something to receive.
pub fn wait_for_either(one: &Channel, other: &Channel, longest: Duration) {
    let longest = rustix::event::Timespec::try_from(longest).ok();
    let sockets = [one, other].map(|channel| channel.link.wire().and_then(|wire| wire.socket().upgrade()));
    let [Some(one), Some(other)] = sockets else { return };
    let mut asked = [PollFd::new(&*one, PollFlags::IN), PollFd::new(&*other, PollFlags::IN)];
    // Interrupted or not, the caller tries both.
    let _looked = poll(&mut asked, longest.as_ref());
}

/// A whole frame at the front of the link's input.
struct Frame {
    content: Content,
    consumed: usize,
}

enum Content {
    Data { payload: Range<usize>, compressed: bool },
    Empty,
    Signal(Signal),
}

impl Channel {
    /// Waits for one frame, after flushing. The payload is lent until the next call.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] leaves the connection as it was, a frame that has begun included.
    /// [`Fault::Closed`] is the end between two frames. After anything else, too, nothing more can
    /// be received.
    pub fn recv(&mut self, timeout: Duration) -> Result<Received<'_>, ChannelError> {
        self.flush()?;
        match self.next_frame(Some(timeout))? {
            Some(frame) => self.lend(&frame),
            None => Err(self.error(Fault::TimedOut { after: timeout })),
        }
    }

    /// A frame that is there already, without waiting and without flushing.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Received<'_>>, ChannelError> {
        self.usable()?;
        match self.next_frame(None)? {
            Some(frame) => self.lend(&frame).map(Some),
            None => Ok(None),
        }
    }

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

    /// The next whole frame; without a timeout only one that is there. The clock is read only to
    /// wait.
    fn next_frame(&mut self, timeout: Option<Duration>) -> Result<Option<Frame>, ChannelError> {
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

    /// Appends one frame to `frames`, where it came in; otherwise as [`Channel::recv`], and without
    /// a timeout as [`Channel::try_recv`]. Its content is available after [`Channel::deliver`],
    /// which comes before anything else that receives. A caller that gathers more than 256 KiB may
    /// find the connection's buffer full.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn gather(&mut self, frames: &mut Frames, timeout: Option<Duration>) -> Result<Option<Gathered>, ChannelError> {
        match timeout {
            Some(_) => self.flush()?,
            None => self.usable()?,
        }
        self.keep(!frames.is_empty());
        let Some(frame) = self.next_frame(timeout)? else {
            return timeout.map_or(Ok(None), |after| Err(self.error(Fault::TimedOut { after })));
        };
        self.take(&frame);
        let (payload, compressed) = match frame.content {
            Content::Empty => (0..0, false),
            Content::Signal(signal) => return Ok(Some(Gathered::Signal(signal))),
            Content::Data { payload, compressed } => (payload, compressed),
        };
        if compressed {
            let payload = self.link.input().get(payload).unwrap_or_default();
            frames.push_compressed(payload).map_err(|error| self.failed(Fault::Frame(error)))?;
        } else {
            let start = self.link.buffer().map_or(0, |buffer| buffer.start());
            frames.push(start.saturating_add(payload.start)..start.saturating_add(payload.end));
        }
        self.keep(true);
        Ok(Some(Gathered::Frame))
    }

    /// Hands over the memory of what was gathered, so that it can be looked at.
    pub fn deliver(&mut self, frames: &mut Frames) {
        self.take_back();
        if let Some(buffer) = self.link.buffer() {
            frames.take_over(buffer);
        }
    }

    fn keep(&mut self, keeps: bool) {
        if let Some(buffer) = self.link.buffer() {
            buffer.keep(keeps);
        }
    }

    /// Notes that a frame is used; its bytes go with the next call.
    fn take(&mut self, frame: &Frame) {
        self.incoming.lent = frame.consumed;
        self.incoming.count.fetch_add(1, Ordering::Relaxed);
        if matches!(frame.content, Content::Signal(Signal::Terminate)) {
            self.health = Health::Terminated;
        }
    }

    fn lend(&mut self, frame: &Frame) -> Result<Received<'_>, ChannelError> {
        self.take(frame);
        let (payload, compressed) = match &frame.content {
            Content::Empty => return Ok(Received::Empty),
            Content::Signal(signal) => return Ok(Received::Signal(*signal)),
            Content::Data { payload, compressed } => (payload.clone(), *compressed),
        };
        if compressed {
            let block = self.link.input().get(payload).unwrap_or_default();
            return match decompress_behind(block, &mut self.incoming.decompressed, 0) {
                Ok(end) => Ok(Received::Data(self.incoming.decompressed.get(..end).unwrap_or_default())),
                Err(error) => Err(self.failed(Fault::Frame(error))),
            };
        }
        Ok(Received::Data(self.link.input().get(payload).unwrap_or_default()))
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
