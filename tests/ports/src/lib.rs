//! Ports of loopback: reserved for one test without a race, and a look at which ports have a
//! listener. Only for tests: each crate and the bed has it.
//!
//! A reservation is a socket that is bound but does not listen. Linux gives such a port to no
//! process that asks for "any port", but lets a daemon that sets `SO_REUSEADDR` (all of Bacula's
//! do) bind and listen on it. So tests side by side never choose the same port, and nothing has to
//! be tried twice.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::{fmt, fs, io};

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
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
            .map_err(PortError::of("socket"))?;
        setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(PortError::of("SO_REUSEADDR"))?;
        bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).map_err(PortError::of("bind"))?;
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

/// Whether a process listens on this port of 127.0.0.1 or of all addresses. Read from `/proc`, so
/// the daemon never sees a connection that says nothing (which the stock daemons report as a
/// security matter).
///
/// # Errors
/// `/proc` can't be read.
pub fn is_listening(port: u16) -> Result<bool, PortError> {
    const LISTEN: &str = "0A";
    const TABLE: &str = "/proc/net/tcp";
    let table = fs::read_to_string(TABLE).map_err(PortError::of(TABLE))?;
    let wanted = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED]
        .map(|address| format!("{:08X}:{port:04X}", u32::from_le_bytes(address.octets())));
    Ok(table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        fields.nth(1) == Some(LISTEN) && wanted.iter().any(|address| address == local)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_reserved_port_can_be_listened_on_and_is_seen() {
        let port = ReservedPort::new().unwrap();
        assert!(!is_listening(port.number()).unwrap());
        // std sets SO_REUSEADDR as the daemons do.
        let listener = TcpListener::bind(("127.0.0.1", port.number())).unwrap();
        assert!(is_listening(port.number()).unwrap());
        drop(listener);
        assert!(!is_listening(port.number()).unwrap());
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
