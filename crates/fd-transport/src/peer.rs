//! The other end of a connection, as messages name it.

/// The peer's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerKind {
    /// A peer that connected to our listening port.
    Client,
    /// The Storage Daemon that we connected to.
    Storage,
    /// The Director that we connected to.
    Director,
}

/// The other end of a connection. Displays as `Storage daemon:127.0.0.1:9103` (reference 01 §1.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The peer's part.
    pub kind: PeerKind,
    /// The host as it was given to us; the numeric address of a [`PeerKind::Client`].
    pub host: String,
    /// The port we connected to; our own listening port for a [`PeerKind::Client`].
    pub port: u16,
}
