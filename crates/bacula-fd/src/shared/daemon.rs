//! The daemon: what all its threads share, the listening sockets and the threads that serve connections.
//!
//! Plain threads: a Director's connection is one blocking conversation. Callers that nobody knows yet have a few places
//! of their own, and at most `Maximum Concurrent Jobs` that have logged in are served at once.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fd_backup::{PluginNames, Protection};
use fd_config::{Config, JobSettings, Settings, Tls};
use fd_session::Need;
use fd_session::authenticate::{Challenges, Credentials};
use fd_transport::{Bandwidth, Channel, Limits};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::director;
use crate::metrics::collectors::Collectors;
use crate::security::certificates::Keyring;
use crate::security::places::Places;
use crate::shared::debug::Debug;
use crate::shared::platform::Platform;
use crate::shared::pulses::{Pulse, Pulses};
use crate::shared::state_file;
use crate::shared::supervisor::{Session, Supervisor};

/// Connections served at once that we have made to Directors (reference 01 §6.3).
const CALLED: u32 = 10;
/// Callers at once that have not logged in.
const STRANGERS: usize = 40;
/// How long each of them has in any case, whoever else waits. A login takes a tenth of a second.
const LEAST_TIME: Duration = Duration::from_secs(3);

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Daemon {
    supervisor: Supervisor,
    platform: Platform,
    keyring: Keyring,
    settings: Settings,
    state_file: PathBuf,
    default_bandwidth: Bandwidth,
    debug: Arc<Debug>,
    slots: Arc<Slots>,
    strangers: Arc<Places>,
    challenges: Challenges,
    /// For connections that we have made to Directors.
    called: Arc<Slots>,
    protection: Option<Arc<Protection>>,
    collectors: Collectors,
    pulses: Pulses,
}

impl Daemon {
    /// A daemon with this configuration, its certificates, its keys and these settings; reads the history of the one
    /// before it.
    pub(crate) fn new(
        config: Config,
        keyring: Keyring,
        protection: Option<Protection>,
        debug: Arc<Debug>,
        settings: Settings,
    ) -> Self {
        let daemon = &config.file_daemon;
        let state_file = state_file::path(&daemon.working_directory, daemon.port());
        let history = state_file::load(&state_file);
        let slots = Arc::new(Slots::new(daemon.max_concurrent_jobs));
        let default_bandwidth = Bandwidth::new(daemon.max_bandwidth_per_job);
        let collectors = Collectors::new(config.statistics.len());
        let supervisor = Supervisor::new(config, history);
        Self {
            supervisor,
            platform: Platform::detect(),
            keyring,
            settings,
            state_file,
            default_bandwidth,
            debug,
            slots,
            strangers: Places::new(STRANGERS, LEAST_TIME),
            challenges: Challenges::default(),
            called: Arc::new(Slots::new(CALLED)),
            protection: protection.map(Arc::new),
            collectors,
            pulses: Pulses::new(),
        }
    }

    /// The configuration.
    pub(crate) const fn config(&self) -> &Config {
        &self.supervisor.config
    }

    /// How data is encrypted and signed; `None` if PKI is off.
    pub(crate) fn protection(&self) -> Option<&Arc<Protection>> {
        self.protection.as_ref()
    }

    /// How jobs use this host.
    pub(crate) const fn job_settings(&self) -> &JobSettings {
        &self.settings.job
    }

    /// Where monitoring systems ask for numbers.
    pub(crate) const fn metrics_address(&self) -> Option<SocketAddr> {
        self.settings.metrics.address
    }

    /// How long a caller may take for his first packet.
    pub(crate) fn first_packet(&self) -> Duration {
        Duration::from_secs(self.settings.connection.first_packet.into())
    }

    /// How long a caller may take for the whole login.
    pub(crate) fn login(&self) -> Duration {
        Duration::from_secs(self.settings.connection.login.into())
    }

    /// What we bring to an authentication as `own_name`, where these directives count.
    pub(crate) fn credentials(&self, own_name: &str, key: &[u8], tls: &Tls) -> Credentials {
        let require_tls = self.settings.tls.require;
        Credentials {
            own_name: own_name.to_owned(),
            key: key.to_vec(),
            need: self.need(tls),
            tls_authenticate: tls.authenticate,
            require_tls,
            peer_may_have_our_name: true,
            challenges: self.challenges.clone(),
            random: random(),
            time: crate::clock::seconds(),
        }
    }

    /// What a resource needs, as the hello says it.
    pub(crate) const fn need(&self, tls: &Tls) -> Need {
        let (tls, psk) = tls.need();
        let need = Need { tls, psk };
        if self.settings.tls.require { need.required() } else { need }
    }

    /// What runs and what ran.
    pub(crate) const fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// What kind of host this is.
    pub(crate) const fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The certificates of all resources.
    pub(crate) const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Loops that must come round.
    pub(crate) const fn pulses(&self) -> &Pulses {
        &self.pulses
    }

