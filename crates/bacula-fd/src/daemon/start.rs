//! From the command line to a daemon that listens, and its end (reference 06 §5.1, §5.6).

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use fd_config::{Config, FileDaemon, LogLevel, LogSettings, SETTINGS_FILE, Settings, StockMessage, Tls};
use fd_messages::MessageType;
use fd_os::daemonize::{Role, into_background};
use fd_os::{io_error_text, threads};
use tracing::level_filters::LevelFilter;

use crate::clock;
use crate::daemon::cli::{self, Cli};
use crate::daemon::ending::Ending;
use crate::daemon::host::{self, Host};
use crate::daemon::listener::Listeners;
use crate::daemon::log;
use crate::daemon::notify::Manager;
use crate::daemon::pid_file::PidFile;
use crate::daemon::plugins::{self, Loaded};
use crate::daemon::privileges::drop_privileges;
use crate::daemon::probe::Probe;
use crate::daemon::registration;
use crate::daemon::signals::{Asked, Signals};
use crate::delivery::local::syslog_of_daemon;
use crate::delivery::writer::Writer;
use crate::job::snapshots::left;
use crate::metrics::collectors;
use crate::metrics::prometheus;
use crate::print::{explain, is_json, print, say, tell};
use crate::security::certificates::ResourceCertificates;
use crate::security::pki_keys;
use crate::shared::daemon::Daemon;
use crate::shared::debug::Debug;
use crate::shared::facts::{DaemonFacts, directory_of};
use crate::shared::platform::Platform;
use crate::shared::supervisor::{LAST_WORDS, Supervisor};
use crate::texts::{self, SHORT_DATE, VERSION};

/// Between two tries to bind an address.
const BIND_RETRY: Duration = Duration::from_secs(5);
/// What a step of the start, or the end, may take beside what it waits for.
const MARGIN: Duration = Duration::from_secs(30);
/// Tries to bind an address.
const BIND_TRIES: u32 = 12;

/// Runs the program; returns its exit status.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            print(&mut io::stderr(), &error.standard_error(texts::USAGE));
            say(error.message());
            return ExitCode::FAILURE;
        }
    };
    if cli.wants_background() {
        // Nothing is open yet, and there is no second thread. For debugging the standard files stay
        // what they are.
        match into_background(if cli.debug_level.is_some() { 3 } else { 0 }) {
            Ok(Role::Starter) => return ExitCode::SUCCESS,
            Ok(Role::Daemon) => {}
            Err(error) => {
                print(&mut io::stderr(), texts::no_background(&io_error_text(&error)).as_bytes());
                return ExitCode::FAILURE;
            }
        }
    }
    fd_os::memory::keep_little();
    // The configuration holds passwords.
    fd_os::wiping::wipe_what_this_thread_frees();
    fd_os::locale::set_from_environment();
    let (Ok(status) | Err(Ended(status))) = start(&cli);
    // The last lines of the log.
    Writer::of_the_process().flush();
    ExitCode::from(status)
}

/// The daemon can't go on; the reason was printed.
struct Ended(u8);

/// The daemon from its settings to its end; its exit status.
fn start(cli: &Cli) -> Result<u8, Ended> {
    // Before anything else: a first line of the log starts a thread, and a signal would end the
    // process in any thread that does not block it.
    let ending = Ending::new();
    let signals = if cli.no_signals || cli.test_only { None } else { Some(signals(&ending)?) };
    let settings = settings(cli)?;
    let debug = trace(cli, &settings.log);
    settings.removed().for_each(|text| tracing::warn!("{SETTINGS_FILE}: {text}"));
    let config = load(cli)?;
    warn(&config);
    check(cli, &settings, &config)?;
    if cli.test_only {
        return Ok(0);
    }
    if let Err(error) = fd_os::process::raise_open_files() {
        tracing::warn!(%error, "the limit of open files stays as it was");
    }
    if !cli.no_pid_file {
        ending.keep(pid_file(&config)?);
    }
    let manager = Manager::find();
    let daemon = Arc::new(daemon(cli, config, debug, settings, manager.as_ref())?);
    let listeners = start_services(&daemon, manager.as_ref())?;
    let pid_file = ending.serves();
    // Whoever reads this may send a signal.
    tracing::info!(daemon = %daemon.config().file_daemon.name, "listening");
    if let Some(manager) = &manager {
        let mut probe = Probe::new(Arc::clone(&daemon));
        if let Err(error) = manager.ready(move || probe.stuck()) {
            // The manager learns it by the end.
            tracing::error!(%error, "no thread for the watchdog");
            return Err(Ended(1));
        }
    }
    let status = wait_for_the_end(&daemon, signals.as_ref())?;
    if let Some(manager) = &manager {
        manager.stopping(LAST_WORDS.saturating_add(MARGIN));
    }
    listeners.close();
    daemon.unload_plugins();
    daemon.save_state();
    report_event(&daemon, "FD0002", "shutdown");
    daemon.supervisor.finish_local();
    if let Some(Err(error)) = pid_file.map(PidFile::remove) {
        tracing::warn!(%error, "the pid file can't be removed");
    }
    Ok(status)
}

