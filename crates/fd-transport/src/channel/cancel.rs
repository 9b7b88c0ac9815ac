//! Ending a channel from another thread.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::event::PollFlags;

use super::Channel;
use crate::ready::wait_for;
use crate::wire::Wire;

/// Ends a channel from any thread: whatever its owner waits for fails with [`Fault::Canceled`].
///
/// [`Fault::Canceled`]: crate::Fault::Canceled
#[derive(Clone, Debug)]
pub struct Canceler {
    flag: Arc<AtomicBool>,
    socket: Weak<TcpStream>,
    received: Arc<AtomicU64>,
}

impl Canceler {
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

    /// The same, after waiting for it at most this long.
    pub fn peer_leaves_within(&self, longest: Duration) -> bool {
        let Some(socket) = self.socket.upgrade() else { return true };
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        wait_for(&*socket, PollFlags::RDHUP, longest).is_ok_and(|shown| shown.intersects(gone))
    }

    /// Whether the peer sends something, or leaves, within this time. To be asked when nothing of
    /// what it has sent waits to be received.
    pub fn peer_answers_within(&self, longest: Duration) -> bool {
        let Some(socket) = self.socket.upgrade() else { return true };
        !matches!(wait_for(&*socket, PollFlags::IN, longest), Ok(shown) if shown.is_empty())
    }

    /// Whether [`Canceler::cancel`] was called.
    pub fn is_canceled(&self) -> bool {
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

impl Channel {
    /// A handle that ends this channel from other threads.
    pub fn canceler(&self) -> Canceler {
        let socket = self.link.wire().map_or_else(Weak::new, Wire::socket);
        Canceler { flag: Arc::clone(&self.canceled), socket, received: Arc::clone(&self.incoming.count) }
    }
}
