//! Beginning and ending TLS.

use super::Channel;
use crate::tls::{Secret, Side};
use crate::{Certificates, ChannelError, Fault};

impl Channel {
    /// Makes a TLS handshake as the side that sent `starttls`, with the key as it is (no decoding). What was received
    /// behind the last frame belongs to the handshake. On a connection that has TLS already the new one takes its place;
    /// the peer does the same.
    ///
    /// # Errors
    /// After [`Fault::Handshake`] and [`Fault::HandshakeTimedOut`] clear frames can still be sent.
    pub fn start_tls_psk_server(&mut self, key: &[u8]) -> Result<(), ChannelError> {
        self.start_tls(Secret::Key(key), Side::Server)
    }

    /// Makes a TLS handshake as the side that received `starttls`; otherwise as [`Channel::start_tls_psk_server`].
    ///
    /// # Errors
    /// As [`Channel::start_tls_psk_server`].
    pub fn start_tls_psk_client(&mut self, key: &[u8]) -> Result<(), ChannelError> {
        self.start_tls(Secret::Key(key), Side::Client)
    }

    /// Makes a TLS handshake with certificates as the side that sent `starttls`: the peer's must be signed by our
    /// authorities and be on our list, if that is asked for.
    ///
    /// # Errors
    /// After [`Fault::Handshake`], [`Fault::HandshakeTimedOut`] and [`Fault::Certificate`] clear frames can still be
    /// sent.
    pub fn start_tls_certificate_server(&mut self, ours: &Certificates) -> Result<(), ChannelError> {
        let host = self.peer.host.clone();
        self.start_tls(Secret::Certificates { ours, host: &host }, Side::Server)
    }

    /// Makes a TLS handshake with certificates as the side that received `starttls`: the peer's certificate must be for
    /// the host that we connected to.
    ///
    /// # Errors
    /// As [`Channel::start_tls_certificate_server`].
    pub fn start_tls_certificate_client(&mut self, ours: &Certificates) -> Result<(), ChannelError> {
        let host = self.peer.host.clone();
        self.start_tls(Secret::Certificates { ours, host: &host }, Side::Client)
    }

    fn start_tls(&mut self, secret: Secret<'_>, side: Side) -> Result<(), ChannelError> {
        self.usable()?;
        self.take_back();
        let started = self.link.start_tls(secret, side, self.limits.handshake);
        if let Err(Fault::Handshake { certificates, .. }) = &started {
            self.certificate_errors.clone_from(certificates);
        }
        started.map_err(|fault| match fault {
            Fault::Handshake { .. } | Fault::HandshakeTimedOut { .. } | Fault::Certificate { .. }
                if !self.is_cancelled() =>
            {
                self.error(fault)
            }
            _ => self.failed(fault),
        })
    }

    /// What is wrong with the chain of certificates of a failed handshake, in the stock daemon's words.
    pub fn certificate_errors(&self) -> &[String] {
        &self.certificate_errors
    }

    /// Leaves TLS without `close_notify`, as the peer does; the next frames are clear (reference 01 §11.5). Does
    /// nothing on a clear connection.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn drop_tls(&mut self) -> Result<(), ChannelError> {
        self.usable()?;
        self.take_back();
        self.link.drop_tls().map_err(|fault| self.failed(fault))
    }
}