/// Says what the stock daemon takes without a word, and lets in more callers than it seems.
fn warn(config: &Config) {
    for director in config.directors.iter().filter(|director| director.password.is_empty()) {
        tracing::warn!("{}", texts::empty_password(&director.name));
    }
    for (directive, address) in &config.file_daemon.not_ipv4 {
        tracing::warn!("{}", texts::not_ipv4(directive, *address));
    }
}

/// Ends the start with a message of the stock daemon's.
fn ended(message: StockMessage) -> Ended {
    say_here(message);
    Ended(1)
}

/// Says why the start fails. Of an abort in the background nothing is left but in the host's log.
fn say_here(message: StockMessage) {
    // A line of JSON is one of the host's log.
    if message.is_abort() && !is_json() {
        let text = message.text().to_vec();
        let _written = Writer::of_the_process().hand_over(move || {
            let _logged = syslog_of_daemon(MessageType::Abort.number(), &text);
        });
    }
    say(Some(message));
}

/// Ends the start with this text on standard error.
fn ended_by(text: impl AsRef<[u8]>) -> Ended {
    explain(text.as_ref());
    Ended(1)
}

fn pid_file(config: &Config) -> Result<PidFile, Ended> {
    let own = &config.file_daemon;
    PidFile::create(&own.pid_directory, own.port()).map_err(|error| ended(error.message(&own.name)))
}

/// The state that all threads share, in a process that has become its user. Keys are read before
/// that: their files are root's.
fn daemon(
    cli: &Cli,
    config: Config,
    debug: Arc<Debug>,
    settings: Settings,
    manager: Option<&Manager>,
) -> Result<Daemon, Ended> {
    let certificates = ResourceCertificates::load(&config).map_err(|problem| {
        // They were good when the configuration was checked, a moment ago.
        tracing::error!(%problem, "the certificates can't be read");
        Ended(1)
    })?;
    let protection = pki_keys::load(&config.file_daemon.pki).map_err(|problem| ended_by(problem.lines.join("\n")))?;
    let facts = facts(&cli.config_file, &config.file_daemon, &debug);
    let mut loaded = load_plugins(&config, &settings, &facts, manager)?;
    debug.settle(&config.file_daemon.name, &config.file_daemon.working_directory);
    let plugins = std::mem::take(&mut loaded.plugins);
    let daemon = Daemon::new(config, certificates, protection, debug, settings, plugins, facts);
    for (kind, text) in &loaded.said {
        daemon.supervisor.tell_here(*kind, text);
    }
    drop_privileges(cli.user.as_deref(), cli.group.as_deref(), cli.keep_read_all)
        .map_err(|error| ended(error.message(&daemon.config().file_daemon.name)))?;
    if cli.user.is_some() || cli.group.is_some() {
        loaded.drop_privileges(cli.keep_read_all).map_err(ended_by)?;
    }
    Ok(daemon)
}

/// Starts what runs as long as the daemon does: collectors, metrics, listeners, calls to Directors.
/// Returns what closes the listeners.
fn start_services(daemon: &Arc<Daemon>, manager: Option<&Manager>) -> Result<Listeners, Ended> {
    report_event(daemon, "FD0001", "startup");
    // All of them first: while an address is not free, another daemon may serve, whose jobs need
    // its snapshots; and a start that may still fail has no jobs.
    let own = &daemon.config().file_daemon;
    let bind = |address: &SocketAddr| bind(&daemon.supervisor, &own.name, *address, manager, BIND_RETRY);
    let bound: Result<_, _> = own.addresses.iter().map(bind).collect();
    let listeners = Listeners::new(bound?);
    collectors::start(daemon);
    prometheus::start(daemon);
    left::start(daemon);
    listeners.start(daemon).map_err(|error| {
        tracing::error!(%error, "no thread to listen with");
        Ended(1)
    })?;
    registration::start(daemon);
    Ok(listeners)
}

