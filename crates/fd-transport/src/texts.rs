//! Every text of this crate that an operator may see, in the words of the stock daemon (reference
//! 01 §18.4, §20).

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use fd_bsock::{FrameError, MAX_PAYLOAD};
use fd_os::{error_text, io_error_text};
use openssl::error::ErrorStack;
use openssl::x509::{X509NameRef, X509Ref, X509StoreContextRef};
use rustix::io::Errno;

use crate::{CertificateProblem, ChannelError, ConnectError, Fault, Peer, PeerKind};

/// The text behind `ERR=` when the connection was closed or canceled and there is no error number.
const NO_ERROR: &str = "Success";

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind.name(), self.host, self.port)
    }
}

impl PeerKind {
    /// How messages call the peer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Storage => "Storage daemon",
            Self::Director => "Director daemon",
        }
    }

    /// The number of the message about a peer that can't be reached.
    const fn unreachable_code(self) -> &'static str {
        match self {
            Self::Storage | Self::Client => "FE0039",
            Self::Director => "FE0019",
        }
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = &self.peer;
        match &self.fault {
            Fault::Closed => write!(f, "Connection closed by {peer}"),
            Fault::TimedOut { after } => write!(f, "Nothing received from {peer} in {} seconds", after.as_secs()),
            Fault::Terminated => write!(f, "Bsock send while terminated=1 on call to {peer}"),
            Fault::HasErrors => write!(f, "Socket has errors=1 on call to {peer}"),
            Fault::Canceled => write!(f, "Connection with {peer} canceled"),
            Fault::Read(source) => write!(f, "Read error from {peer}: ERR={}", io_error_text(source)),
            Fault::ShortRead { expected, got } => write!(f, "Read expected {expected} got {got} from {peer}"),
            Fault::Frame(FrameError::TooBig { len }) => write!(
                f,
                "Packet size={len} too big from \"{peer}\". Maximum permitted {MAX_PAYLOAD}. Terminating connection."
            ),
            Fault::Frame(error) => write!(f, "Bad packet from {peer}: {error}"),
            Fault::Oversized { len } => write!(f, "Write socket has insane msglen={len} on call to {peer}"),
            Fault::Write { len, source } => {
                write!(f, "Write error sending {len} bytes to {peer}: ERR={}", io_error_text(source))
            }
            Fault::Handshake { reason, .. } | Fault::WrongKey { reason } => {
                write!(f, "[FE0064] TLS Connect failure. Check the passwords. ERR={reason}")
            }
            Fault::Certificate { reason } => f.write_str(reason),
            Fault::HandshakeTimedOut { after } => {
                write!(f, "[FE0064] TLS Connect failure. ERR=no handshake with {peer} in {} seconds", after.as_secs())
            }
            Fault::Tls { reason } => write!(f, "TLS read/write failure.: ERR={reason}"),
        }
    }
}

impl ChannelError {
    /// What belongs behind `ERR=` in a message about this error, such as
    /// `Network send error to SD. ERR=Broken pipe`.
    pub fn cause(&self) -> String {
        match &self.fault {
            Fault::Read(source) | Fault::Write { source, .. } => io_error_text(source),
            Fault::Handshake { reason, .. }
            | Fault::WrongKey { reason }
            | Fault::Tls { reason }
            | Fault::Certificate { reason } => reason.clone(),
            Fault::TimedOut { .. } | Fault::HandshakeTimedOut { .. } => error_text(Errno::TIMEDOUT.raw_os_error()),
            Fault::Closed | Fault::Terminated | Fault::HasErrors | Fault::Canceled => NO_ERROR.to_owned(),
            Fault::ShortRead { .. } | Fault::Frame(_) | Fault::Oversized { .. } => error_text(Errno::IO.raw_os_error()),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { host, source } => {
                write!(f, "[FE0060] gethostbyname() for host \"{host}\" failed: ERR={}", fd_os::resolver_text(source))
            }
            Self::Socket { family, port, source } => {
                write!(f, "[FE0061] Socket open error. proto={family} port={port}. ERR={}", io_error_text(source))
            }
            Self::Source { family, source } => {
                write!(f, "[FE0062] Source address bind error. proto={family}. ERR={}", io_error_text(source))
            }
            Self::Unreachable { peer, source } => write!(
                f,
                "[{}] Unable to connect to {} on {}:{}. ERR={}",
                peer.kind.unreachable_code(),
                peer.kind.name(),
                peer.host,
                peer.port,
                io_error_text(source)
            ),
            Self::Canceled { peer } => write!(f, "Connecting to {peer} canceled"),
        }
    }
}

