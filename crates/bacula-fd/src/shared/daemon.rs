//! What all threads of the daemon share: the configuration, what runs and ran, certificates, keys,
//! limits and counters. It starts nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fd_backup::{Courtesy, Manners, MemoryBudget, Protection};
use fd_config::{Config, FileDaemon, JobManners, RestoreCommands, Settings, Tls};
use fd_os::lock::Mutex;
use fd_plugins::Plugin;
use fd_session::Need;
use fd_session::authenticate::{Challenges, Credentials};
use fd_transport::Bandwidth;

use crate::clock;
use crate::security::certificates::ResourceCertificates;
use crate::security::own_file;
use crate::security::places::Places;
use crate::shared::collectors::Collectors;
use crate::shared::debug::Debug;
use crate::shared::facts::{DaemonFacts, Orders};
use crate::shared::known_commands::KnownCommands;
use crate::shared::platform::Platform;
use crate::shared::pulses::Pulses;
use crate::shared::slots::Slots;
use crate::shared::snapshot_journal::SnapshotJournal;
use crate::shared::state_file;
use crate::shared::supervisor::{Session, Supervisor};
use crate::shared::wanted_digests::WantedDigests;

/// Connections served at once that we have made to Directors (reference 01 §6.3).
const CALLED: u32 = 10;
/// Callers at once that have not logged in.
const UNAUTHENTICATED: usize = 40;
/// How long each of them has in any case, however many others wait. A login takes 0.1 s.
const LEAST_TIME: Duration = Duration::from_secs(3);

/// Who may be connected, and the challenges of their logins.
#[derive(Debug)]
pub(crate) struct Logins {
    /// For connections that have logged in.
    pub slots: Arc<Slots>,
    /// For callers that have not logged in.
    pub unauthenticated: Arc<Places>,
    /// For connections that we have made to Directors.
    pub called: Arc<Slots>,
    challenges: Challenges,
}

impl Logins {
    fn new(most_connections: u32) -> Self {
        Self {
            slots: Arc::new(Slots::new(most_connections)),
            unauthenticated: Places::new(UNAUTHENTICATED, LEAST_TIME),
            called: Arc::new(Slots::new(CALLED)),
            challenges: Challenges::default(),
        }
    }
}

/// What all jobs share.
#[derive(Debug)]
pub(crate) struct ForJobs {
    /// Makes backups give way to what else the host does.
    pub courtesy: Arc<Courtesy>,
    /// The memory of all backups.
    pub memory: Arc<MemoryBudget>,
    /// Bytes per second of a job that has no limit of its own; a Director may change it.
    pub default_bandwidth: Bandwidth,
    /// How data is encrypted and signed; `None` if PKI is off.
    pub protection: Option<Arc<Protection>>,
    /// Which digests files and the data of plugins have.
    pub digests: WantedDigests,
}

impl ForJobs {
    fn new(daemon: &FileDaemon, manners: JobManners, protection: Option<Protection>) -> Self {
        let courtesy = Courtesy::new(match manners {
            JobManners::Off => Manners::Off,
            JobManners::Auto => Manners::Auto,
            JobManners::Generous => Manners::Generous,
        });
        Self {
            courtesy,
            memory: MemoryBudget::of(fd_os::memory_limit::memory()),
            default_bandwidth: Bandwidth::new(daemon.max_bandwidth_per_job),
            protection: protection.map(Arc::new),
            digests: WantedDigests::new(&daemon.working_directory, daemon.port()),
        }
    }

    /// Whether what jobs save is encrypted.
    pub(crate) fn encrypts(&self) -> bool {
        self.protection.as_ref().is_some_and(|protection| protection.encryption.is_some())
    }
}

/// The daemon's own files in its working directory.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    /// The jobs that ended; who writes it holds this, so that the latest are written last.
    state: Mutex<PathBuf>,
    /// The plugin commands that Directors have sent.
    pub known_commands: Arc<KnownCommands>,
    /// Snapshots that are to be removed.
    pub snapshot_journal: SnapshotJournal,
}

