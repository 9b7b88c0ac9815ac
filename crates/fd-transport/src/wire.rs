//! The socket with its two buffers: what is below TLS.
//!
//! A read takes what the kernel has, a write is as large as [`OUTPUT_MAX`]. A read that has to wait
//! first sends the output buffer, so the peer never waits for bytes that are still here.

mod buffer;
mod pace;

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fd_os::low_water::set_low_water;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{SockRef, Socket, TcpKeepalive};

use crate::ready::wait_for;
pub(crate) use buffer::ReadBuffer;
pub use pace::Bandwidth;
use pace::Pacer;

/// Bytes that are gathered before they are written unasked.
pub(crate) const OUTPUT_MAX: usize = 256 * 1024;
/// Reads of up to this many bytes are a dialogue, not bulk data.
const DIALOGUE: usize = 16 * 1024;
/// While bulk data is expected, a read waits for so many bytes …
const BULK: i32 = 64 * 1024;
/// … but no longer than this, which the kernel rounds up to its ticks. If nothing has come by then,
/// it waits for the first byte.
const BULK_WAIT: Duration = Duration::from_millis(2);
/// Longest time between two checks of the bandwidth limit while waiting for it.
const PACE_STEP: Duration = Duration::from_millis(500);
/// Shortest timeout that is set on the socket; zero would mean none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// How long a read may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Not at all; what is to be sent stays where it is.
    No,
    /// Until then, or without limit.
    Until(Option<Instant>),
}

/// What went over a socket so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct WireStats {
    /// System calls that received bytes.
    pub reads: u64,
    /// System calls that sent bytes.
    pub writes: u64,
    /// Bytes received, with headers and encryption.
    pub bytes_in: u64,
    /// Bytes sent, with headers and encryption.
    pub bytes_out: u64,
}

/// The longest time before the first keepalive that the kernel takes. The stock daemon gets none
/// with a longer `Heartbeat Interval`, and warns.
const LONGEST_IDLE: Duration = Duration::from_secs(32_767);

/// Has the kernel ask a peer that has been silent for so long whether it is still there; zero
/// leaves the time to the kernel.
pub(crate) fn keep_alive(socket: &Socket, idle: Duration) -> io::Result<()> {
    if idle.is_zero() {
        return Ok(());
    }
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle.min(LONGEST_IDLE)))
}

#[derive(Debug)]
pub(crate) struct Wire {
    stream: Arc<TcpStream>,
    pub(crate) input: ReadBuffer,
    pub(crate) output: Vec<u8>,
    /// How long a read by TLS may wait.
    pub(crate) wait: Wait,
    /// The peer has sent its last byte.
    pub(crate) eof: bool,
    pub(crate) stats: WireStats,
    /// A write stood still, and its rest is in the output: look at what the peer sends, then flush.
    pub(crate) stalled: bool,
    writing: Box<Writing>,
    pacer: Pacer,
    read_timeout: Option<Duration>,
    last_read: usize,
    bulk: Bulk,
}

/// How long writes may stand still.
#[derive(Debug)]
struct Writing {
    /// This long at most.
    longest: Duration,
    /// And this long before the owner looks at what the peer sends meanwhile, if it does.
    step: Option<Duration>,
    since: Option<Instant>,
}

impl Writing {
    /// Nothing could be written for a step.
    fn goes_on(&mut self) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.step.is_some() && since.elapsed() < self.longest
    }
}

/// Whether reads that may wait do so for more than the first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bulk {
    Off,
    On,
    /// Until something arrives: a peer that pauses may do so for long.
    Paused,
}

impl Wire {
    /// Takes over a connected socket. `write_stall` bounds each write that makes no progress.
    pub(crate) fn new(stream: TcpStream, write_stall: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(Some(write_stall.max(TIMEOUT_MIN)))?;
        SockRef::from(&stream).set_keepalive(true)?;
        Ok(Self {
            stream: Arc::new(stream),
            input: ReadBuffer::default(),
            output: Vec::new(),
            wait: Wait::Until(None),
            eof: false,
            stats: WireStats::default(),
            stalled: false,
            writing: Box::new(Writing { longest: write_stall, step: None, since: None }),
            pacer: Pacer::default(),
            read_timeout: None,
            last_read: 0,
            bulk: Bulk::Off,
        })
    }

    pub(crate) fn socket(&self) -> Weak<TcpStream> {
        Arc::downgrade(&self.stream)
    }

    /// From now on a write that stands still returns after each `step`, with [`Self::stalled`] set.
    pub(crate) fn pause_writes(&mut self, step: Option<Duration>) {
        let longest = step.unwrap_or(self.writing.longest).max(TIMEOUT_MIN);
        let set = self.stream.set_write_timeout(Some(longest));
        self.writing.step = step.filter(|_| set.is_ok());
    }

    pub(crate) fn keep_alive(&self, idle: Duration) {
        // Only how soon a dead line is noticed depends on it.
        let _ignored = keep_alive(&SockRef::from(&*self.stream), idle);
    }

    pub(crate) fn set_bandwidth(&mut self, limit: Bandwidth) {
        self.pacer.set_limit(limit);
    }