/// The warning between two tries. The stock daemon does not say which addresses of a name it has
/// tried.
pub(crate) fn retrying(peer: &Peer, error: &io::Error, tried: &[SocketAddr]) -> String {
    let (who, host, port, cause) = (peer.kind.name(), &peer.host, peer.port, io_error_text(error));
    let addresses: Vec<_> = tried.iter().map(|address| address.ip().to_string()).collect();
    let tried = if tried.is_empty() { String::new() } else { format!("Addresses tried: {}\n", addresses.join(", ")) };
    format!("Could not connect to {who} on {host}:{port}. ERR={cause}\nRetrying ...\n{tried}")
}

/// The warning while an address does not answer. The stock daemon has none.
pub(crate) fn silent(peer: &Peer, address: SocketAddr) -> String {
    let (who, host, port) = (peer.kind.name(), &peer.host, peer.port);
    format!("{who} on {host}:{port}: {} does not answer. Waiting ...\n", address.ip())
}

/// The same while the peer's name has no address yet.
pub(crate) fn no_address_yet(peer: &Peer) -> String {
    let (who, host, port) = (peer.kind.name(), &peer.host, peer.port);
    format!("{who} on {host}:{port}: the name servers do not say which address {host} has. Waiting ...\n")
}

/// TLS was asked for on a connection that cannot start it.
pub(crate) const TLS_NOT_POSSIBLE: &str = "TLS is not possible in this state of the connection";

/// OpenSSL's words for what went wrong in TLS:
/// `error:0A00041B:SSL routines::tlsv1 alert decrypt error`.
pub(crate) fn tls_text(error: &openssl::ssl::Error) -> String {
    if let Some(source) = error.io_error() {
        return io_error_text(source);
    }
    error.ssl_error().map_or_else(|| error.source().map_or_else(|| error.to_string(), ToString::to_string), stack_text)
}

/// The first entry of OpenSSL's error queue.
pub(crate) fn stack_text(stack: &ErrorStack) -> String {
    stack.errors().first().map_or_else(|| stack.to_string(), entry_text)
}

fn entry_text(entry: &openssl::error::Error) -> String {
    let library = entry.library().unwrap_or_default();
    let reason = entry.reason().map_or_else(|| numbered(entry), ToOwned::to_owned);
    format!("error:{:08X}:{library}::{reason}", entry.code())
}

/// A reason that OpenSSL has no words of its own for: an error of the system has its number.
fn numbered(entry: &openssl::error::Error) -> String {
    const OF_THE_SYSTEM: u64 = 0x8000_0000;
    let number = entry.reason_code();
    if entry.code() & OF_THE_SYSTEM != 0 { error_text(number) } else { format!("reason({number})") }
}

/// What could not be done with a certificate's file, as the stock daemon begins its line (reference
/// 06 §6.1).
pub(crate) const NO_CONTEXT: &str = "Error initializing SSL context";
pub(crate) const AUTHORITIES: &str = "Error loading certificate verification stores";
pub(crate) const CERTIFICATE: &str = "Error loading certificate file";
pub(crate) const KEY: &str = "Error loading private key";
pub(crate) const DH_OPEN: &str = "Unable to open DH parameters file";
pub(crate) const DH_LOAD: &str = "Unable to load DH parameters from specified file";
pub(crate) const DH_SET: &str = "Failed to set TLS Diffie-Hellman parameters";

