//! Ports of loopback: reserved for one test without a race, and a look at which ports have a
//! listener. Only for tests: each crate and the bed has it.
//!
//! A reservation is a socket that is bound but does not listen. Linux gives such a port to no
//! process that asks for "any port", but lets a daemon that sets `SO_REUSEADDR` (all of Bacula's
//! do) bind and listen on it. So tests side by side never choose the same port, and nothing has to
//! be tried twice.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::{fmt, io};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt};

/// There is no port, or no look at them.
#[derive(Debug)]
pub struct PortError {
    what: &'static str,
    source: io::Error,
}

impl PortError {
    fn of<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self { what, source: source.into() }
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.source)
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A port of 127.0.0.1 that no other process is given while this value lives.
#[derive(Debug)]
pub struct ReservedPort {
    _socket: OwnedFd,
    port: u16,
}

impl ReservedPort {
    /// Takes a free one.
    ///
    /// # Errors
    /// There is none.
    pub fn new() -> Result<Self, PortError> {
        let socket = unbound()?;
        bind(socket.as_raw_fd(), &loopback(0)).map_err(PortError::of("bind"))?;
        let address: SockaddrIn = getsockname(socket.as_raw_fd()).map_err(PortError::of("getsockname"))?;
        Ok(Self { port: address.port(), _socket: socket })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

/// A socket that shares its port with all that do not listen.
fn unbound() -> Result<OwnedFd, PortError> {
    let socket =
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(PortError::of("socket"))?;
    setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(PortError::of("SO_REUSEADDR"))?;
    Ok(socket)
}

fn loopback(port: u16) -> SockaddrIn {
    SockaddrIn::new(127, 0, 0, 1, port)
}

/// Whether a process listens on this port of 127.0.0.1 or of all addresses: then no other socket
/// can be bound to it. The daemon never sees a connection that says nothing (which the stock
/// daemons report as a security matter), and the kernel does not walk all connections of the host,
/// as it does for `/proc/net/tcp`.
///
/// # Errors
/// There is no socket.
pub fn is_listening(port: u16) -> Result<bool, PortError> {
    match bind(unbound()?.as_raw_fd(), &loopback(port)) {
        Ok(()) => Ok(false),
        Err(Errno::EADDRINUSE) => Ok(true),
        Err(error) => Err(PortError::of("bind")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_reserved_port_can_be_listened_on_and_is_seen() {
        let port = ReservedPort::new().unwrap();
        assert!(!is_listening(port.number()).unwrap());
        // std sets SO_REUSEADDR as the daemons do.
        let listener = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        assert!(is_listening(port.number()).unwrap());
        drop(listener);
        assert!(!is_listening(port.number()).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.number())).unwrap();
        assert!(is_listening(port.number()).unwrap());
        // A connection alone is no listener.
        let client = TcpStream::connect(port.address()).unwrap();
        let accepted = listener.accept().unwrap();
        drop(listener);
        assert!(!is_listening(port.number()).unwrap());
        drop((client, accepted));
    }

    #[test]
    fn two_reservations_never_share_a_port() {
        let ports: Vec<_> = (0..200).map(|_| ReservedPort::new().unwrap()).collect();
        let mut numbers: Vec<_> = ports.iter().map(ReservedPort::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ports.len());
    }
}
