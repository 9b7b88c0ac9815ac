//! Beginning and ending TLS.

use super::Channel;
use crate::{ChannelError, Fault, TlsSecret, TlsSide};

impl Channel {
    /// Makes a TLS handshake. What was received behind the last frame belongs to it. On a
    /// connection that has TLS already the new session takes the place of the old one; the peer
    /// does the same.
    ///
    /// With certificates, a client's must be signed by our authorities and be on our list, if that
    /// is asked for; a server's must be for the host that we connected to.
    ///
    /// # Errors
    /// After [`Fault::Handshake`], [`Fault::WrongKey`], [`Fault::HandshakeTimedOut`] and
    /// [`Fault::Certificate`] clear frames can still be sent.
    pub fn start_tls(&mut self, side: TlsSide, secret: TlsSecret<'_>) -> Result<(), ChannelError> {
        self.usable()?;
        self.take_back();
        let started = self.link.start_tls(side, secret, &self.peer.host, self.limits.handshake);
        if let Err(Fault::Handshake { certificates, .. }) = &started {
            self.certificate_errors.clone_from(certificates);
        }
        started.map_err(|fault| match fault {
            Fault::Handshake { .. }
            | Fault::WrongKey { .. }
            | Fault::HandshakeTimedOut { .. }
            | Fault::Certificate { .. }
                if !self.is_canceled() =>
            {
                self.error(fault)
            }
            _ => self.failed(fault),
        })
    }

    /// What is wrong with the chain of certificates of a failed handshake, in the stock daemon's
    /// words.
    pub fn certificate_errors(&self) -> &[String] {
        &self.certificate_errors
    }

    /// Leaves TLS without `close_notify`, as the peer does; the next frames are clear (reference 01
    /// §11.5). Does nothing on a clear connection.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn drop_tls(&mut self) -> Result<(), ChannelError> {
        self.usable()?;
        self.take_back();
        self.link.drop_tls().map_err(|fault| self.failed(fault))
    }
}
