//! Certificates for TLS: reading them, and judging those of a peer (reference 01 §11.3).
//!
//! Not here: the handshake itself (`tls`), and the decision whether certificates are needed
//! (`fd-session`).

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fd_os::lock::Mutex;
use openssl::dh::Dh;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslFiletype, SslVerifyMode};
use openssl::x509::{X509Ref, X509StoreContextRef};

use super::contexts::certificate_builder;
use crate::error::CertificateProblem;
use crate::texts;

/// Largest key or parameter file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Chain errors of one handshake that are kept for messages.
const MAX_FAILURES: usize = 16;
/// Longest common name that can be compared with the list, as in the stock daemon.
const MAX_COMMON_NAME: usize = 255;

/// Which files a context is made of: the `TLS …` directives of one resource.
#[derive(Clone, Default, Debug)]
pub struct CertificateFiles {
    /// `TLS CA Certificate File`, PEM.
    pub ca_file: Option<PathBuf>,
    /// `TLS CA Certificate Dir`, with hashed names as `openssl rehash` makes them.
    pub ca_dir: Option<PathBuf>,
    /// `TLS Certificate`, PEM, the whole chain.
    pub certificate: Option<PathBuf>,
    /// `TLS Key`, PEM, without a passphrase.
    pub key: Option<PathBuf>,
    /// `TLS DH File`, PEM; for ephemeral Diffie-Hellman of TLS 1.2.
    pub dh: Option<PathBuf>,
    /// `TLS Verify Peer`: the peer must have a certificate that our authorities have signed.
    pub verify_peer: bool,
    /// `TLS Allowed CN`: common names of clients, compared without regard to case; empty: any.
    /// Without effect if the peer is not verified.
    pub allowed_cn: Vec<Vec<u8>>,
}

/// Our certificate and the authorities that we trust. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Certificates {
    context: SslContext,
    verify_peer: bool,
    allowed_cn: Arc<[Vec<u8>]>,
}

impl Certificates {
    /// Reads all files.
    ///
    /// # Errors
    /// The first file that can't be used, in the stock daemon's words.
    pub fn load(files: &CertificateFiles) -> Result<Self, CertificateProblem> {
        let mut builder = certificate_builder().map_err(texts::certificate_problem(texts::NO_CONTEXT, ""))?;
        load_authorities(&mut builder, files)?;
        if let Some(path) = &files.certificate {
            let problem = texts::certificate_problem(texts::CERTIFICATE, texts::HINT_CERTIFICATE);
            named(path, texts::CERTIFICATE)?;
            builder.set_certificate_chain_file(path).map_err(problem)?;
        }
        if let Some(path) = &files.key {
            load_key(&mut builder, path)?;
        }
        if let Some(path) = &files.dh {
            load_dh(&mut builder, path)?;
        }
        let mode = SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT;
        builder.set_verify(if files.verify_peer { mode } else { SslVerifyMode::NONE });
        Ok(Self {
            context: builder.build(),
            verify_peer: files.verify_peer,
            allowed_cn: files.allowed_cn.clone().into(),
        })
    }

    /// A session that records why a peer's chain is not trusted.
    pub(crate) fn session(&self) -> Result<(Ssl, Failures), ErrorStack> {
        let mut ssl = Ssl::new(&self.context)?;
        let failures = Failures::default();
        if self.verify_peer {
            let noted = failures.clone();
            let mode = SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT;
            ssl.set_verify_callback(mode, move |good, chain| {
                if !good {
                    noted.note(chain);
                }
                good
            });
        }
        Ok((ssl, failures))
    }

    /// Whether the certificate of a client that finished its handshake is on our list, if there is
    /// one.
    pub(crate) fn judge_client(&self, peer: Option<&X509Ref>) -> Result<(), String> {
        if !self.verify_peer || self.allowed_cn.is_empty() {
            return Ok(());
        }
        let peer = peer.ok_or_else(|| texts::NO_PEER_CERTIFICATE.to_owned())?;
        let name = common_names(peer).next().filter(|name| name.len() <= MAX_COMMON_NAME);
        let allowed = |name: &[u8]| self.allowed_cn.iter().any(|cn| cn.eq_ignore_ascii_case(name));
        if name.is_some_and(allowed) { Ok(()) } else { Err(texts::WRONG_COMMON_NAME.to_owned()) }
    }
}

/// Whether the certificate of a server is for the host that we connected to.
pub(crate) fn judge_server(peer: Option<&X509Ref>, host: &str) -> Result<(), String> {
    let peer = peer.ok_or_else(|| texts::no_certificate_of(host))?;
    if is_for_host(peer, host) { Ok(()) } else { Err(texts::wrong_host(host)) }
}

