//! The channel: frames over a link, with one owner.

mod cancel;
mod close;
mod frames;
mod front;
mod handshake;
mod receive;
mod send;
mod unwanted;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fd_bsock::{CommCount, Encoder, MAX_PAYLOAD};

use crate::error::Fault;
use crate::link::Link;
use crate::wire::{Bandwidth, Wire, WireStats};
use crate::{ChannelError, IDLE_LIMIT, Peer, PeerKind};

pub use cancel::Canceler;
pub use close::Farewell;
pub use frames::Frames;
pub use receive::{Gathered, Received, wait_for_either};

/// How long the steps of a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A whole TLS handshake.
    pub handshake: Duration,
    /// A write without any progress. Long, because a Storage Daemon may wait for an operator to
    /// change a tape.
    pub write_stall: Duration,
    /// The peer's good-bye after ours.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { handshake: Duration::from_secs(120), write_stall: IDLE_LIMIT, goodbye: Duration::from_secs(10) }
    }
}

/// What a peer may say while its answer isn't asked for yet.
#[derive(Clone, Copy, Debug)]
pub struct Unwanted {
    /// How long a write stands still between two looks.
    pub every: Duration,
    /// Whether the text of a frame is dropped. Signals and compressed frames are.
    pub is_text: fn(&[u8]) -> bool,
}

/// Whether a channel can still be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Good,
    /// TERMINATE was received.
    Terminated,
    /// An error was reported.
    Failed,
}

/// Frames that are received.
#[derive(Debug)]
struct Incoming {
    /// Bytes of the frame that was lent out by the last call.
    lent: usize,
    /// Room for the payload of a compressed frame.
    decompressed: Vec<u8>,
    /// How many there were.
    count: Arc<AtomicU64>,
    /// The largest payload, in bytes on the wire.
    largest: usize,
    /// What is dropped while a write stands still.
    unwanted: Option<Unwanted>,
}

impl Incoming {
    fn new() -> Self {
        Self { lent: 0, decompressed: Vec::new(), count: Arc::default(), largest: MAX_PAYLOAD, unwanted: None }
    }
}

/// A connection that carries frames, in clear or in TLS. Blocking; one thread owns it.
///
/// What is sent is gathered, and leaves when there is enough of it, with [`Channel::flush`], and
/// whenever [`Channel::recv`] waits for the peer.
#[derive(Debug)]
pub struct Channel {
    peer: Peer,
    address: SocketAddr,
    own_address: SocketAddr,
    link: Link,
    encoder: Encoder,
    incoming: Incoming,
    count: CommCount,
    health: Health,
    canceled: Arc<AtomicBool>,
    limits: Limits,
    /// What the last handshake had against the peer's certificates.
    certificate_errors: Vec<String>,
}

impl Channel {
    /// Takes over an accepted connection.
    ///
    /// # Errors
    /// When the socket is gone already.
    pub fn accept(stream: TcpStream, limits: Limits) -> io::Result<Self> {
        let address = stream.peer_addr()?;
        let host = match address {
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let peer = Peer { kind: PeerKind::Client, host, port: stream.local_addr()?.port() };
        Self::over(stream, peer, limits)
    }

    /// A channel over a connected socket.
    pub(crate) fn over(stream: TcpStream, peer: Peer, limits: Limits) -> io::Result<Self> {
        let address = stream.peer_addr()?;
        Ok(Self {
            peer,
            address,
            own_address: stream.local_addr()?,
            link: Link::Clear(Wire::new(stream, limits.write_stall)?),
            encoder: Encoder::new(false),
            incoming: Incoming::new(),
            count: CommCount::default(),
            health: Health::Good,
            canceled: Arc::default(),
            limits,
            certificate_errors: Vec::new(),
        })
    }

    /// Switches LZ4 on or off for the frames to come. What is received is decompressed in any case.
    pub fn set_compression(&mut self, on: bool) {
        self.encoder.set_compress(on);
    }

    /// Whether the peer is about to send much. If so, a receiver is woken for 64 KiB, not for each
    /// frame; the last frames come a few milliseconds late.
    pub fn expect_many(&mut self, many: bool) {
        if let Some(wire) = self.link.wire_mut() {
            wire.receive_in_bulk(many);
        }
    }

    /// From now on a frame whose header announces more than this many bytes ends the connection:
    /// nothing of it is read or decompressed. At first, and at most, it is [`MAX_PAYLOAD`].
    pub const fn limit_frames(&mut self, largest: usize) {
        self.incoming.largest = largest;
    }

    /// How long the next handshake may take, instead of what was said at the beginning.
    pub const fn limit_handshake(&mut self, longest: Duration) {
        self.limits.handshake = longest;
    }

    /// From now on the kernel asks a peer that has been silent for so long whether it is still
    /// there. Zero leaves the time to the kernel, and so does a refusal of it.
    pub fn keep_alive(&self, idle: Duration) {
        if let Some(wire) = self.link.wire() {
            wire.keep_alive(idle);
        }
    }

    /// Limits the bytes per second on the wire; the caller keeps a clone to change the limit.
    pub fn set_bandwidth(&mut self, limit: Bandwidth) {
        if let Some(wire) = self.link.wire_mut() {
            wire.set_bandwidth(limit);
        }
    }

    /// `CommBytes` and `CompressCommBytes` so far, including frames that are not flushed yet.
    pub const fn counts(&self) -> CommCount {
        self.count
    }

    /// System calls and bytes so far.
    pub fn wire_stats(&self) -> WireStats {
        self.link.stats()
    }

    /// The other end, as messages name it.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The address of the other end.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of our end.
    pub const fn own_address(&self) -> SocketAddr {
        self.own_address
    }

    /// Whether frames are encrypted now.
    pub const fn is_encrypted(&self) -> bool {
        self.link.is_encrypted()
    }

    /// Version and cipher suite, such as `TLSv1.3 TLS_AES_128_GCM_SHA256`; `None` in clear.
    pub fn cipher(&self) -> Option<String> {
        self.link.cipher()
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    fn usable(&self) -> Result<(), ChannelError> {
        match self.health {
            _ if self.is_canceled() => Err(self.error(Fault::Canceled)),
            Health::Good => Ok(()),
            Health::Terminated => Err(self.error(Fault::Terminated)),
            Health::Failed => Err(self.error(Fault::HasErrors)),
        }
    }

    fn error(&self, fault: Fault) -> ChannelError {
        ChannelError { peer: self.peer.clone(), fault }
    }

    /// An error after which the connection is of no use.
    fn failed(&mut self, fault: Fault) -> ChannelError {
        self.health = Health::Failed;
        self.error(if self.is_canceled() { Fault::Canceled } else { fault })
    }
}

#[cfg(test)]
mod tests;
