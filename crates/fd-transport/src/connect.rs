//! Connecting to a Storage Daemon or a Director, with retries (reference 01 §18.4).

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use dns_lookup::AddrInfoHints;
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::ready::wait_for;
use crate::wire::keep_alive;
use crate::{Channel, ConnectError, Limits, Peer, texts};

/// Longest time between two calls of [`ConnectWatch::canceled`].
const STEP: Duration = Duration::from_millis(200);
/// After the first warning about a failed try, the next ones are this far apart.
const WARN_EVERY: Duration = Duration::from_secs(300);

/// A peer that has not answered, or called, for so long is worth a message.
pub const SILENCE: Duration = Duration::from_secs(5);

/// The peer of a connection, and how to connect.
#[derive(Clone, Debug)]
pub struct ConnectPlan {
    /// Kind, host (name or numeric address, IPv6 without brackets) and port.
    pub peer: Peer,
    /// `FD Source Address`.
    pub source: Option<IpAddr>,
    /// Pause between two tries: 10 s towards a Storage Daemon, 5 s towards a Director.
    pub retry_every: Duration,
    /// When to give up: `SD Connect Timeout`, 15 s towards a Director. Zero is one try, which takes
    /// as long as the kernel gives it.
    pub give_up_after: Duration,
    /// Idle time before TCP sends keepalives (`Heartbeat Interval`); `None` leaves it to the
    /// kernel.
    pub keep_idle: Option<Duration>,
    /// `Maximum Network Buffer Size` in bytes; the kernel may take less.
    pub send_buffer: Option<usize>,
}

/// What the caller does while a connection is being made.
pub trait ConnectWatch {
    /// Whether to stop; asked several times a second.
    fn canceled(&self) -> bool;

    /// A try failed and there will be another, or an address does not answer; `text` is for a
    /// warning. Not called at the first failure.
    fn retrying(&self, text: &str);
}

impl Channel {
    /// Connects, with retries until the plan's time is up. Every try goes through all addresses of
    /// the host.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(plan: &ConnectPlan, limits: Limits, watch: &dyn ConnectWatch) -> Result<Self, ConnectError> {
        let (start, told_of_silence) = (Instant::now(), Cell::new(false));
        let attempt = Attempt { plan, watch, start, clock: &Instant::now, lookup: resolve, told_of_silence };
        let stream = attempt.run()?;
        Self::over(stream, plan.peer.clone(), limits)
            .map_err(|source| ConnectError::Unreachable { peer: plan.peer.clone(), source })
    }
}

/// Addresses of a host: those of IPv6 first, each only once.
///
/// # Errors
/// [`ConnectError::Resolve`]: it has none.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let found =
        (host, port).to_socket_addrs().map_err(|source| ConnectError::Resolve { host: host.to_owned(), source })?;
    let mut addresses = in_order(found);
    if !addresses.iter().any(SocketAddr::is_ipv4) && host.parse::<IpAddr>().is_err() {
        // Asked for IPv4 alone, the C library takes `::1` of `/etc/hosts` for 127.0.0.1, where a
        // daemon of that host may listen; so the stock daemon reaches it.
        addresses.extend(in_order(ipv4_of(host, port)));
    }
    if addresses.is_empty() {
        return Err(ConnectError::Resolve { host: host.to_owned(), source: Errno::ADDRNOTAVAIL.into() });
    }
    Ok(addresses)
}

/// The addresses of IPv4 of a host; that there are none is no error.
fn ipv4_of(host: &str, port: u16) -> Vec<SocketAddr> {
    const AF_INET: i32 = 2;
    let hints = AddrInfoHints { address: AF_INET, ..AddrInfoHints::default() };
    let found = dns_lookup::getaddrinfo(Some(host), None, Some(hints)).into_iter().flatten().flatten();
    found.map(|info| SocketAddr::new(info.sockaddr.ip(), port)).collect()
}

fn in_order(found: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.sort_by_key(SocketAddr::is_ipv4);
    addresses
}

/// Finds the addresses of a host.
type Lookup = fn(&str, u16) -> Result<Vec<SocketAddr>, ConnectError>;

struct Attempt<'a> {
    plan: &'a ConnectPlan,
    watch: &'a dyn ConnectWatch,
    start: Instant,
    clock: &'a dyn Fn() -> Instant,
    lookup: Lookup,
    /// The caller knows that an address does not answer.
    told_of_silence: Cell<bool>,
}

