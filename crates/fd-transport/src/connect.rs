//! Connecting to a Storage Daemon or a Director, with patience (reference 01 §18.4).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use crate::ready::wait_for;
use crate::{Channel, ConnectError, Limits, Peer, texts};

/// Longest time between two looks at [`ConnectWatch::cancelled`].
const STEP: Duration = Duration::from_millis(200);
/// After the first warning about a failed try, the next ones are this far apart.
const WARN_EVERY: Duration = Duration::from_secs(300);

/// Whom to connect to, and how.
#[derive(Clone, Debug)]
pub struct ConnectPlan {
    /// Kind, host (name or numeric address, IPv6 without brackets) and port.
    pub peer: Peer,
    /// `FD Source Address`.
    pub source: Option<IpAddr>,
    /// Pause between two tries: 10 s towards a Storage Daemon, 5 s towards a Director.
    pub retry_every: Duration,
    /// When to give up: `SD Connect Timeout`, 15 s towards a Director.
    pub give_up_after: Duration,
    /// Idle time before TCP sends keepalives (`Heartbeat Interval`); `None` leaves it to the kernel.
    pub keep_idle: Option<Duration>,
    /// `Maximum Network Buffer Size` in bytes; the kernel may take less.
    pub send_buffer: Option<usize>,
}

/// What the caller does while connecting takes its time.
pub trait ConnectWatch {
    /// Whether to stop; asked several times a second.
    fn cancelled(&self) -> bool;

    /// A try failed and there will be another; `text` is for a warning. Not called at the first failure.
    fn retrying(&self, text: &str);
}

impl Channel {
    /// Connects, with retries until the plan's time is up. Every try goes through all addresses of the host.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(plan: &ConnectPlan, limits: Limits, watch: &dyn ConnectWatch) -> Result<Self, ConnectError> {
        let stream = Attempt { plan, watch, start: Instant::now() }.run()?;
        Self::over(stream, plan.peer.clone(), limits)
            .map_err(|source| ConnectError::Unreachable { peer: plan.peer.clone(), source })
    }
}

/// Addresses of a host: those of IPv6 first, each only once.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let found =
        (host, port).to_socket_addrs().map_err(|source| ConnectError::Resolve { host: host.to_owned(), source })?;
    let addresses = in_order(found);
    if addresses.is_empty() {
        return Err(ConnectError::Resolve { host: host.to_owned(), source: Errno::ADDRNOTAVAIL.into() });
    }
    Ok(addresses)
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

struct Attempt<'a> {
    plan: &'a ConnectPlan,
    watch: &'a dyn ConnectWatch,
    start: Instant,
}

