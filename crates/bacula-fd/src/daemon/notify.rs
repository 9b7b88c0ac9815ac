//! The daemon's state for systemd: ready, alive, stopping (the datagrams of `sd_notify(3)`).
//!
//! Without `NOTIFY_SOCKET`, as under the stock unit, nothing is sent.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{io, thread};

/// Longest time between two looks while something is stuck.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The service manager.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    /// Where it listens. Its socket is looked for with each datagram: it may have a new one.
    place: OsString,
    /// What it is told with. One for all datagrams, since there may be no descriptor for another.
    socket: Arc<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// From the environment.
    pub(crate) fn find() -> Option<Self> {
        let place = std::env::var_os("NOTIFY_SOCKET").filter(|place| !place.is_empty())?;
        let socket = UnixDatagram::unbound().inspect_err(unreachable).ok()?;
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // No process id, or ours.
        let ours = number("WATCHDOG_PID").is_none_or(|process| process == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| ours && *usec > 0).map(Duration::from_micros);
        Some(Self { place, socket: Arc::new(socket), watchdog })
    }

    /// The daemon listens. From here on `stuck` is called twice in each interval of the watchdog,
    /// and while it returns nothing the manager gets its keep-alive. When something is stuck, it is
    /// called more often: a loop that was only late, in a daemon that was stopped for a while, must
    /// not cost the interval. When it stays so, or `stuck` does not return, no more keep-alives are
    /// sent, and systemd restarts the daemon.
    ///
    /// # Errors
    /// There is no thread for it, and nothing was said.
    pub(crate) fn ready(&self, mut stuck: impl FnMut() -> Vec<String> + Send + 'static) -> io::Result<()> {
        let (says, has_said) = channel::<()>();
        if let Some(interval) = self.watchdog {
            let manager = self.clone();
            let watch = move || {
                // Ends when it is said.
                let _said = has_said.recv();
                let mut known = Vec::new();
                loop {
                    let stuck = stuck();
                    if stuck.is_empty() {
                        manager.send(b"WATCHDOG=1\n");
                    } else if stuck != known {
                        tracing::error!(?stuck, "no keep-alive for the service manager");
                    }
                    let is_well = stuck.is_empty();
                    known = stuck;
                    thread::sleep(if is_well { interval / 2 } else { LOOK_AGAIN.min(interval / 20) });
                }
            };
            thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        }
        self.send(b"READY=1\n");
        drop(says);
        Ok(())
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
        let sent = match self.place.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name).and_then(|name| self.socket.send_to_addr(state, &name)),
            None => self.socket.send_to(state, &self.place),
        };
        if let Err(error) = sent {
            unreachable(&error);
        }
    }
}

fn unreachable(error: &io::Error) {
    tracing::warn!(%error, "the service manager can't be reached");
}

#[cfg(test)]
mod tests {
    use std::fs::remove_file;
    use std::path::Path;
    use std::process::Command;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    use super::*;
    use crate::alone::alone;

    /// Alone, with the place of a manager whose watchdog has a minute.
    fn with_manager(test: &str, case: impl FnOnce(&Path)) {
        let prepare = |alone: &mut Command, folder: &Path| {
            alone
                .env("NOTIFY_SOCKET", folder.join("notify"))
                .env("WATCHDOG_USEC", "60000000")
                .env_remove("WATCHDOG_PID");
        };
        alone(&format!("daemon::notify::tests::{test}"), prepare, |folder| case(&folder.join("notify")));
    }

    /// A manager that listens there, and hears what it is told in less than half of its interval.
    fn listen(place: &Path) -> UnixDatagram {
        let manager = UnixDatagram::bind(place).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(29))).unwrap();
        manager
    }

    fn hear(manager: &UnixDatagram) -> String {
        let mut state = [0; 100];
        let length = manager.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    }

    #[test]
    fn what_was_stuck_for_one_look_only_delays_the_keep_alive() {
        with_manager("what_was_stuck_for_one_look_only_delays_the_keep_alive", |place| {
            let (manager, mut looks) = (listen(place), 0);
            let stuck = move || {
                looks += 1;
                if looks == 1 { vec!["listener".to_owned()] } else { Vec::new() }
            };
            Manager::find().unwrap().ready(stuck).unwrap();
            assert_eq!([hear(&manager), hear(&manager)], ["READY=1\n", "WATCHDOG=1\n"]);
        });
    }

    #[test]
    fn a_manager_that_starts_again_is_told_without_a_descriptor() {
        with_manager("a_manager_that_starts_again_is_told_without_a_descriptor", |place| {
            let daemon = Manager::find().unwrap();
            drop(listen(place));
            remove_file(place).unwrap();
            let (manager, (soft, hard)) = (listen(place), getrlimit(Resource::RLIMIT_NOFILE).unwrap());
            setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
            daemon.stopping(Duration::from_secs(1));
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
            assert_eq!(hear(&manager), "STOPPING=1\nEXTEND_TIMEOUT_USEC=1000000\n");
        });
    }
}