    /// One read into the input buffer; 0 is the end. [`io::ErrorKind::WouldBlock`] when the wait
    /// was too long.
    pub(crate) fn fill(&mut self, wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::No => RecvFlags::DONTWAIT,
            Wait::Until(_) => {
                self.flush()?;
                self.acknowledge_at_once();
                RecvFlags::empty()
            }
        };
        loop {
            if let Wait::Until(deadline) = wait {
                self.set_read_deadline(deadline)?;
            }
            match recv(&*self.stream, self.input.space(), flags) {
                Ok((n, _)) => {
                    self.received(n);
                    return Ok(n);
                }
                Err(Errno::INTR) => {}
                // The timeout on the socket may be shorter than the deadline: read the clock again.
                Err(Errno::AGAIN) if matches!(wait, Wait::Until(_)) => self.nothing_came(),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Whether reads that may wait do so for [`BULK`] bytes, at most [`BULK_WAIT`] long.
    pub(crate) fn receive_in_bulk(&mut self, bulk: bool) {
        let set = set_low_water(self.stream.as_fd(), if bulk { BULK } else { 1 });
        // Where the kernel refuses, all is as before.
        self.bulk = if bulk && set.is_ok() { Bulk::On } else { Bulk::Off };
    }

    fn nothing_came(&mut self) {
        if self.bulk == Bulk::On && set_low_water(self.stream.as_fd(), 1).is_ok() {
            self.bulk = Bulk::Paused;
        }
    }

    fn received(&mut self, n: usize) {
        self.input.advance(n);
        self.eof |= n == 0;
        self.last_read = n;
        if self.bulk == Bulk::Paused {
            self.receive_in_bulk(true);
        }
        self.stats.reads += 1;
        self.stats.bytes_in += u64::try_from(n).unwrap_or_default();
        // The bytes are here already, but while we wait the peer can't send many more.
        self.pacer.moved(Instant::now(), n);
        self.wait_for_bandwidth();
    }

    /// The stock daemons send with Nagle's algorithm: they hold a small packet back until the last
    /// one is acknowledged. Without this the kernel takes 40 ms to do so in the middle of a
    /// dialogue.
    fn acknowledge_at_once(&self) {
        if self.last_read <= DIALOGUE {
            // Only speed depends on it.
            let _ignored = SockRef::from(&*self.stream).set_tcp_quickack(true);
        }
    }

    /// Sets the socket's timeout for a read that may wait until `deadline`. As a rule the one in
    /// force is good enough: one that ends too early is looked at again then.
    fn set_read_deadline(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let mut wanted = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if self.bulk == Bulk::On && wanted.is_none_or(|wanted| wanted > BULK_WAIT) {
            wanted = Some(BULK_WAIT);
        }
        match (wanted, self.read_timeout) {
            (Some(Duration::ZERO), _) => return Err(Errno::AGAIN.into()),
            (None, None) => return Ok(()),
            (Some(wanted), Some(set)) if wanted.abs_diff(set) <= wanted / 8 => return Ok(()),
            _ => {}
        }
        let timeout = wanted.map(|wanted| wanted.max(TIMEOUT_MIN));
        self.stream.set_read_timeout(timeout)?;
        self.read_timeout = timeout;
        Ok(())
    }

    /// Puts bytes into the output buffer, and sends it when it is full.
    pub(crate) fn queue(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.output.is_empty() && bytes.len() >= OUTPUT_MAX {
            let sent = self.send_all(bytes)?;
            self.output.extend_from_slice(bytes.get(sent..).unwrap_or_default());
            return Ok(());
        }
        if bytes.len() >= DIALOGUE && self.output.capacity() < OUTPUT_MAX {
            // Bulk data: all the room at once, instead of in five steps that copy what is there.
            self.output.reserve(OUTPUT_MAX + bytes.len());
        }
        self.output.extend_from_slice(bytes);
        self.flush_if_full()
    }

    /// Sends the output buffer if it is full and the last write did not stand still.
    pub(crate) fn flush_if_full(&mut self) -> io::Result<()> {
        if self.output.len() < OUTPUT_MAX || self.stalled { Ok(()) } else { self.flush() }
    }

    /// Sends the output buffer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stalled = false;
        if self.output.is_empty() {
            return Ok(());
        }
        let mut output = std::mem::take(&mut self.output);
        let result = self.send_all(&output);
        output.drain(..*result.as_ref().unwrap_or(&output.len()));
        self.output = output;
        result.map(drop)
    }

    /// Returns how many bytes were sent: all, unless the write stood still.
    fn send_all(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let all = bytes.len();
        while !bytes.is_empty() {
            self.wait_for_bandwidth();
            let piece = bytes.get(..self.pacer.piece(bytes.len())).unwrap_or(bytes);
            match send(&*self.stream, piece, SendFlags::NOSIGNAL) {
                Ok(n) => {
                    self.stats.writes += 1;
                    self.stats.bytes_out += u64::try_from(n).unwrap_or_default();
                    self.pacer.moved(Instant::now(), n);
                    self.writing.since = None;
                    bytes = bytes.get(n..).unwrap_or_default();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.writing.goes_on() => {
                    self.stalled = true;
                    break;
                }
                // The write made no progress for the whole stall limit.
                Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(all - bytes.len())
    }

    /// Waits until the limit lets the next byte through. Ends early when the connection is gone, so
    /// that the next call on the socket says so.
    fn wait_for_bandwidth(&mut self) {
        loop {
            let wait = self.pacer.wait(Instant::now());
            if wait.is_zero() {
                return;
            }
            let gone = wait_for(&*self.stream, PollFlags::empty(), wait.clamp(TIMEOUT_MIN, PACE_STEP));
            if !gone.is_ok_and(|shown| shown.is_empty()) {
                return;
            }
        }
    }

    /// Closes our direction of the connection.
    pub(crate) fn end_output(&self) {
        // An error means that the connection is gone already.
        let _ignored = self.stream.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests;