impl Attempt<'_> {
    fn run(&self) -> Result<TcpStream, ConnectError> {
        let addresses = resolve(&self.plan.peer.host, self.plan.peer.port)?;
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
            if failures >= 2 && warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
                warned = Some(Instant::now());
                self.watch.retrying(&texts::retrying(&self.plan.peer, &error));
            }
            self.pause()?;
            if self.left().is_zero() {
                return Err(self.unreachable(error));
            }
        }
    }

    /// One round; the inner error is worth another.
    fn try_all(&self, addresses: &[SocketAddr]) -> Result<io::Result<TcpStream>, ConnectError> {
        let mut last = io::Error::from(Errno::TIMEDOUT);
        for address in addresses {
            let socket = self.open(address)?;
            match self.connect(&socket, address)? {
                Ok(()) => return Ok(Ok(socket.into())),
                Err(error) => last = error,
            }
        }
        Ok(Err(last))
    }

    /// A socket with its options, bound where that is asked for.
    fn open(&self, address: &SocketAddr) -> Result<Socket, ConnectError> {
        let domain = Domain::for_address(*address);
        let family = i32::from(domain);
        let open = || {
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            socket.set_keepalive(true)?;
            if let Some(idle) = self.plan.keep_idle.filter(|idle| !idle.is_zero()) {
                socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))?;
            }
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

    /// Waits for the connection in steps, so that cancelling does not have to wait for the network.
    fn connect(&self, socket: &Socket, address: &SocketAddr) -> Result<io::Result<()>, ConnectError> {
        match socket.connect(&SockAddr::from(*address)) {
            Ok(()) => return Ok(Ok(())),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {}
            Err(error) => return Ok(Err(error)),
        }
        loop {
            self.still_wanted()?;
            let step = self.left().min(STEP);
            if step.is_zero() {
                // The stock daemon's timer interrupts its connect here.
                return Ok(Err(Errno::INTR.into()));
            }
            match wait_for(socket, PollFlags::OUT, step) {
                Ok(shown) if shown.is_empty() => {}
                Ok(_) => return Ok(socket.take_error().and_then(|error| error.map_or(Ok(()), Err))),
                Err(errno) => return Ok(Err(errno.into())),
            }
        }
    }

    fn pause(&self) -> Result<(), ConnectError> {
        let until = Instant::now().checked_add(self.plan.retry_every.min(self.left()));
        loop {
            self.still_wanted()?;
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) | None => return Ok(()),
                Some(left) => std::thread::sleep(left.min(STEP)),
            }
        }
    }

    fn still_wanted(&self) -> Result<(), ConnectError> {
        if self.watch.cancelled() { Err(ConnectError::Cancelled { peer: self.plan.peer.clone() }) } else { Ok(()) }
    }

    fn left(&self) -> Duration {
        self.plan.give_up_after.saturating_sub(self.start.elapsed())
    }

    fn unreachable(&self, source: io::Error) -> ConnectError {
        ConnectError::Unreachable { peer: self.plan.peer.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PeerKind;
    use std::cell::{Cell, RefCell};
    use std::net::TcpListener;

    #[derive(Default)]
    struct Watch {
        questions: Cell<u32>,
        cancel_at: Option<u32>,
        warnings: RefCell<Vec<String>>,
    }

    impl ConnectWatch for Watch {
        fn cancelled(&self) -> bool {
            self.questions.set(self.questions.get() + 1);
            self.cancel_at.is_some_and(|at| self.questions.get() >= at)
        }

        fn retrying(&self, text: &str) {
            self.warnings.borrow_mut().push(text.to_owned());
        }
    }

    fn plan(port: u16, give_up_after: Duration) -> ConnectPlan {
        ConnectPlan {
            peer: Peer { kind: PeerKind::Storage, host: "127.0.0.1".to_owned(), port },
            source: None,
            retry_every: Duration::from_millis(10),
            give_up_after,
            keep_idle: Some(Duration::from_secs(300)),
            send_buffer: Some(100_000),
        }
    }

    /// A port that nobody listens on.
    fn dead_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn connects_with_a_source_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut plan = plan(listener.local_addr().unwrap().port(), Duration::from_secs(5));
        plan.source = Some("127.0.0.3".parse().unwrap());
        let channel = Channel::connect(&plan, Limits::default(), &Watch::default()).unwrap();
        assert_eq!(channel.address(), listener.local_addr().unwrap());
        assert_eq!(channel.peer().to_string(), format!("Storage daemon:127.0.0.1:{}", plan.peer.port));
        let (_theirs, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.3");
    }

    #[test]
    fn refusals_are_retried_until_the_time_is_up_and_warned_of_from_the_second_on() {
        let port = dead_port();
        let watch = Watch::default();
        let error = Channel::connect(&plan(port, Duration::from_millis(100)), Limits::default(), &watch).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("[FE0039] Unable to connect to Storage daemon on 127.0.0.1:{port}. ERR=Connection refused")
        );
        assert_eq!(
            *watch.warnings.borrow(),
            [format!(
                "Could not connect to Storage daemon on 127.0.0.1:{port}. ERR=Connection refused\nRetrying ...\n"
            )]
        );
    }

    #[test]
    fn a_retry_finds_a_daemon_that_came_up_meanwhile() {
        struct Starter(RefCell<Option<TcpListener>>, u16);
        impl ConnectWatch for Starter {
            fn cancelled(&self) -> bool {
                false
            }
            fn retrying(&self, _text: &str) {
                *self.0.borrow_mut() = Some(TcpListener::bind(("127.0.0.1", self.1)).unwrap());
            }
        }
        let starter = Starter(RefCell::default(), dead_port());
        Channel::connect(&plan(starter.1, Duration::from_secs(20)), Limits::default(), &starter).unwrap();
    }

    #[test]
    fn cancelling_ends_the_pause() {
        let watch = Watch { cancel_at: Some(2), ..Watch::default() };
        let mut plan = plan(dead_port(), Duration::from_secs(3600));
        plan.retry_every = Duration::from_secs(3600);
        let error = Channel::connect(&plan, Limits::default(), &watch).unwrap_err();
        assert!(matches!(error, ConnectError::Cancelled { .. }), "{error}");
    }

    #[test]
    fn what_cannot_get_better_is_not_retried() {
        let mut unknown = plan(9103, Duration::from_secs(3600));
        unknown.peer.host = "no host has this name".to_owned();
        let error = Channel::connect(&unknown, Limits::default(), &Watch::default()).unwrap_err();
        let head = "[FE0060] gethostbyname() for host \"no host has this name\" failed: ERR=";
        assert!(error.to_string().starts_with(head), "{error}");
        let mut foreign = plan(9103, Duration::from_secs(3600));
        foreign.source = Some("192.0.2.1".parse().unwrap());
        let error = Channel::connect(&foreign, Limits::default(), &Watch::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "[FE0062] Source address bind error. proto=2. ERR=Cannot assign requested address"
        );
    }

    #[test]
    fn the_director_has_its_own_number() {
        let mut plan = plan(dead_port(), Duration::ZERO);
        plan.peer.kind = PeerKind::Director;
        let error = Channel::connect(&plan, Limits::default(), &Watch::default()).unwrap_err();
        assert!(error.to_string().starts_with("[FE0019] Unable to connect to Director daemon on"), "{error}");
    }

    #[test]
    fn addresses_of_ipv6_come_first_and_once() {
        let parsed = |addresses: &[&str]| -> Vec<SocketAddr> {
            addresses.iter().map(|address| address.parse().unwrap()).collect()
        };
        let found = ["127.0.0.1:1", "[::2]:1", "127.0.0.1:1", "127.0.0.2:1", "[::1]:1", "[::2]:1"];
        let expected = ["[::2]:1", "[::1]:1", "127.0.0.1:1", "127.0.0.2:1"];
        assert_eq!(in_order(parsed(&found)), parsed(&expected));
        assert_eq!(resolve("::1", 1).unwrap(), parsed(&["[::1]:1"]));
        match resolve("localhost", 9103) {
            Ok(addresses) => assert_eq!(in_order(addresses.clone()), addresses),
            Err(_) => skip::part("localhost has no address here"),
        }
    }
}