/// Refuses settings that do not fit the configuration.
fn check(cli: &Cli, settings: &Settings, config: &Config) -> Result<(), Ended> {
    let file = Settings::path_beside(&cli.config_file);
    let in_clear = unencrypted(settings, config).map(|(kind, name)| texts::can_not_encrypt(&file, kind, name));
    let own_port = own_address_of_metrics(settings, config);
    let own_port = own_port.map(|(metrics, own)| texts::metrics_on_own_port(&file, metrics, own));
    in_clear.or(own_port).map_or(Ok(()), |text| Err(ended_by(text)))
}

/// The kind and name of the first resource whose connections must be encrypted, and never are, or
/// not to their end: each of them would fail.
pub(crate) fn unencrypted<'c>(settings: &Settings, config: &'c Config) -> Option<(&'static str, &'c str)> {
    if !settings.tls.require {
        return None;
    }
    let clear = |(_, _, tls): &(&str, &str, &Tls)| !tls.enable && !tls.psk_enable || tls.authenticate;
    let mut all = config.tls_resources();
    // Its own last: that of a Director is what an administrator looks at first.
    let own = all.next();
    all.chain(own).find(clear).map(|(kind, name, _)| (kind, name))
}

/// The address of metrics, and that of the daemon which it could not listen on beside it.
pub(crate) fn own_address_of_metrics(settings: &Settings, config: &Config) -> Option<(SocketAddr, SocketAddr)> {
    let metrics = settings.metrics.address?;
    let own = config.file_daemon.addresses.iter().find(|own| overlap(metrics, **own))?;
    Some((metrics, *own))
}

/// Whether two sockets can't listen on these addresses at a time.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // That of IPv6 takes calls of IPv4, too.
    let takes = |all: SocketAddr, one: SocketAddr| all.ip().is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    one.port() == other.port() && (one.ip() == other.ip() || takes(one, other) || takes(other, one))
}

/// What plugins may ask about the daemon.
fn facts(config_file: &OsStr, own: &FileDaemon, debug: &Arc<Debug>) -> DaemonFacts {
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let program = std::env::current_exe().unwrap_or_default();
    DaemonFacts {
        name: own.name.clone().into_bytes(),
        working_directory: bytes(&own.working_directory),
        plugin_directory: own.plugin_directory.as_deref().map(bytes),
        program_directory: bytes(&directory_of(&program)),
        configuration_directory: bytes(&directory_of(Path::new(config_file))),
        distribution: Platform::detect().distribution().into_bytes(),
        debug: Arc::clone(debug),
    }
}

/// A plugin directory that can't be opened ends the start (reference 06 §6.2), whatever would be in
/// it.
fn load_plugins(
    config: &Config,
    settings: &Settings,
    facts: &DaemonFacts,
    manager: Option<&Manager>,
) -> Result<Loaded, Ended> {
    let own = &config.file_daemon;
    let Some(directory) = &own.plugin_directory else { return Ok(Loaded::default()) };
    let longest = plugins::longest_load(directory, &settings.plugins);
    if let Some(manager) = manager.filter(|_| !longest.is_zero()) {
        manager.starts_for(longest.saturating_add(MARGIN));
    }
    plugins::load(directory, &settings.plugins, facts).map_err(|error| {
        let text = texts::no_plugin_directory(&own.name, directory, &io_error_text(&error));
        tell("ERROR", format!("{} {text}", clock::short_date(clock::seconds())).as_bytes());
        Ended(1)
    })
}

/// The events of the daemon's own start and end (reference 06 §9).
fn report_event(daemon: &Daemon, code: &str, what: &str) {
    let text = format!("Filed {what} {VERSION} ({SHORT_DATE})");
    let port = u64::from(daemon.config().file_daemon.port());
    daemon.supervisor.event(code, "daemon", port, "*Daemon*", &text);
}

