//! Receiving frames, one at a time or gathered.

use std::time::Duration;

use fd_bsock::{Signal, decompress_behind};
use rustix::event::{PollFd, PollFlags, poll};

use super::Channel;
use super::frames::Frames;
use super::front::{Content, Frame};
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
}
