//! The TLS handshake, by OpenSSL (reference 01 §11): with a pre-shared key or with certificates.
//!
//! A key means TLS 1.3 with an external key and SHA-256, or TLS 1.2 with `PSK-AES256-CBC-SHA`. What certificates are
//! worth is judged in `certificates`.

mod certificates;
mod link;

use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslOptions, SslRef, SslSessionCacheMode, SslStream,
    SslVersion,
};

use crate::error::Fault;
use crate::texts;
use crate::wire::{Wait, Wire};

use certificates::Failures;
pub(crate) use certificates::one_line;
pub use certificates::{CertificateFiles, CertificateProblem, Certificates};
pub(crate) use link::TlsLink;

/// What a client says it is; every server accepts anything.
const IDENTITY: &[u8] = b"Client_identity\0";
/// Suites of TLS 1.3 in our order. Only SHA-256 goes with the external key.
const SUITES_WITH_AES: &str = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
const SUITES_WITHOUT_AES: &str = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
/// Suites of TLS 1.3 that go with certificates only.
const MORE_SUITES: &str = ":TLS_AES_256_GCM_SHA384";
/// Ciphers of TLS 1.2 with certificates: the stock daemon's list without what authenticates nobody.
const CERTIFICATE_CIPHERS: &str = "ALL:!aNULL:!eNULL:!PSK:!SRP:!LOW:!EXP:!MD5:@STRENGTH";
/// The one suite of TLS 1.2 that the stock daemons know here.
const SUITE_OF_1_2: &str = "PSK-AES256-CBC-SHA";

/// Which side of the handshake we are: the server is who sent `starttls`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Server,
    Client,
}

/// What proves the two sides to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Secret<'s> {
    /// A pre-shared key, as it is.
    Key(&'s [u8]),
    /// Certificates; as a client we connected to `host`.
    Certificates { ours: &'s Certificates, host: &'s str },
}

/// The wire as OpenSSL sees it. It can be taken out again.
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

/// Makes the handshake, in at most `limit`. On failure the wire comes back, with the alert in its output.
pub(crate) fn handshake(
    mut wire: Wire,
    secret: Secret<'_>,
    side: Side,
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
        Side::Server => session.accept(),
        Side::Client => session.connect(),
    };
    let fault = match result {
        Ok(()) => match judge(secret, &session, side) {
            Ok(()) => return Ok(session),
            Err(reason) => Fault::Certificate { reason },
        },
        Err(error) => handshake_fault(&error, &session, limit, &failures),
    };
    Err(Box::new(Failure { wire: take_wire(session), fault }))
}

fn judge(secret: Secret<'_>, session: &TlsSession, side: Side) -> Result<(), String> {
    match secret {
        Secret::Key(_) => Ok(()),
        Secret::Certificates { ours, host } => ours.judge(session.ssl().peer_certificate().as_deref(), side, host),
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

/// Ends TLS without a word to the peer. What OpenSSL has not looked at stays in the wire.
pub(crate) fn take_wire(mut session: TlsSession) -> Option<Wire> {
    session.get_mut().0.take()
}

/// The wire under a session; there is always one.
pub(crate) fn wire_of(session: &mut TlsSession) -> io::Result<&mut Wire> {
    session.get_mut().wire()
}

/// The wire under a session, to look at.
pub(crate) fn wire_ref(session: &TlsSession) -> Option<&Wire> {
    session.get_ref().0.as_ref()
}

/// What all sessions share: the settings, and the place where a session keeps its key.
struct Shared {
    /// For those who call us: what they say is overwritten when it has been read, for Directors tell keys.
    server: SslContext,
    /// For those whom we call.
    client: SslContext,
    key: Index<Ssl, Vec<u8>>,
}

/// `SSL_OP_CLEANSE_PLAINTEXT` of OpenSSL, which the `openssl` crate has no name for.
const CLEANSE_PLAINTEXT: SslOptions = SslOptions::from_bits_retain(1 << 1);

fn shared() -> Result<&'static Shared, ErrorStack> {
    static SHARED: OnceLock<Result<Shared, ErrorStack>> = OnceLock::new();
    SHARED.get_or_init(build).as_ref().map_err(Clone::clone)
}

fn new_session(secret: Secret<'_>, side: Side) -> Result<(Ssl, Failures), ErrorStack> {
    match secret {
        Secret::Certificates { ours, .. } => ours.session(),
        Secret::Key(key) => {
            let shared = shared()?;
            let context = match side {
                Side::Server => &shared.server,
                Side::Client => &shared.client,
            };
            let mut ssl = Ssl::new(context)?;
            ssl.set_ex_data(shared.key, key.to_vec());
            Ok((ssl, Failures::default()))
        }
    }
}

/// What both kinds of contexts have in common.
fn builder() -> Result<SslContextBuilder, ErrorStack> {
    let mut builder = SslContextBuilder::new(SslMethod::tls())?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
    // Every connection proves itself anew, so tickets and stored sessions have no use.
    builder.set_options(SslOptions::CIPHER_SERVER_PREFERENCE | SslOptions::NO_TICKET | SslOptions::NO_RENEGOTIATION);
    builder.set_num_tickets(0)?;
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    Ok(builder)
}

/// A context for certificates, without any.
pub(crate) fn certificate_builder() -> Result<SslContextBuilder, ErrorStack> {
    let mut builder = builder()?;
    builder.set_ciphersuites(&format!("{}{MORE_SUITES}", suites()))?;
    builder.set_cipher_list(CERTIFICATE_CIPHERS)?;
    Ok(builder)
}

/// The suites of TLS 1.3 that go with everything.
fn suites() -> &'static str {
    if has_aes_instructions() { SUITES_WITH_AES } else { SUITES_WITHOUT_AES }
}

fn build() -> Result<Shared, ErrorStack> {
    let key = Ssl::new_ex_index()?;
    let mut server = key_builder(key)?;
    server.set_options(CLEANSE_PLAINTEXT);
    Ok(Shared { server: server.build(), client: key_builder(key)?.build(), key })
}

/// A context for sessions that keep their key in this place.
fn key_builder(key: Index<Ssl, Vec<u8>>) -> Result<SslContextBuilder, ErrorStack> {
    let mut builder = builder()?;
    builder.set_ciphersuites(suites())?;
    builder.set_cipher_list(SUITE_OF_1_2)?;
    builder.set_psk_server_callback(move |ssl, _identity, psk| Ok(put_key(ssl, key, psk)));
    builder.set_psk_client_callback(move |ssl, _hint, identity, psk| {
        let Some(place) = identity.get_mut(..IDENTITY.len()) else {
            return Ok(0);
        };
        place.copy_from_slice(IDENTITY);
        Ok(put_key(ssl, key, psk))
    });
    Ok(builder)
}

/// Copies the session's key to where OpenSSL wants it; 0 refuses the handshake.
fn put_key(ssl: &SslRef, index: Index<Ssl, Vec<u8>>, psk: &mut [u8]) -> usize {
    let Some(key) = ssl.ex_data(index) else {
        return 0;
    };
    psk.get_mut(..key.len()).map_or(0, |place| {
        place.copy_from_slice(key);
        key.len()
    })
}

/// Whether AES-GCM is the faster suite here.
fn has_aes_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let found = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let found = false;
    found
}
