//! The listening sockets, and a thread for each connection that they accept.
//!
//! Plain threads: a Director's connection is one blocking conversation. Callers that are not logged
//! in have a few places of their own, and at most `Maximum Concurrent Jobs` that have logged in are
//! served at once.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fd_os::lock::Mutex;
use fd_transport::{Channel, Limits};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};

use crate::director;
use crate::shared::daemon::Daemon;
use crate::shared::pulses::Pulse;
use crate::shortage;

/// How often a listener reports that it is alive without any caller.
const LISTENING: Duration = Duration::from_secs(30);

/// Waits for the next caller, and reports to `pulse`, which rests behind it: the wait for a free
/// slot may last as long as jobs run, and a listener that is closed has no next caller. The
/// listener must not block.
fn await_caller(listener: &TcpListener, pulse: &Pulse) -> io::Result<(TcpStream, SocketAddr)> {
    let awaited = loop {
        pulse.due_within(LISTENING);
        let mut waits = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waits, PollTimeout::try_from(LISTENING).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => break Err(errno.into()),
        }
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => break accepted,
        }
    };
    pulse.rest();
    awaited
}

/// The sockets that Directors call.
pub(super) struct Listeners(Vec<Arc<TcpListener>>);

impl Listeners {
    /// Those that are bound; no call is taken yet.
    pub(super) fn new(bound: Vec<TcpListener>) -> Self {
        Self(bound.into_iter().map(Arc::new).collect())
    }

    /// Starts a thread for each.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn start(&self, daemon: &Arc<Daemon>) -> io::Result<()> {
        for listener in &self.0 {
            let (daemon, listener) = (Arc::clone(daemon), Arc::clone(listener));
            let address = listener.local_addr()?;
            let thread = thread::Builder::new().name(format!("listener {address}"));
            let _ends_when_closed = thread.spawn(move || listen(&daemon, &listener))?;
        }
        Ok(())
    }

    /// Takes no call any more.
    pub(super) fn close(&self) {
        for listener in &self.0 {
            if let Err(error) = shutdown(listener.as_raw_fd(), Shutdown::Both) {
                tracing::warn!(%error, "a listener can't be closed");
            }
        }
    }
}

/// Accepts connections of `listener` until it is closed.
fn listen(daemon: &Arc<Daemon>, listener: &TcpListener) {
    let pulse = daemon.pulses.add("listener");
    if let Err(error) = listener.set_nonblocking(true) {
        tracing::warn!(%error, "a listener can't report that it is alive");
    }
    loop {
        match await_caller(listener, &pulse) {
            Ok((stream, peer)) => admit(daemon, stream, peer),
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => return,
            // Errors of one connection, and temporary ones of the network or of this process
            // (reference 01 §6.1).
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                // Descriptors and memory come back when a session ends; trying again at once would
                // only use the processor.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Waits for a place, then serves the connection in a thread of its own.
fn admit(daemon: &Arc<Daemon>, stream: TcpStream, peer: SocketAddr) {
    let channel = match Channel::accept(stream, Limits::default()) {
        Ok(channel) => channel,
        Err(error) => {
            tracing::debug!(%error, %peer, "an accepted connection is gone already");
            return;
        }
    };
    let canceler = channel.canceler();
    let place = daemon.logins.unauthenticated.take(move || canceler.cancel());
    let shared = Arc::clone(daemon);
    serve(&peer.to_string(), move || director::serve(&shared, channel, place));
}

/// Serves a caller in a thread of its own, which is renamed when it has logged in: what waits for
/// the end of sessions doesn't wait for strangers.
pub(super) fn serve(peer: &str, session: impl FnOnce() + Send + 'static) {
    let session = Arc::new(Mutex::new(Some(session)));
    let ask = || {
        let session = Arc::clone(&session);
        let work = move || {
            // Passwords and keys of the conversation; files are for other threads.
            fd_os::wiping::wipe_what_this_thread_frees();
            let session = session.lock().take();
            if let Some(session) = session {
                session();
            }
        };
        thread::Builder::new().name(format!("caller {peer}")).spawn(work)
    };
    if let Err(error) = shortage::ask_again(ask, |_| true) {
        tracing::error!(%error, %peer, "no thread for a connection");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::shared::pulses::Pulses;

    #[test]
    fn a_listener_that_is_closed_is_not_waited_for() {
        let listeners = Listeners::new(vec![TcpListener::bind("127.0.0.1:0").unwrap()]);
        listeners.close();
        let (pulses, in_a_day) = (Pulses::new(), Instant::now() + Duration::from_secs(86_400));
        let ended = await_caller(&listeners.0[0], &pulses.add("listener"));
        assert_eq!(ended.unwrap_err().raw_os_error(), Some(Errno::EINVAL as i32));
        assert!(pulses.overdue(in_a_day).is_empty());
    }
}
