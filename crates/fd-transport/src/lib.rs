//! An address and a secret become an authenticated channel of frames: TCP, TLS, bandwidth limit,
//! retries.
//!
//! A [`Channel`] is blocking and has one owner thread; others reach it through a [`Canceler`] and
//! a [`Bandwidth`]. It carries frames and signals; what they mean, and their order, is the business
//! of `fd-session`.
//!
//! From the outside in, the layers are:
//!
//! - `channel`: frames, their counters, the good-bye, canceling;
//! - `link`: bytes, clear or encrypted;
//! - `tls`: handshakes, certificates, the bytes inside a TLS session;
//! - `wire`: the socket with its buffers, and the bandwidth limit.
//!
//! The buffers are below TLS, so TLS can start and end at any frame border without losing a byte,
//! and many TLS records leave in one system call. `connect` makes the connection that a channel
//! takes over.

mod channel;
mod connect;
mod error;
mod link;
mod peer;
mod ready;
mod texts;
mod tls;
mod wire;

pub use channel::{Canceler, Channel, Farewell, Frames, Gathered, Limits, Received, Unwanted, wait_for_either};
pub use connect::{ConnectPlan, ConnectWatch, SILENCE, resolve};
pub use error::{CertificateProblem, ChannelError, ConnectError, Fault};
pub use peer::{Peer, PeerKind};
pub use tls::{CertificateFiles, Certificates, TlsSecret, TlsSide};
pub use wire::{Bandwidth, WireStats};

/// How long an established connection of a job may be idle: 200 days, as in the stock daemon
/// (reference 01 §19). For [`Channel::recv`] where nothing else limits the wait.
pub const IDLE_LIMIT: std::time::Duration = std::time::Duration::from_secs(200 * 24 * 60 * 60);