impl OwnFiles {
    fn new(folder: &Path, port: u16) -> Self {
        Self {
            state: Mutex::new(own_file::path(folder, port, "state")),
            known_commands: Arc::new(KnownCommands::new(folder, port)),
            snapshot_journal: SnapshotJournal::new(folder, port),
        }
    }
}

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// What runs and what ran, and the configuration.
    pub supervisor: Supervisor,
    /// What kind of host this is.
    pub platform: Platform,
    /// The certificates of all resources.
    pub certificates: ResourceCertificates,
    /// The settings that the stock daemon does not have.
    pub settings: Settings,
    /// What all jobs share.
    pub jobs: ForJobs,
    /// Who may be connected.
    pub logins: Logins,
    /// The daemon's own files.
    pub own_files: OwnFiles,
    plugins: Mutex<Vec<Arc<dyn Plugin>>>,
    /// What plugins may ask about the daemon.
    pub facts: Arc<DaemonFacts>,
    /// Debug output: its level and where it goes.
    pub debug: Arc<Debug>,
    /// What the Statistics resources do.
    pub collectors: Collectors,
    /// The loops that are watched.
    pub pulses: Pulses,
}

impl Daemon {
    /// A daemon with this configuration, its certificates, its keys and these settings; reads the
    /// history of the one before it.
    pub(crate) fn new(
        config: Config,
        certificates: ResourceCertificates,
        protection: Option<Protection>,
        debug: Arc<Debug>,
        settings: Settings,
        plugins: Vec<Arc<dyn Plugin>>,
        facts: DaemonFacts,
    ) -> Self {
        let daemon = &config.file_daemon;
        let own_files = OwnFiles::new(&daemon.working_directory, daemon.port());
        let logins = Logins::new(daemon.max_concurrent_jobs);
        let jobs = ForJobs::new(daemon, settings.job.manners, protection);
        let collectors = Collectors::new(config.statistics.len());
        let history = state_file::load(&own_files.state.lock());
        Self {
            supervisor: Supervisor::new(config, history),
            platform: Platform::detect(),
            certificates,
            settings,
            jobs,
            logins,
            own_files,
            plugins: Mutex::new(plugins),
            facts: Arc::new(facts),
            debug,
            collectors,
            pulses: Pulses::new(),
        }
    }

    /// The configuration.
    pub(crate) const fn config(&self) -> &Config {
        &self.supervisor.config
    }

    /// `Maximum Network Buffer Size`, in bytes; 0 where it is not given.
    pub(crate) fn network_buffer(&self) -> usize {
        usize::try_from(self.config().file_daemon.max_network_buffer_size).unwrap_or(0)
    }

    /// How long a caller may take for the whole login.
    pub(crate) fn login(&self) -> Duration {
        Duration::from_secs(self.settings.connection.login.into())
    }

    /// Our side of an authentication as `own_name` under these directives.
    pub(crate) fn credentials(&self, own_name: &str, key: &[u8], tls: &Tls) -> Credentials {
        let require_tls = self.settings.tls.require;
        Credentials {
            own_name: own_name.to_owned(),
            key: key.to_vec(),
            need: self.need(tls),
            tls_authenticate: tls.authenticate,
            require_tls,
            peer_may_have_our_name: true,
            challenges: self.logins.challenges.clone(),
            random: random(),
            time: clock::seconds(),
        }
    }

    /// What a resource needs, as the hello says it.
    pub(crate) const fn need(&self, tls: &Tls) -> Need {
        Need::of(tls.enable, tls.psk_enable, tls.require || self.settings.tls.require)
    }

    /// Which plugin commands of a volume a restore of this Director runs. Where signatures are
    /// checked a program must not get what nobody has ordered: it has run when its signature comes.
    pub(crate) fn orders(&self, director: &str) -> Orders {
        let rule = match self.settings.plugins.restore_commands {
            RestoreCommands::Any if self.jobs.protection.is_some() => RestoreCommands::Known,
            rule => rule,
        };
        Orders { known: Arc::clone(&self.own_files.known_commands), director: director.as_bytes().to_vec(), rule }
    }

    /// The plugins that are loaded, in the order in which they are told of events.
    pub(crate) fn plugins(&self) -> Vec<Arc<dyn Plugin>> {
        self.plugins.lock().clone()
    }

    /// The daemon ends: connections get no plugins any more.
    pub(crate) fn unload_plugins(&self) {
        self.plugins.lock().clear();
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
        let path = self.own_files.state.lock();
        if let Err(error) = state_file::save(&path, &self.supervisor.history()) {
            tracing::warn!(%error, path = %path.display(), "the state file can't be written");
        }
    }
}

/// A random number for a challenge.
fn random() -> u32 {
    let mut bytes = [0; 4];
    match openssl::rand::rand_bytes(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes),
        // A challenge must never repeat, nothing more: the clock replaces a broken generator.
        Err(error) => {
            tracing::error!(%error, "no random numbers");
            u32::try_from(clock::microseconds() & i64::from(u32::MAX)).unwrap_or(u32::MAX)
        }
    }
}
