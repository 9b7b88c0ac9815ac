//! The end of a channel.

use std::time::Instant;

use super::{Channel, Health};
use crate::ChannelError;
use crate::link::Link;
use crate::wire::Wait;

/// A connection that has sent everything; the peer has still to close. If it is dropped too early,
/// bytes that the peer has not read yet may be lost.
#[derive(Debug)]
#[must_use = "the peer may lose what was sent last"]
pub struct Farewell {
    link: Option<Link>,
    deadline: Option<Instant>,
}

impl Farewell {
    /// Waits until the peer has closed too, or its time is up.
    pub fn wait(self) {
        if let Some(mut link) = self.link {
            link.linger(Wait::Until(self.deadline));
        }
    }
}

impl Channel {
    /// Sends the rest, says good-bye (`close_notify` in TLS), and waits a little until the peer has
    /// closed too. A channel that is only dropped loses what was not flushed.
    ///
    /// # Errors
    /// What was sent last could not be handed to the kernel. How the peer leaves is no error.
    pub fn close(self) -> Result<(), ChannelError> {
        self.leave().map(Farewell::wait)
    }

    /// As [`Channel::close`], but leaves the waiting to the caller, which may have other work to do
    /// first.
    ///
    /// # Errors
    /// As [`Channel::close`].
    pub fn leave(mut self) -> Result<Farewell, ChannelError> {
        let deadline = Instant::now().checked_add(self.limits.goodbye);
        if self.health == Health::Failed || self.is_canceled() {
            return Ok(Farewell { link: None, deadline });
        }
        // No call would go on with a write that pauses.
        self.drop_what_comes(None);
        self.link.say_goodbye().map_err(|fault| self.failed(fault))?;
        Ok(Farewell { link: Some(self.link), deadline })
    }
}
