//! The channel: frames over a link, with one owner.

mod frames;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fd_bsock::{
    CommCount, Encoder, FrameError, HEADER_LEN, MAX_PAYLOAD, Parsed, Signal, decompress_behind, parse_up_to,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::error::Fault;
use crate::link::Link;
use crate::tls::{Secret, Side};
use crate::wire::{Bandwidth, Wait, Wire, WireStats};
use crate::{Certificates, ChannelError, IDLE_LIMIT, Peer, PeerKind};

pub use frames::Frames;

/// How long the steps of a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A whole TLS handshake.
    pub handshake: Duration,
    /// A write without any progress. Generous, for a Storage Daemon may wait for an operator to change a tape.
    pub write_stall: Duration,
    /// The peer's good-bye after ours.
    pub goodbye: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { handshake: Duration::from_secs(120), write_stall: IDLE_LIMIT, goodbye: Duration::from_secs(10) }
    }
}

/// What one call of [`Channel::recv`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received<'a> {
    /// The payload of a frame, decompressed.
    Data(&'a [u8]),
    /// A frame without payload.
    Empty,
    /// A signal.
    Signal(Signal),
}

/// What one call of [`Channel::gather`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gathered {
    /// A frame, empty or not; it is the last one of the [`Frames`] now.
    Frame,
    /// A signal.
    Signal(Signal),
}

/// Ends a channel from any thread: whatever its owner waits for ends with [`Fault::Cancelled`].
#[derive(Clone, Debug)]
pub struct Canceller {
    flag: Arc<AtomicBool>,
    socket: Weak<TcpStream>,
    received: Arc<AtomicU64>,
}

impl Canceller {
    /// Frames that the channel has received so far, signals included.
    pub fn frames_received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Number of the socket's descriptor; `None` when the channel is gone.
    pub fn descriptor(&self) -> Option<i32> {
        self.socket.upgrade().map(|socket| socket.as_raw_fd())
    }

    /// Whether the peer has closed its side. What it sent before may not have been received yet.
    pub fn peer_has_left(&self) -> bool {
        self.peer_leaves_within(Duration::ZERO)
    }

    /// The same, and waits for it so long.
    pub fn peer_leaves_within(&self, longest: Duration) -> bool {
        let Some(socket) = self.socket.upgrade() else { return true };
        let Ok(longest) = rustix::event::Timespec::try_from(longest) else { return false };
        let mut asked = [PollFd::new(&*socket, PollFlags::RDHUP)];
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut asked, Some(&longest)).is_ok() && asked.iter().any(|socket| socket.revents().intersects(gone))
    }

    /// Whether somebody has called [`Canceller::cancel`].
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Ends the channel. Does nothing if the channel is gone already.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        if let Some(socket) = self.socket.upgrade() {
            // An error means that the connection is gone already.
            let _ignored = socket.shutdown(Shutdown::Both);
        }
    }
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

/// A connection that carries frames, in clear or in TLS. Blocking; one thread owns it.
///
/// What is sent is gathered, and leaves when there is enough of it, with [`Channel::flush`], and whenever
/// [`Channel::recv`] waits for the peer.
#[derive(Debug)]
pub struct Channel {
    peer: Peer,
    address: SocketAddr,
    link: Link,
    encoder: Encoder,
    /// Bytes of the frame that was lent out by the last call.
    lent: usize,
    /// Room for the payload of a compressed frame.
    decompressed: Vec<u8>,
    count: CommCount,
    health: Health,
    cancelled: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    limits: Limits,
    /// The largest payload that is received, in bytes on the wire.
    largest: usize,
    /// What the last handshake had against the peer's certificates.
    certificate_errors: Vec<String>,
}

/// A connection on which everything is said; the peer has still to close. Dropped too early, it may take bytes with it
/// that the peer has not read yet.
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

