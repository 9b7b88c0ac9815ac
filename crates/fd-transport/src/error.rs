//! What can go wrong with a connection. Texts: see `texts`.

use std::io;
use std::time::Duration;

use fd_bsock::FrameError;

use crate::Peer;

/// A connection failed, or a wait on it was too long.
#[derive(Debug, thiserror::Error)]
pub struct ChannelError {
    /// The other end.
    pub peer: Peer,
    /// What happened.
    pub fault: Fault,
}

/// What happened to a connection.
#[derive(Debug)]
pub enum Fault {
    /// The peer closed between two frames. No message is due for it.
    Closed,
    /// Nothing, or no whole frame, came in time. The connection is still good.
    TimedOut {
        /// How long we waited.
        after: Duration,
    },
    /// The peer has sent the signal TERMINATE, or announced an impossible frame: nothing can be
    /// sent any more. No message is due for it.
    Terminated,
    /// An earlier error has ended the connection; that one was reported already.
    HasErrors,
    /// A [`crate::Canceler`] ended the connection.
    Canceled,
    /// Reading from the socket failed.
    Read(io::Error),
    /// The peer closed within a frame.
    ShortRead {
        /// Length of the payload announced, in bytes.
        expected: usize,
        /// Bytes of it that came.
        got: usize,
    },
    /// A frame arrived that can't be decoded.
    Frame(FrameError),
    /// A frame larger than any peer accepts was to be sent. Nothing was sent; the connection can be
    /// used further.
    Oversized {
        /// Length of its payload in bytes.
        len: usize,
    },
    /// Writing to the socket failed.
    Write {
        /// Bytes that were to be written together, headers included.
        len: usize,
        /// Why.
        source: io::Error,
    },
    /// The TLS handshake failed; the socket still takes clear frames.
    Handshake {
        /// OpenSSL's text.
        reason: String,
        /// What is wrong with the peer's certificates, in the stock daemon's words; empty with a
        /// pre-shared key.
        certificates: Vec<String>,
    },
    /// The TLS handshake failed because the peer, our client in it, has another pre-shared key. The
    /// socket still takes clear frames.
    WrongKey {
        /// OpenSSL's text.
        reason: String,
    },
    /// The handshake succeeded, but the peer's certificate is not acceptable. The socket takes
    /// clear frames.
    Certificate {
        /// In the stock daemon's words.
        reason: String,
    },
    /// The TLS handshake was not done in time.
    HandshakeTimedOut {
        /// How long we waited.
        after: Duration,
    },
    /// TLS broke down behind the handshake.
    Tls {
        /// OpenSSL's text.
        reason: String,
    },
}

impl ChannelError {
    /// Whether only the wait was too long; the connection can be used further.
    pub const fn is_timeout(&self) -> bool {
        matches!(self.fault, Fault::TimedOut { .. })
    }
}

/// A connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host name has no address. Final, not retried.
    Resolve {
        /// The host as given.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The system gave us no socket. Final, not retried.
    Socket {
        /// Address family: 2 for IPv4, 10 for IPv6.
        family: i32,
        /// Port of the peer.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The source address could not be bound. Final, not retried.
    Source {
        /// Address family: 2 for IPv4, 10 for IPv6.
        family: i32,
        /// Why.
        source: io::Error,
    },
    /// No try succeeded before the time was up.
    Unreachable {
        /// The peer.
        peer: Peer,
        /// Why the last try failed.
        source: io::Error,
    },
    /// The job was canceled meanwhile.
    Canceled {
        /// The peer.
        peer: Peer,
    },
}

/// A file that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct CertificateProblem {
    /// One for each entry of OpenSSL's error queue, such as
    /// `Error loading private key: ERR=error:0A080009:SSL routines::PEM lib`.
    pub lines: Vec<String>,
    /// What to do about it; empty if the lines say all there is.
    pub hint: &'static str,
}
