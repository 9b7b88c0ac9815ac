//! The daemon's state for systemd: ready, alive, stopping (the datagrams of `sd_notify(3)`).
//!
//! Without `NOTIFY_SOCKET`, as under the stock unit, nothing is sent.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

/// The service manager's socket.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    socket: OsString,
    watchdog: Option<Duration>,
}

impl Manager {
    /// From the environment.
    pub(crate) fn find() -> Option<Self> {
        let socket = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?;
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // No process id, or ours.
        let ours = number("WATCHDOG_PID").is_none_or(|process| process == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| ours && *usec > 0).map(Duration::from_micros);
        Some(Self { socket, watchdog })
    }

    /// The daemon listens. From here on `stuck` is called twice in each interval of the watchdog,
    /// and while it returns nothing the manager gets its keep-alive. When something is stuck, or
    /// `stuck` does not return, no more of them is sent, and systemd restarts the daemon.
    pub(crate) fn ready(&self, mut stuck: impl FnMut() -> Vec<String> + Send + 'static) {
        self.send(b"READY=1\n");
        let Some(interval) = self.watchdog else { return };
        let manager = self.clone();
        let watch = move || {
            loop {
                let stuck = stuck();
                if stuck.is_empty() {
                    manager.send(b"WATCHDOG=1\n");
                } else {
                    tracing::error!(?stuck, "no keep-alive for the service manager");
                }
                thread::sleep(interval / 2);
            }
        };
        if let Err(error) = thread::Builder::new().name("watchdog".to_owned()).spawn(watch) {
            tracing::error!(%error, "no thread for the watchdog");
        }
    }

    /// The start goes on, and may take so long from now on.
    pub(crate) fn starts_for(&self, time: Duration) {
        self.send(format!("EXTEND_TIMEOUT_USEC={}\n", time.as_micros()).as_bytes());
    }

    /// The daemon ends, and may take so long.
    pub(crate) fn stopping(&self, time: Duration) {
        self.send(format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\n", time.as_micros()).as_bytes());
    }

    fn send(&self, state: &[u8]) {
        let sent = UnixDatagram::unbound().and_then(|socket| match self.socket.as_bytes().strip_prefix(b"@") {
            Some(name) => socket.send_to_addr(state, &SocketAddr::from_abstract_name(name)?),
            None => socket.send_to(state, &self.socket),
        });
        if let Err(error) = sent {
            tracing::warn!(%error, "the service manager can't be reached");
        }
    }
}