/// Why chains were distrusted, in the stock daemon's words.
#[derive(Clone, Default, Debug)]
pub(crate) struct Failures(Arc<Mutex<Vec<String>>>);

impl Failures {
    fn note(&self, chain: &X509StoreContextRef) {
        let self_signed = matches!(chain.error().as_raw(), 18 | 19).then(|| texts::SELF_SIGNED.to_owned());
        let mut failures = self.0.lock();
        if failures.len() < MAX_FAILURES {
            failures.extend(self_signed.into_iter().chain([texts::chain_error(chain)]));
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn load_authorities(builder: &mut SslContextBuilder, files: &CertificateFiles) -> Result<(), CertificateProblem> {
    if files.ca_file.is_none() && files.ca_dir.is_none() {
        return Ok(());
    }
    for path in [&files.ca_file, &files.ca_dir].into_iter().flatten() {
        named(path, texts::AUTHORITIES)?;
    }
    builder
        .load_verify_locations(files.ca_file.as_deref(), files.ca_dir.as_deref())
        .map_err(texts::certificate_problem(texts::AUTHORITIES, texts::HINT_AUTHORITIES))
}

fn load_key(builder: &mut SslContextBuilder, path: &Path) -> Result<(), CertificateProblem> {
    let problem = || texts::certificate_problem(texts::KEY, texts::HINT_KEY);
    named(path, texts::KEY)?;
    // OpenSSL would ask for the passphrase on the terminal.
    match read(path) {
        Ok(pem) if pem.windows(9).any(|window| window == b"ENCRYPTED") => {
            let key = PKey::private_key_from_pem_callback(&pem, |_| Ok(0)).map_err(problem())?;
            builder.set_private_key(&key).map_err(problem())
        }
        _ => builder.set_private_key_file(path, SslFiletype::PEM).map_err(problem()),
    }
}

fn load_dh(builder: &mut SslContextBuilder, path: &Path) -> Result<(), CertificateProblem> {
    let pem = read(path).map_err(|error| texts::unreadable(texts::DH_OPEN, &error))?;
    let problem = || texts::certificate_problem(texts::DH_LOAD, texts::HINT_DH);
    let dh = Dh::params_from_pem(&pem).map_err(problem())?;
    builder.set_tmp_dh(&dh).map_err(texts::certificate_problem(texts::DH_SET, texts::HINT_DH))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(content)
}

/// OpenSSL's Rust interface takes no names that are not UTF-8.
fn named(path: &Path, what: &str) -> Result<(), CertificateProblem> {
    if path.to_str().is_some_and(|name| !name.contains('\0')) {
        return Ok(());
    }
    Err(texts::unreadable(what, &io::Error::new(io::ErrorKind::InvalidInput, texts::NOT_UTF_8)))
}

/// The common names of the certificate's owner, as bytes.
fn common_names(certificate: &X509Ref) -> impl Iterator<Item = &[u8]> {
    certificate.subject_name().entries_by_nid(Nid::COMMONNAME).map(|entry| entry.data().as_slice())
}

/// Whether a certificate is that of the host we connected to, or that has called.
fn is_for_host(certificate: &X509Ref, host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // A socket of IPv6 has such addresses for who calls over IPv4.
    let mapped = host.parse::<Ipv6Addr>().ok().and_then(|address| address.to_ipv4_mapped());
    names_host(certificate, host)
        || host == "127.0.0.1" && names_host(certificate, "localhost")
        || mapped.is_some_and(|address| is_for_host(certificate, &address.to_string()))
}

fn names_host(certificate: &X509Ref, host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    let alternative = certificate.subject_alt_names().is_some_and(|names| {
        names.iter().any(|name| {
            name.dnsname().is_some_and(|name| covers(name.as_bytes(), host.as_bytes()))
                || address.is_some() && name.ipaddress().and_then(address_of) == address
        })
    });
    alternative || common_names(certificate).any(|name| covers(name, host.as_bytes()))
}

fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// `*.example.org` covers every host whose name goes on like this after its first dot.
fn covers(pattern: &[u8], host: &[u8]) -> bool {
    let from_dot =
        |name: &[u8]| name.iter().position(|byte| *byte == b'.').and_then(|at| name.get(at..)).map(<[u8]>::to_vec);
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    match (pattern.strip_prefix(b"*"), from_dot(host)) {
        (Some(rest), Some(domain)) => rest.starts_with(b".") && rest.eq_ignore_ascii_case(&domain),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
