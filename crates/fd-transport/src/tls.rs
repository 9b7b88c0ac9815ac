//! The TLS handshake, by OpenSSL (reference 01 §11): with a pre-shared key or with certificates.
//!
//! A key means TLS 1.3 with an external key and SHA-256, or TLS 1.2 with `PSK-AES256-CBC-SHA`.
//! Certificates are judged in `certificates`.

mod certificates;
mod contexts;
mod link;

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, Ssl, SslStream};

use crate::error::Fault;
use crate::texts;
use crate::wire::{Wait, Wire};

pub use certificates::{CertificateFiles, Certificates};
use certificates::{Failures, judge_server};
pub(crate) use link::TlsLink;

/// Our side of the handshake: the server is the side that sent `starttls`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsSide {
    /// We sent `starttls`.
    Server,
    /// The peer sent `starttls`.
    Client,
}

/// The secret by which the two sides authenticate each other.
#[derive(Clone, Copy, Debug)]
pub enum TlsSecret<'s> {
    /// A pre-shared key, as it is.
    Key(&'s [u8]),
    /// Our certificate and authorities.
    Certificates(&'s Certificates),
}

/// The wire as OpenSSL uses it. It can be taken out again.
#[derive(Debug)]
pub(crate) struct TlsWire(Option<Wire>);

/// A TLS session over a wire.
pub(crate) type TlsSession = SslStream<TlsWire>;

impl TlsWire {
    fn wire(&mut self) -> io::Result<&mut Wire> {
        self.0.as_mut().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Read for TlsWire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wire = self.wire()?;
        if wire.input.is_empty() {
            wire.fill(wire.wait)?;
        }
        Ok(wire.input.take(buf))
    }
}

impl Write for TlsWire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.wire()?.queue(buf)?;
        Ok(buf.len())
    }

    /// OpenSSL flushes after each flight; ours leave when we wait for an answer.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A handshake that failed, and the wire it was made on.
pub(crate) struct Failure {
    pub(crate) wire: Option<Wire>,
    pub(crate) fault: Fault,
}

/// Makes the handshake, in at most `limit`. On failure the wire comes back, with the alert in its
/// output.
pub(crate) fn handshake(
    mut wire: Wire,
    side: TlsSide,
    secret: TlsSecret<'_>,
    host: &str,
    limit: Duration,
) -> Result<TlsSession, Box<Failure>> {
    wire.wait = Wait::Until(Instant::now().checked_add(limit));
    let refused = |stack: &ErrorStack| Fault::Handshake { reason: texts::stack_text(stack), certificates: Vec::new() };
    let (ssl, failures) = match new_session(secret, side) {
        Ok(session) => session,
        Err(stack) => return Err(Box::new(Failure { wire: Some(wire), fault: refused(&stack) })),
    };
    let mut session = match SslStream::new(ssl, TlsWire(Some(wire))) {
        Ok(session) => session,
        Err(stack) => return Err(Box::new(Failure { wire: None, fault: refused(&stack) })),
    };
    let result = match side {
        TlsSide::Server => session.accept(),
        TlsSide::Client => session.connect(),
    };
    let fault = match result {
        Ok(()) => match judge(secret, &session, side, host) {
            Ok(()) => return Ok(session),
            Err(reason) => Fault::Certificate { reason },
        },
        Err(error) => match handshake_fault(&error, &session, limit, &failures) {
            Fault::Handshake { reason, .. } if side == TlsSide::Server && shows_another_key(secret, &error) => {
                Fault::WrongKey { reason }
            }
            fault => fault,
        },
    };
    Err(Box::new(Failure { wire: take_wire(session), fault }))
}

fn judge(secret: TlsSecret<'_>, session: &TlsSession, side: TlsSide, host: &str) -> Result<(), String> {
    match secret {
        TlsSecret::Key(_) => Ok(()),
        TlsSecret::Certificates(ours) => {
            let peer = session.ssl().peer_certificate();
            match side {
                TlsSide::Server => ours.judge_client(peer.as_deref()),
                TlsSide::Client => judge_server(peer.as_deref(), host),
            }
        }
    }
}

fn handshake_fault(error: &openssl::ssl::Error, session: &TlsSession, limit: Duration, failures: &Failures) -> Fault {
    if error.code() == ErrorCode::WANT_READ {
        Fault::HandshakeTimedOut { after: limit }
    } else if wire_ref(session).is_some_and(|wire| wire.eof) {
        Fault::Closed
    } else {
        Fault::Handshake { reason: texts::tls_text(error), certificates: failures.take() }
    }
}

/// Whether what a client has proven its key with does not fit ours: the binder of TLS 1.3, or the
/// first encrypted record of TLS 1.2.
fn shows_another_key(secret: TlsSecret<'_>, error: &openssl::ssl::Error) -> bool {
    /// OpenSSL's library, and its reasons: `DIGEST_CHECK_FAILED`, `BINDER_DOES_NOT_VERIFY`,
    /// `DECRYPTION_FAILED_OR_BAD_RECORD_MAC`.
    const SSL: i32 = 20;
    const REASONS: [i32; 3] = [149, 253, 281];
    let mut errors = error.ssl_error().into_iter().flat_map(ErrorStack::errors);
    matches!(secret, TlsSecret::Key(_))
        && errors.any(|error| error.library_code() == SSL && REASONS.contains(&error.reason_code()))
}

/// Ends TLS without `close_notify`. What OpenSSL has not read stays in the wire.
pub(crate) fn take_wire(mut session: TlsSession) -> Option<Wire> {
    session.get_mut().0.take()
}

/// The wire under a session; there is always one.
pub(crate) fn wire_of(session: &mut TlsSession) -> io::Result<&mut Wire> {
    session.get_mut().wire()
}

/// The same, for reading.
pub(crate) fn wire_ref(session: &TlsSession) -> Option<&Wire> {
    session.get_ref().0.as_ref()
}

fn new_session(secret: TlsSecret<'_>, side: TlsSide) -> Result<(Ssl, Failures), ErrorStack> {
    match secret {
        TlsSecret::Certificates(ours) => ours.session(),
        TlsSecret::Key(key) => {
            let shared = contexts::shared()?;
            let context = match side {
                TlsSide::Server => &shared.server,
                TlsSide::Client => &shared.client,
            };
            let mut ssl = Ssl::new(context)?;
            ssl.set_ex_data(shared.key, key.to_vec());
            Ok((ssl, Failures::default()))
        }
    }
}
