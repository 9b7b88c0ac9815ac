//! The settings of TLS: which versions and suites, and how a session finds its pre-shared key.

use std::sync::OnceLock;

use openssl::error::ErrorStack;
use openssl::ex_data::Index;
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslMethod, SslOptions, SslRef, SslSessionCacheMode, SslVersion,
};

/// A client's identity; every server accepts any.
const IDENTITY: &[u8] = b"Client_identity\0";
/// Suites of TLS 1.3 in our order. Only SHA-256 goes with the external key.
const SUITES_WITH_AES: &str = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
const SUITES_WITHOUT_AES: &str = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
/// Suites of TLS 1.3 that go with certificates only.
const MORE_SUITES: &str = ":TLS_AES_256_GCM_SHA384";
/// Ciphers of TLS 1.2 with certificates: the stock daemon's list without suites that don't
/// authenticate.
const CERTIFICATE_CIPHERS: &str = "ALL:!aNULL:!eNULL:!PSK:!SRP:!LOW:!EXP:!MD5:@STRENGTH";
/// The one suite of TLS 1.2 that the stock daemons offer here.
const SUITE_OF_1_2: &str = "PSK-AES256-CBC-SHA";

/// What all sessions with a pre-shared key have in common: the settings, and where a session keeps
/// its key.
pub(super) struct Shared {
    /// For accepted connections: what was received is overwritten once it is read, because
    /// Directors send keys.
    pub(super) server: SslContext,
    /// For connections that we make.
    pub(super) client: SslContext,
    pub(super) key: Index<Ssl, Vec<u8>>,
}

/// `SSL_OP_CLEANSE_PLAINTEXT` of OpenSSL, which the `openssl` crate has no name for.
const CLEANSE_PLAINTEXT: SslOptions = SslOptions::from_bits_retain(1 << 1);

pub(super) fn shared() -> Result<&'static Shared, ErrorStack> {
    static SHARED: OnceLock<Result<Shared, ErrorStack>> = OnceLock::new();
    SHARED.get_or_init(build).as_ref().map_err(Clone::clone)
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
pub(super) fn certificate_builder() -> Result<SslContextBuilder, ErrorStack> {
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

/// Copies the session's key into OpenSSL's buffer; 0 refuses the handshake.
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