/// Where the signals come that end a daemon which serves. Until then they end it at once.
fn signals(ending: &Arc<Ending>) -> Result<Receiver<Asked>, Ended> {
    let heard = Signals::install().and_then(|signals| ending.hear(signals));
    heard.map_err(|error| ended_by(texts::no_signals(&io_error_text(&error))))
}

fn load(cli: &Cli) -> Result<Config, Ended> {
    fd_config::load(cli.config_file.as_bytes(), &mut Host, &mut Host).map_err(|error| {
        for message in error.messages() {
            say_here(message);
        }
        // In addition to the stock daemon's message on standard output: the place and a hint.
        explain(error.explanation().as_bytes());
        Ended(error.exit_status())
    })
}

/// `bacula-fd.toml`, which the stock daemon does not have; its errors are messages of our own.
fn settings(cli: &Cli) -> Result<Settings, Ended> {
    let file = Settings::path_beside(&cli.config_file);
    let ended = |text: &dyn Display| ended_by(format!("{text}\n"));
    match host::read_settings(&file) {
        Ok(Some(text)) => Settings::parse(&file, &text).map_err(|error| ended(&error)),
        Ok(None) => Ok(Settings::default()),
        Err(error) => Err(ended(&texts::unreadable_settings(&file.to_string_lossy(), &io_error_text(&error)))),
    }
}

/// Binds with several tries: the previous daemon may need a moment to end (reference 06 §5.4).
fn bind(
    supervisor: &Supervisor,
    own: &str,
    address: SocketAddr,
    manager: Option<&Manager>,
    pause: Duration,
) -> Result<TcpListener, Ended> {
    let mut tries = 0;
    loop {
        let error = match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => io_error_text(&error),
        };
        tries += 1;
        if tries > BIND_TRIES {
            let text = texts::cannot_bind(address.port(), &error, false);
            supervisor.announce(MessageType::Abort, "bnet_server.c:135", &text);
            return Err(ended(StockMessage::abort(own, "bnet_server.c:135", &text)));
        }
        if tries == 1 {
            let text = texts::cannot_bind(address.port(), &error, true);
            tell("WARN", &texts::daemon_line(own, MessageType::Warning, "bnet_server.c:131", &text));
            supervisor.announce(MessageType::Warning, "bnet_server.c:131", &text);
        }
        if let Some(manager) = manager {
            manager.starts_for(pause.saturating_add(MARGIN));
        }
        thread::sleep(pause);
    }
}

/// Waits for a signal that ends the daemon. Running jobs are not waited for.
fn wait_for_the_end(daemon: &Arc<Daemon>, signals: Option<&Receiver<Asked>>) -> Result<u8, Ended> {
    let Some(signals) = signals else {
        // `-s`: signals have their default effect.
        loop {
            thread::park();
        }
    };
    let number = loop {
        // Its thread has said why it hears no more.
        match signals.recv().map_err(|_gone| Ended(1))? {
            Asked::End(number) => break number,
            Asked::Reload => {
                let daemon = Arc::clone(daemon);
                // Their files may lie on storage that does not answer.
                if let Err(error) = threads::start("certificates", move || load_certificates_again(&daemon)) {
                    tracing::error!(%error, "no thread to read certificates again");
                }
            }
        }
    };
    let text = texts::shutting_down(&daemon.config().file_daemon.name);
    daemon.supervisor.log_on_host(MessageType::Error, text);
    Ok(u8::try_from(number).unwrap_or(1))
}

/// Reads certificates again. Connections that are there keep theirs, so no job notices.
fn load_certificates_again(daemon: &Daemon) {
    match daemon.certificates.load_again(daemon.config()) {
        Ok(()) => tracing::info!("{}", texts::CERTIFICATES_READ_AGAIN),
        Err(problem) => {
            let text = texts::certificates_kept(&problem);
            tracing::error!("{text}");
            daemon.supervisor.tell_here(MessageType::Error, text.as_bytes());
        }
    }
}

/// Starts the program's own log. A debug level on the command line counts more than the settings.
fn trace(cli: &Cli, settings: &LogSettings) -> Arc<Debug> {
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let tags = cli.debug_tags.as_bytes();
    let debug = Debug::new(level, cli.debug_level, tags, cli.debug_timestamps, cli.trace);
    let debug = Arc::new(debug);
    log::init(&debug, settings.format);
    debug.tell_tags(tags);
    debug
}

#[cfg(test)]
mod tests;