/// What an operator may do about it.
pub(crate) const HINT_AUTHORITIES: &str =
    "\"TLS CA Certificate File\" must be a readable PEM file that holds the certificates of the authorities";
pub(crate) const HINT_CERTIFICATE: &str =
    "\"TLS Certificate\" must be a readable PEM file: the certificate first, then those that signed it";
pub(crate) const HINT_KEY: &str =
    "\"TLS Key\" must be a readable PEM file without a passphrase that belongs to \"TLS Certificate\"";
pub(crate) const HINT_DH: &str = "make the file with: openssl dhparam -out FILE 2048";
pub(crate) const NOT_UTF_8: &str = "the file's name is not UTF-8";

/// A certificate's file failed with the entries of OpenSSL's error queue.
pub(crate) fn certificate_problem(what: &str, hint: &'static str) -> impl FnOnce(ErrorStack) -> CertificateProblem {
    let what = what.to_owned();
    move |stack| {
        let lines = stack.errors().iter().map(|entry| format!("{what}: ERR={}", entry_text(entry))).collect();
        CertificateProblem { lines, hint }
    }
}

/// A file that could not be read at all.
pub(crate) fn unreadable(what: &str, error: &io::Error) -> CertificateProblem {
    CertificateProblem { lines: vec![format!("{what}: ERR={}", io_error_text(error))], hint: "" }
}

/// A client's certificate is not on the list (reference 01 §11.3).
pub(crate) const WRONG_COMMON_NAME: &str =
    "[FE0068] TLS certificate verification failed. Peer certificate did not match a required commonName";
/// A client has no certificate.
pub(crate) const NO_PEER_CERTIFICATE: &str = "Peer failed to present a TLS certificate";

/// A server has no certificate.
pub(crate) fn no_certificate_of(host: &str) -> String {
    format!("Peer {host} failed to present a TLS certificate")
}

/// A server's certificate is another host's.
pub(crate) fn wrong_host(host: &str) -> String {
    format!(
        "[FE0068] TLS host certificate verification failed. Host name \"{host}\" did not match presented certificate"
    )
}

/// Precedes the next text for a certificate that is signed by itself.
pub(crate) const SELF_SIGNED: &str = "tls.c:90 CA certificate is self signed. With OpenSSL 1.1, enforce \
    basicConstraints = CA:true in the certificate creation to avoid this issue";

/// Why a chain of certificates is not trusted (reference 01 §11.3).
pub(crate) fn chain_error(chain: &X509StoreContextRef) -> String {
    let error = chain.error();
    let name = |name: Option<&X509NameRef>| name.map(one_line).unwrap_or_default();
    let certificate = chain.current_cert();
    format!(
        "tls.c:95 Error with certificate at depth: {}, issuer = {}, subject = {}, ERR={}:{}",
        chain.error_depth(),
        name(certificate.map(X509Ref::issuer_name)),
        name(certificate.map(X509Ref::subject_name)),
        error.as_raw(),
        error.error_string()
    )
}

/// So many bytes of a name are told, as by the stock daemon: a stranger's certificate may have a
/// long one.
const LONGEST_NAME: usize = 255;

/// A name in one line, such as `/O=Example/CN=fd.example.org`, without the entries beyond
/// [`LONGEST_NAME`].
fn one_line(name: &X509NameRef) -> String {
    let mut line = String::new();
    for entry in name.entries() {
        let kind = entry.object().nid().short_name().unwrap_or("?").to_owned();
        let entry = format!("/{kind}={}", entry.data().as_slice().escape_ascii());
        if line.len().saturating_add(entry.len()) > LONGEST_NAME {
            break;
        }
        line.push_str(&entry);
    }
    line
}