    /// What the Statistics resources do.
    pub(crate) const fn collectors(&self) -> &Collectors {
        &self.collectors
    }

    /// Debug output: its level and where it goes.
    pub(crate) fn debug(&self) -> &Debug {
        &self.debug
    }

    /// The plugins that the Plugin Directory holds, all of which the stock daemon would load.
    pub(crate) fn installed_plugins(&self) -> PluginNames {
        let directory = self.config().file_daemon.plugin_directory.as_deref();
        let files = directory.and_then(|directory| std::fs::read_dir(directory).ok()).into_iter().flatten().flatten();
        let name =
            |file: std::fs::DirEntry| file.file_name().as_encoded_bytes().strip_suffix(b"-fd.so").map(<[u8]>::to_vec);
        PluginNames::new(files.filter_map(name))
    }

    /// The plugins that are loaded: none yet.
    #[expect(clippy::unused_self, reason = "the plugin host will be a part of the daemon")]
    pub(crate) const fn plugin_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Bytes per second of a job for which nobody has set another limit.
    pub(crate) fn default_bandwidth(&self) -> u64 {
        self.default_bandwidth.get()
    }

    /// Changes that limit until the daemon ends.
    pub(crate) fn set_default_bandwidth(&self, limit: u64) {
        self.default_bandwidth.set(limit);
    }

    /// Waits until one more connection of somebody known may be served.
    pub(crate) fn take_slot(&self) -> Slot {
        self.slots.take()
    }

    /// Waits until one more connection that we have made to a Director may be served.
    pub(crate) fn take_called_slot(&self) -> Slot {
        self.called.take()
    }

    /// A session is over: history, state file, log files.
    pub(crate) fn session_ended(&self, session: &Session) {
        self.supervisor.leave(session);
        self.supervisor.close_local();
        if session.job.get().is_some_and(|job| job.identity.job_id != 0) {
            self.save_state();
        }
    }

    /// Writes the state file.
    pub(crate) fn save_state(&self) {
        if let Err(error) = state_file::save(&self.state_file, &self.supervisor.history()) {
            tracing::warn!(%error, path = %self.state_file.display(), "the state file can't be written");
        }
    }
}

/// A random number for a challenge.
fn random() -> u32 {
    let mut bytes = [0; 4];
    match openssl::rand::rand_bytes(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        // A challenge must only never repeat; the clock stands in for a broken generator.
        Err(error) => {
            tracing::error!(%error, "no random numbers");
            u32::try_from(crate::clock::microseconds() & i64::from(u32::MAX)).unwrap_or(u32::MAX)
        }
    }
}

/// How often a listener shows that it lives while nobody calls.
const LISTENING: Duration = Duration::from_secs(30);

/// Waits for the next caller; `pulse` tells of it. The listener must not block.
fn await_caller(listener: &TcpListener, pulse: &Pulse) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        pulse.due_within(LISTENING);
        let mut waits = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waits, PollTimeout::try_from(LISTENING).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => return accepted,
        }
    }
}

/// Accepts connections of `listener` for ever.
pub(crate) fn listen(daemon: &Arc<Daemon>, listener: &TcpListener) {
    let pulse = daemon.pulses().add("listener");
    if let Err(error) = listener.set_nonblocking(true) {
        tracing::warn!(%error, "a listener can't show that it lives");
    }
    loop {
        match await_caller(listener, &pulse) {
            Ok((stream, peer)) => {
                // For a free slot it may wait as long as jobs run.
                pulse.rest();
                admit(daemon, stream, peer);
            }
            // Errors of one connection, and passing ones of the network or of this process (reference 01 §6.1).
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                if matches!(error.raw_os_error(), Some(libc_errno::EMFILE | libc_errno::ENFILE)) {
                    // Descriptors come back when a session ends; asking again at once would only burn the processor.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

mod libc_errno {
    //! Errors of `accept` that need a breath.
    pub(super) const EMFILE: i32 = 24;
    pub(super) const ENFILE: i32 = 23;
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
    let canceller = channel.canceller();
    let place = daemon.strangers.take(move || canceller.cancel());
    let shared = Arc::clone(daemon);
    let work = move || {
        // Passwords and keys of the conversation; files are for other threads.
        fd_os::wiping::wipe_what_this_thread_frees();
        director::serve(&shared, channel, place);
    };
    let spawned: io::Result<_> = thread::Builder::new().name(format!("session {peer}")).spawn(work);
    if let Err(error) = spawned {
        tracing::error!(%error, %peer, "no thread for a connection");
    }
}

/// How many connections may be served at once (reference 01 §6.3).
#[derive(Debug)]
struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

impl Slots {
    const fn new(count: u32) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a free one.
    fn take(self: &Arc<Self>) -> Slot {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        Slot { slots: Arc::clone(self) }
    }

    fn give(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
    }
}

/// A place among those that are served; free again when this goes, also when the session panics.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give();
    }
}
