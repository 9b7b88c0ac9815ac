//! An address and a secret become an authenticated channel of frames: TCP, TLS, bandwidth limit, retries.
//!
//! A [`Channel`] is blocking and has one owner thread; others reach it through a [`Canceller`] and a [`Bandwidth`].
//! It knows frames and signals but not what they mean: who says what and when is the business of `fd-session`.
//!
//! From the outside in, the layers are: frames (`channel`), clear or encrypted bytes (`link`, `tls`), the socket with
//! its buffers (`wire`). The buffers lie under TLS, so that TLS can start and end at any frame border without losing a
//! byte, and many TLS records leave in one system call.

mod channel;
mod connect;
mod error;
mod link;
mod peer;
mod texts;
mod tls;
mod wire;

pub use channel::{Canceller, Channel, Farewell, Frames, Gathered, Limits, Received, wait_for_either};
pub use connect::{ConnectPlan, ConnectWatch};
pub use error::{ChannelError, ConnectError, Fault};
pub use peer::{Peer, PeerKind};
pub use tls::{CertificateFiles, CertificateProblem, Certificates};
pub use wire::{Bandwidth, WireStats};

/// How long an established connection of a job may be idle: 200 days, as in the stock daemon (reference 01 §19).
/// For [`Channel::recv`] where nothing else limits the wait.
pub const IDLE_LIMIT: std::time::Duration = std::time::Duration::from_secs(200 * 24 * 60 * 60);
