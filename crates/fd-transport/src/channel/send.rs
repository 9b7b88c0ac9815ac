//! Sending frames.

use fd_bsock::{CommCount, Encoder, FrameError, Signal};

use super::Channel;
use crate::{ChannelError, Fault};

impl Channel {
    /// Sends one frame with this payload.
    ///
    /// # Errors
    /// [`Fault::Oversized`] above [`fd_bsock::MAX_PAYLOAD`]; otherwise the connection is of no use
    /// any more.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), ChannelError> {
        self.encode(|encoder, output| encoder.data(output, payload))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn signal(&mut self, signal: Signal) -> Result<(), ChannelError> {
        self.encode(|encoder, output| {
            encoder.signal(output, signal);
            Ok(())
        })
    }

    fn encode(
        &mut self,
        frame: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<(), FrameError>,
    ) -> Result<(), ChannelError> {
        self.usable()?;
        let Some(output) = self.link.output() else {
            return Err(self.failed(Fault::HasErrors));
        };
        match frame(&mut self.encoder, output) {
            Ok(()) => {}
            Err(FrameError::TooBig { len }) => return Err(self.error(Fault::Oversized { len })),
            Err(error) => return Err(self.error(Fault::Frame(error))),
        }
        self.count += self.encoder.take_count();
        let pushed = self.link.push();
        self.go_on(pushed)
    }

    /// Sends frames that are encoded already; `count` is what their encoder counted.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), ChannelError> {
        self.usable()?;
        self.count += count;
        let pushed = self.link.push_frames(frames);
        self.go_on(pushed)
    }

    /// Hands everything that was sent so far to the kernel.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn flush(&mut self) -> Result<(), ChannelError> {
        self.usable()?;
        let flushed = self.link.flush();
        self.go_on(flushed)
    }

    /// Ends a write: one that stands still goes on after a look at what the peer sends.
    fn go_on(&mut self, mut written: Result<(), Fault>) -> Result<(), ChannelError> {
        while written.is_ok() && self.link.is_stalled() {
            self.drop_what_came();
            written = self.link.flush();
        }
        written.map_err(|fault| self.failed(fault))
    }
}
