//! A job's Storage Daemon, as the operator's `cancel`, status and other sessions see it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fd_messages::CancelToken;
use fd_os::lock::{Condvar, Mutex};
use fd_transport::{Canceler, Channel};

/// How often a cancel is looked for.
const STEP: Duration = Duration::from_millis(200);

/// What status shows of the Storage Daemon's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StorageView {
    /// Frames that it has sent us.
    pub frames_read: u64,
    /// Number of the socket.
    pub descriptor: i32,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// The job's Storage Daemon.
#[derive(Default, Debug)]
pub(crate) struct StorageSide {
    /// The connection, and whether it is encrypted. Only ever locked for a copy.
    connection: Mutex<Option<(Canceler, bool)>>,
    /// One that has called us, until the job's own thread takes it.
    caller: Mutex<Option<Channel>>,
    called: Condvar,
    /// Another one that called while that waited.
    turned_away: Mutex<Option<SocketAddr>>,
}

impl StorageSide {
    /// The connection is this one; `None` when it is closed.
    pub(super) fn set(&self, connection: Option<(Canceler, bool)>) {
        *self.connection.lock() = connection;
    }

    /// What ends the connection, if there is one.
    pub(super) fn canceler(&self) -> Option<Canceler> {
        self.connection.lock().as_ref().map(|(canceler, _)| canceler.clone())
    }

    /// The connection, if there is one.
    pub(crate) fn view(&self) -> Option<StorageView> {
        let (canceler, encrypted) = self.connection.lock().clone()?;
        let (frames_read, descriptor) = (canceler.frames_received(), canceler.descriptor().unwrap_or(0));
        Some(StorageView { frames_read, descriptor, encrypted })
    }

    /// A Storage Daemon has called for this job; gives the connection back if another one waits
    /// already.
    pub(crate) fn park(&self, channel: Channel) -> Result<(), Box<Channel>> {
        let mut caller = self.caller.lock();
        if caller.as_ref().is_some_and(is_there) {
            self.turned_away.lock().get_or_insert(channel.address());
            return Err(Box::new(channel));
        }
        *caller = Some(channel);
        self.called.notify_all();
        Ok(())
    }

    /// Which Storage Daemon was turned away, once.
    pub(crate) fn take_turned_away(&self) -> Option<SocketAddr> {
        self.turned_away.lock().take()
    }

    /// Waits for the Storage Daemon's call, at most `limit`, until the job is canceled, and no
    /// longer than `wanted` returns true.
    pub(crate) fn await_call(
        &self,
        limit: Duration,
        cancel: &CancelToken,
        wanted: &dyn Fn() -> bool,
    ) -> Option<Channel> {
        let start = Instant::now();
        let mut caller = self.caller.lock();
        while !caller.as_ref().is_some_and(is_there) && !cancel.is_canceled() && wanted() && start.elapsed() < limit {
            (caller, _) = self.called.wait_timeout(caller, STEP);
        }
        caller.take().filter(is_there)
    }
}

/// Whether a caller has not hung up: another one may call in its place.
fn is_there(caller: &Channel) -> bool {
    !caller.canceler().peer_has_left()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use fd_transport::Limits;

    use super::*;

    /// A call, and the caller's end.
    fn call() -> (Channel, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Channel::accept(listener.accept().unwrap().0, Limits::default()).unwrap(), caller)
    }

    /// One that has hung up.
    fn gone() -> Channel {
        let (channel, caller) = call();
        drop(caller);
        while !channel.canceler().peer_has_left() {
            std::thread::yield_now();
        }
        channel
    }

    fn take(side: &StorageSide) -> Option<SocketAddr> {
        side.await_call(Duration::ZERO, &CancelToken::new(), &|| true).map(|channel| channel.address())
    }

    #[test]
    fn a_caller_that_has_hung_up_leaves_its_place_to_the_next_one() {
        let side = StorageSide::default();
        side.park(gone()).unwrap();
        assert_eq!(take(&side), None);
        side.park(gone()).unwrap();
        let (channel, caller) = call();
        side.park(channel).unwrap();
        assert_eq!(take(&side), Some(caller.local_addr().unwrap()));
        assert_eq!(side.take_turned_away(), None);
    }

    #[test]
    fn a_second_caller_is_turned_away_and_known() {
        let side = StorageSide::default();
        let ((first, caller), (second, other)) = (call(), call());
        side.park(first).unwrap();
        assert!(side.park(second).is_err());
        assert_eq!(side.take_turned_away(), Some(other.local_addr().unwrap()));
        assert_eq!(side.take_turned_away(), None, "it is said once");
        assert_eq!(take(&side), Some(caller.local_addr().unwrap()));
    }
}
