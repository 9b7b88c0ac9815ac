//! A job's Storage Daemon, as the operator's `cancel`, status and other sessions see it.

use std::time::{Duration, Instant};

use fd_messages::CancelToken;
use fd_os::lock::{Condvar, Mutex};
use fd_transport::{Canceller, Channel};

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
    connection: Mutex<Option<(Canceller, bool)>>,
    /// One that has called us, until the job's own thread takes it.
    caller: Mutex<Option<Channel>>,
    called: Condvar,
}

impl StorageSide {
    /// The connection is this one; `None` when it is closed.
    pub(super) fn set(&self, connection: Option<(Canceller, bool)>) {
        *self.connection.lock() = connection;
    }

    /// What ends the connection, if there is one.
    pub(super) fn canceller(&self) -> Option<Canceller> {
        self.connection.lock().as_ref().map(|(canceller, _)| canceller.clone())
    }

    /// The connection, if there is one.
    pub(crate) fn view(&self) -> Option<StorageView> {
        let (canceller, encrypted) = self.connection.lock().clone()?;
        let (frames_read, descriptor) = (canceller.frames_received(), canceller.descriptor().unwrap_or(0));
        Some(StorageView { frames_read, descriptor, encrypted })
    }

    /// A Storage Daemon has called for this job; gives the connection back if another one waits
    /// already.
    pub(crate) fn park(&self, channel: Channel) -> Result<(), Box<Channel>> {
        let mut caller = self.caller.lock();
        if caller.is_some() {
            return Err(Box::new(channel));
        }
        *caller = Some(channel);
        self.called.notify_all();
        Ok(())
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
        while caller.is_none() && !cancel.is_cancelled() && wanted() && start.elapsed() < limit {
            (caller, _) = self.called.wait_timeout(caller, STEP);
        }
        caller.take()
    }
}