impl Attempt<'_> {
    fn run(&self) -> Result<TcpStream, ConnectError> {
        let addresses = self.addresses()?;
        let mut failures = 0_u32;
        let mut warned: Option<Instant> = None;
        loop {
            let error = match self.try_all(&addresses)? {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            failures = failures.saturating_add(1);
            if self.left().is_zero() {
                return Err(self.unreachable(error));
            }
            let now = (self.clock)();
            if failures >= 2 && warned.is_none_or(|warned| now.saturating_duration_since(warned) >= WARN_EVERY) {
                warned = Some(now);
                let tried = if self.plan.peer.host.parse::<IpAddr>().is_ok() { &[] } else { addresses.as_slice() };
                self.watch.retrying(&texts::retrying(&self.plan.peer, &error, tried));
            }
            self.pause()?;
            if self.left().is_zero() {
                return Err(self.unreachable(error));
            }
        }
    }

    /// The peer's addresses. The C library's wait for name servers can't be ended, so a thread
    /// waits, and is left behind if the connection is not wanted any more.
    fn addresses(&self) -> Result<Vec<SocketAddr>, ConnectError> {
        let (lookup, host, port) = (self.lookup, self.plan.peer.host.clone(), self.plan.peer.port);
        if host.parse::<IpAddr>().is_ok() {
            return lookup(&host, port);
        }
        let Ok(thread) = fd_os::threads::start("asks for a name", move || lookup(&host, port)) else {
            return lookup(&self.plan.peer.host, port);
        };
        let found = thread.end(|| {
            let waited = (self.clock)().saturating_duration_since(self.start);
            if waited >= SILENCE && !self.told_of_silence.replace(true) {
                self.watch.retrying(&texts::no_address_yet(&self.plan.peer));
            }
            !self.watch.canceled()
        });
        match found {
            Some(Ok(found)) => found,
            Some(Err(_panic)) => {
                Err(ConnectError::Resolve { host: self.plan.peer.host.clone(), source: io::ErrorKind::Other.into() })
            }
            None => Err(ConnectError::Canceled { peer: self.plan.peer.clone() }),
        }
    }

    /// One round; the inner error is worth another. An address of a family that this host, or the
    /// source address, can't use does not stand in the way of the others.
    fn try_all(&self, addresses: &[SocketAddr]) -> Result<io::Result<TcpStream>, ConnectError> {
        let (mut failed, mut unusable) = (None, None);
        for (place, address) in addresses.iter().enumerate() {
            let others = addresses.len().saturating_sub(place + 1);
            match self.open(address) {
                Err(error) => unusable = unusable.or(Some(error)),
                Ok(socket) => match self.connect(&socket, address, others)? {
                    Ok(()) => return Ok(Ok(socket.into())),
                    Err(error) => failed = Some(error),
                },
            }
        }
        match (failed, unusable) {
            (None, Some(error)) => Err(error),
            (failed, _) => Ok(Err(failed.unwrap_or_else(|| Errno::TIMEDOUT.into()))),
        }
    }

    /// A socket with its options, bound where that is asked for.
    fn open(&self, address: &SocketAddr) -> Result<Socket, ConnectError> {
        let domain = Domain::for_address(*address);
        let family = i32::from(domain);
        let open = || {
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            socket.set_keepalive(true)?;
            keep_alive(&socket, self.plan.keep_idle.unwrap_or_default())?;
            if let Some(size) = self.plan.send_buffer {
                socket.set_send_buffer_size(size)?;
            }
            Ok(socket)
        };
        let socket = open().map_err(|source| ConnectError::Socket { family, port: address.port(), source })?;
        if let Some(source) = self.plan.source {
            socket
                .bind(&SockAddr::from(SocketAddr::new(source, 0)))
                .map_err(|source| ConnectError::Source { family, source })?;
        }
        Ok(socket)
    }

    /// Waits for the connection in steps, so that canceling does not have to wait for the network.
    /// One that is silent leaves their share of the time to the `others`.
    fn connect(&self, socket: &Socket, address: &SocketAddr, others: usize) -> Result<io::Result<()>, ConnectError> {
        let is_limited = !self.plan.give_up_after.is_zero();
        let share = || self.left() / u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let share = (others > 0 && is_limited).then(share);
        match socket.connect(&SockAddr::from(*address)) {
            Ok(()) => return Ok(Ok(())),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {}
            Err(error) => return Ok(Err(error)),
        }
        let begun = Instant::now();
        loop {
            self.still_wanted()?;
            if begun.elapsed() >= SILENCE && !self.told_of_silence.replace(true) {
                self.watch.retrying(&texts::silent(&self.plan.peer, *address));
            }
            let step = if is_limited { self.left().min(STEP) } else { STEP };
            match wait_for(socket, PollFlags::OUT, step) {
                // The stock daemon's timer interrupts its connect here.
                Ok(shown) if shown.is_empty() && step.is_zero() => return Ok(Err(Errno::INTR.into())),
                Ok(shown) if shown.is_empty() && share.is_some_and(|share| begun.elapsed() >= share) => {
                    return Ok(Err(Errno::TIMEDOUT.into()));
                }
                Ok(shown) if shown.is_empty() => {}
                Ok(_) => return Ok(socket.take_error().and_then(|error| error.map_or(Ok(()), Err))),
                Err(errno) => return Ok(Err(errno.into())),
            }
        }
    }

    fn pause(&self) -> Result<(), ConnectError> {
        let until = (self.clock)().checked_add(self.plan.retry_every.min(self.left()));
        loop {
            self.still_wanted()?;
            match until.map(|until| until.saturating_duration_since((self.clock)())) {
                Some(Duration::ZERO) | None => return Ok(()),
                Some(left) => std::thread::sleep(left.min(STEP)),
            }
        }
    }

    fn still_wanted(&self) -> Result<(), ConnectError> {
        if self.watch.canceled() { Err(ConnectError::Canceled { peer: self.plan.peer.clone() }) } else { Ok(()) }
    }

    fn left(&self) -> Duration {
        self.plan.give_up_after.saturating_sub((self.clock)().saturating_duration_since(self.start))
    }

    fn unreachable(&self, source: io::Error) -> ConnectError {
        ConnectError::Unreachable { peer: self.plan.peer.clone(), source }
    }
}

#[cfg(test)]
mod tests;