/// Waits until there is something to receive on one of two channels, or so long. Both must have been emptied with
/// [`Channel::try_recv`] before; a channel that has failed counts as one with something to receive.
pub fn wait_for_either(one: &Channel, other: &Channel, longest: Duration) {
    let longest = rustix::event::Timespec::try_from(longest).ok();
    let sockets = [one, other].map(|channel| channel.link.wire().and_then(|wire| wire.socket().upgrade()));
    let [Some(one), Some(other)] = sockets else { return };
    let mut asked = [PollFd::new(&*one, PollFlags::IN), PollFd::new(&*other, PollFlags::IN)];
    // Interrupted or not: the caller looks at both.
    let _looked = poll(&mut asked, longest.as_ref());
}

/// A whole frame at the front of the link's input.
struct Frame {
    content: Content,
    consumed: usize,
}

enum Content {
    Data { payload: Range<usize>, compressed: bool },
    Empty,
    Signal(Signal),
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
            link: Link::Clear(Wire::new(stream, limits.write_stall)?),
            encoder: Encoder::new(false),
            lent: 0,
            decompressed: Vec::new(),
            count: CommCount::default(),
            health: Health::Good,
            cancelled: Arc::default(),
            received: Arc::default(),
            limits,
            largest: MAX_PAYLOAD,
            certificate_errors: Vec::new(),
        })
    }

    /// Sends one frame with this payload.
    ///
    /// # Errors
    /// [`Fault::Oversized`] above [`fd_bsock::MAX_PAYLOAD`]; otherwise the connection is of no use any more.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), ChannelError> {
        self.encode(|encoder, output| encoder.data(output, payload))
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn signal(&mut self, signal: Signal) -> Result<(), ChannelError> {
        self.encode(|encoder, output| {
            encoder.signal(output, signal);
            Ok(())
        })
    }

    fn encode(
        &mut self,
        frame: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> Result<(), FrameError>,
    ) -> Result<(), ChannelError> {
        self.usable()?;
        let Some(output) = self.link.output() else {
            return Err(self.failed(Fault::HasErrors));
        };
        match frame(&mut self.encoder, output) {
            Ok(()) => {}
            Err(FrameError::TooBig { len }) => return Err(self.error(Fault::Oversized { len })),
            Err(error) => return Err(self.error(Fault::Frame(error))),
        }
        self.count += self.encoder.take_count();
        self.link.push().map_err(|fault| self.failed(fault))
    }

    /// Sends frames that are encoded already; `count` is what their encoder counted.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn send_encoded(&mut self, frames: &[u8], count: CommCount) -> Result<(), ChannelError> {
        self.usable()?;
        self.count += count;
        self.link.push_frames(frames).map_err(|fault| self.failed(fault))
    }

    /// Hands everything that was sent so far to the kernel.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn flush(&mut self) -> Result<(), ChannelError> {
        self.usable()?;
        self.link.flush().map_err(|fault| self.failed(fault))
    }

    /// Waits for one frame, after flushing. The payload is lent until the next call.
    ///
    /// # Errors
    /// [`Fault::TimedOut`] leaves the connection as it was, a frame that has begun included. [`Fault::Closed`] is the
    /// end between two frames. After anything else, too, nothing more can be received.
    pub fn recv(&mut self, timeout: Duration) -> Result<Received<'_>, ChannelError> {
        self.flush()?;
        match self.next_frame(Some(timeout))? {
            Some(frame) => self.lend(&frame),
            None => Err(self.error(Fault::TimedOut { after: timeout })),
        }
    }

    /// A frame that is there already, without waiting and without flushing.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Received<'_>>, ChannelError> {
        self.usable()?;
        match self.next_frame(None)? {
            Some(frame) => self.lend(&frame).map(Some),
            None => Ok(None),
        }
    }

    /// The next whole frame; without a timeout only one that is there. The clock is read only to wait.
    fn next_frame(&mut self, timeout: Option<Duration>) -> Result<Option<Frame>, ChannelError> {
        self.take_back();
        let mut wait = None;
        loop {
            let needed = match parse_up_to(self.link.input(), self.largest) {
                Ok(Parsed::Need(needed)) => needed,
                Ok(Parsed::Data { payload, compressed, consumed }) => {
                    let payload = consumed - payload.len()..consumed;
                    return Ok(Some(Frame { content: Content::Data { payload, compressed }, consumed }));
                }
                Ok(Parsed::Empty { consumed }) => return Ok(Some(Frame { content: Content::Empty, consumed })),
                Ok(Parsed::Signal { signal, consumed }) => {
                    return Ok(Some(Frame { content: Content::Signal(signal), consumed }));
                }
                Err(error) => return Err(self.impossible(error)),
            };
            let wait = *wait.get_or_insert_with(|| match timeout {
                Some(timeout) => Wait::Until(Instant::now().checked_add(timeout)),
                None => Wait::No,
            });
            match self.link.fill(wait) {
                Ok(Some(0)) => return Err(self.ended(needed)),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
    }

    /// Appends one frame to `frames`, where it came in; otherwise as [`Channel::recv`], and without a timeout as
    /// [`Channel::try_recv`]. It can be looked at after [`Channel::deliver`], which comes before anything else that
    /// receives. Who goes on behind 256 KiB may find the connection full.
    ///
    /// # Errors
    /// As [`Channel::recv`].
    pub fn gather(&mut self, frames: &mut Frames, timeout: Option<Duration>) -> Result<Option<Gathered>, ChannelError> {
        match timeout {
            Some(_) => self.flush()?,
            None => self.usable()?,
        }
        self.keep(!frames.is_empty());
        let Some(frame) = self.next_frame(timeout)? else {
            return timeout.map_or(Ok(None), |after| Err(self.error(Fault::TimedOut { after })));
        };
        self.take(&frame);
        let (payload, compressed) = match frame.content {
            Content::Empty => (0..0, false),
            Content::Signal(signal) => return Ok(Some(Gathered::Signal(signal))),
            Content::Data { payload, compressed } => (payload, compressed),
        };
        if compressed {
            let payload = self.link.input().get(payload).unwrap_or_default();
            frames.push_compressed(payload).map_err(|error| self.failed(Fault::Frame(error)))?;
        } else {
            let start = self.link.buffer().map_or(0, |buffer| buffer.start());
            frames.push(start.saturating_add(payload.start)..start.saturating_add(payload.end));
        }
        self.keep(true);
        Ok(Some(Gathered::Frame))
    }

    /// Hands over the memory of what was gathered, so that it can be looked at.
    pub fn deliver(&mut self, frames: &mut Frames) {
        self.take_back();
        if let Some(buffer) = self.link.buffer() {
            frames.take_over(buffer);
        }
    }

    fn keep(&mut self, keeps: bool) {
        if let Some(buffer) = self.link.buffer() {
            buffer.keep(keeps);
        }
    }

    /// Notes that a frame is used; its bytes go with the next call.
    fn take(&mut self, frame: &Frame) {
        self.lent = frame.consumed;
        self.received.fetch_add(1, Ordering::Relaxed);
        if matches!(frame.content, Content::Signal(Signal::Terminate)) {
            self.health = Health::Terminated;
        }
    }

    fn lend(&mut self, frame: &Frame) -> Result<Received<'_>, ChannelError> {
        self.take(frame);
        let (payload, compressed) = match &frame.content {
            Content::Empty => return Ok(Received::Empty),
            Content::Signal(signal) => return Ok(Received::Signal(*signal)),
            Content::Data { payload, compressed } => (payload.clone(), *compressed),
        };
        if compressed {
            let block = self.link.input().get(payload).unwrap_or_default();
            return match decompress_behind(block, &mut self.decompressed, 0) {
                Ok(end) => Ok(Received::Data(self.decompressed.get(..end).unwrap_or_default())),
                Err(error) => Err(self.failed(Fault::Frame(error))),
            };
        }
        Ok(Received::Data(self.link.input().get(payload).unwrap_or_default()))
    }

    /// Ends the loan of the last frame.
    fn take_back(&mut self) {
        self.link.consume(self.lent);
        self.lent = 0;
    }

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

    /// What is wrong with the chain of certificates that a failed handshake has seen, in the stock daemon's words.
    pub fn certificate_errors(&self) -> &[String] {
        &self.certificate_errors
    }

    /// Leaves TLS without telling the peer, who does the same; the next frames are clear (reference 01 §11.5). Does
    /// nothing on a clear connection.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub fn drop_tls(&mut self) -> Result<(), ChannelError> {
        self.usable()?;
        self.take_back();
        self.link.drop_tls().map_err(|fault| self.failed(fault))
    }

    /// Switches LZ4 on or off for the frames to come. What is received is decompressed in any case.
    pub fn set_compression(&mut self, on: bool) {
        self.encoder.set_compress(on);
    }

    /// Whether the peer is about to send much. If so, who receives is woken for a heap of it, not for each frame; the last
    /// ones come a few milliseconds late.
    pub fn expect_many(&mut self, many: bool) {
        if let Some(wire) = self.link.wire_mut() {
            wire.receive_heaps(many);
        }
    }

    /// From now on a frame whose header announces more than this many bytes ends the connection: nothing of it is read or
    /// decompressed. At first, and at most, it is [`MAX_PAYLOAD`].
    pub const fn limit_frames(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// How long the next handshake may take, instead of what was said at the beginning.
    pub const fn limit_handshake(&mut self, longest: Duration) {
        self.limits.handshake = longest;
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

    /// Who is at the other end.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The address of the other end.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether frames are encrypted now.
    pub const fn is_encrypted(&self) -> bool {
        self.link.is_encrypted()
    }

    /// Version and cipher suite, such as `TLSv1.3 TLS_AES_128_GCM_SHA256`; `None` in clear.
    pub fn cipher(&self) -> Option<String> {
        self.link.cipher()
    }

    /// Whether TERMINATE was received: sending fails from now on.
    pub fn is_terminated(&self) -> bool {
        self.health == Health::Terminated
    }

    /// A handle that ends this channel from other threads.
    pub fn canceller(&self) -> Canceller {
        let socket = self.link.wire().map_or_else(Weak::new, Wire::socket);
        Canceller { flag: Arc::clone(&self.cancelled), socket, received: Arc::clone(&self.received) }
    }

    /// Sends the rest, says good-bye (`close_notify` in TLS), and waits a little until the peer has closed too. A
    /// channel that is only dropped loses what was not flushed.
    ///
    /// # Errors
    /// What was sent last could not be handed to the kernel. How the peer leaves is no error.
    pub fn close(self) -> Result<(), ChannelError> {
        self.leave().map(Farewell::wait)
    }

    /// As [`Channel::close`], but leaves the waiting to the caller, who may have something better to do first.
    ///
    /// # Errors
    /// As [`Channel::close`].
    pub fn leave(mut self) -> Result<Farewell, ChannelError> {
        let deadline = Instant::now().checked_add(self.limits.goodbye);
        if self.health == Health::Failed || self.is_cancelled() {
            return Ok(Farewell { link: None, deadline });
        }
        self.link.say_goodbye().map_err(|fault| self.failed(fault))?;
        Ok(Farewell { link: Some(self.link), deadline })
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn usable(&self) -> Result<(), ChannelError> {
        match self.health {
            _ if self.is_cancelled() => Err(self.error(Fault::Cancelled)),
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
        self.error(if self.is_cancelled() { Fault::Cancelled } else { fault })
    }

    /// A frame that cannot be read. The stock daemon then acts as if it had received TERMINATE.
    fn impossible(&mut self, error: FrameError) -> ChannelError {
        self.health = Health::Terminated;
        self.error(Fault::Frame(error))
    }

    /// The peer has closed while `needed` bytes were wanted.
    fn ended(&mut self, needed: usize) -> ChannelError {
        let have = self.link.input().len();
        let fault = match have.checked_sub(HEADER_LEN) {
            Some(got) => Fault::ShortRead { expected: needed.saturating_sub(HEADER_LEN), got },
            None => Fault::Closed,
        };
        self.failed(fault)
    }
}

#[cfg(test)]
mod tests;
