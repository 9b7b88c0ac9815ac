//! The collectors of Statistics resources: each writes the daemon's metrics to a file or to a
//! Graphite server, again and again (reference 06 §11.2). A thread each; what it is doing is kept
//! for `.status statistics` ([`crate::shared::collectors`]).
//!
//! Not here: the metrics themselves ([`crate::metrics::stock`]).

use std::fs;
use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fd_config::{Statistics, StatisticsKind};
use fd_fileset::wildcard;
use fd_messages::MessageType;
use fd_os::{io_error_text, resolver_text};

use crate::clock;
use crate::metrics::stock::{self, Metric};
use crate::security::own_file::{self, Writing};
use crate::shared::collectors::Spool;
use crate::shared::daemon::Daemon;
use crate::texts;

/// How long to try to connect to a Graphite server before its lines are kept for later.
const CALLING: Duration = Duration::from_secs(3);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a Graphite server may take to read.
const WRITING: Duration = Duration::from_secs(30);
/// As large as the file of lines that wait for a Graphite server may become, bytes.
const SPOOL: u64 = 64 << 20;

/// Starts the collectors.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let resources = &daemon.config().statistics;
    if resources.is_empty() {
        return;
    }
    daemon.collectors.begin();
    for number in 0..resources.len() {
        let shared = Arc::clone(daemon);
        let spawned = thread::Builder::new().name("collector".to_owned()).spawn(move || {
            if let Some(resource) = shared.config().statistics.get(number) {
                collect(&shared, number, resource);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for a collector");
        }
    }
}

/// Collects until an error that stays.
fn collect(daemon: &Daemon, number: usize, resource: &Statistics) {
    let collectors = &daemon.collectors;
    let graphite = resource.kind == StatisticsKind::Graphite;
    let pulse = daemon.pulses.add("collector");
    collectors.change(number, |state| {
        state.running = true;
        state.spool = if graphite { Spool::Unknown } else { Spool::Disabled };
    });
    loop {
        let now = clock::seconds();
        collectors.change(number, |state| state.last = now);
        let lines = lines(resource, &stock::metrics(&daemon.config().file_daemon.name), now);
        if graphite {
            to_graphite(daemon, number, resource, &lines);
        } else if let Err((place, text)) = to_file(resource.file.as_deref(), &lines) {
            tracing::error!(collector = %resource.name, "{text}");
            daemon.supervisor.announce(MessageType::Error, place, format!("{text}\n").as_bytes());
            collectors.change(number, |state| (state.running, state.error) = (false, text));
            return;
        }
        // A resource may ask for no pause at all; the loop must not take a whole processor.
        pulse.sleep(resource.interval.max(PAUSE));
    }
}

/// What is written at once.
fn lines(resource: &Statistics, metrics: &[Metric], now: i64) -> Vec<u8> {
    let wanted = metrics.iter().filter(|metric| is_wanted(&resource.metrics, metric.name.as_bytes()));
    wanted.flat_map(|metric| line(resource, metric, now)).collect()
}

fn line(resource: &Statistics, metric: &Metric, now: i64) -> Vec<u8> {
    let prefix = resource.prefix.as_ref().map(|prefix| [prefix.as_slice(), b"."].concat()).unwrap_or_default();
    let name = if resource.mangle_metric { metric.name.replace('.', "%32") } else { metric.name.clone() };
    let (before, after) = match resource.kind {
        StatisticsKind::Csv => (format!("{now}, "), format!(", {}\n", metric.value)),
        StatisticsKind::Graphite => (String::new(), format!(" {} {now}\n", metric.value)),
    };
    [before.as_bytes(), &prefix, name.as_bytes(), after.as_bytes()].concat()
}

/// The stock daemon's odd rule: only the last pattern counts, and whether the one before it
/// matched.
fn is_wanted(patterns: &[Vec<u8>], name: &[u8]) -> bool {
    let mut wanted = true;
    let mut before = false;
    for pattern in patterns {
        let (negated, pattern) = pattern.strip_prefix(b"!").map_or((false, pattern.as_slice()), |rest| (true, rest));
        let matches = wildcard(pattern, name, false);
        wanted = if matches { !negated } else { before };
        before = matches;
    }
    wanted
}

/// Appends to the file of a collector. An error is the stock daemon's place and text.
fn to_file(file: Option<&Path>, lines: &[u8]) -> Result<(), (&'static str, String)> {
    let Some(path) = file else { return Err((texts::COLLECTOR_OPEN, texts::no_collector_file())) };
    let opening = |error| (texts::COLLECTOR_OPEN, texts::collector_not_opened(path, &io_error_text(&error)));
    let saving = |error| (texts::COLLECTOR_SAVE, texts::collector_not_saved(path, &io_error_text(&error)));
    own_file::open_output(path, Writing::Append, 0o640).map_err(opening)?.write_all(lines).map_err(saving)
}

/// Sends the lines to a Graphite server, after those that were kept; keeps them if it can't be
/// reached.
fn to_graphite(daemon: &Daemon, number: usize, resource: &Statistics, lines: &[u8]) {
    let collectors = &daemon.collectors;
    let spool = spool_file(&daemon.config().file_daemon.working_directory, &resource.name);
    let sent = call(resource).and_then(|stream| {
        if spool.exists() {
            collectors.change(number, |state| state.spool = Spool::Despooling);
        }
        hand_over(stream, &spool, lines)
    });
    match sent {
        Ok(()) => collectors.change(number, |state| {
            state.spool = Spool::Enabled;
            state.error.clear();
        }),
        Err(error) => {
            let kept = keep(&spool, lines);
            if let Err(error) = kept {
                tracing::warn!(%error, path = %spool.display(), "a collector's lines can't be kept");
            }
            let text = texts::no_graphite(resource.host.as_deref(), resource.port, &resolver_text(&error));
            collectors.change(number, |state| (state.spool, state.error) = (Spool::InProgress, text));
        }
    }
}

/// Reference 06 §5.8.
fn spool_file(working_directory: &Path, collector: &str) -> PathBuf {
    // A name may contain what leads to another directory.
    working_directory.join(format!("bacula-fd.collector.{}.spool", collector.replace('/', "_")))
}

/// A connection to the server; some tries.
fn call(resource: &Statistics) -> io::Result<TcpStream> {
    let host = resource.host.as_deref().unwrap_or("127.0.0.1");
    let end = Instant::now() + CALLING;
    loop {
        let error = match call_once(host, resource.port, end) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if Instant::now() + PAUSE >= end {
            return Err(error);
        }
        thread::sleep(PAUSE);
    }
}

fn call_once(host: &str, port: u16, end: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn hand_over(mut stream: TcpStream, spool: &Path, lines: &[u8]) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITING))?;
    let waited = match own_file::read(spool) {
        Ok(mut file) => {
            io::copy(&mut file, &mut stream)?;
            true
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    stream.write_all(lines)?;
    if waited { fs::remove_file(spool) } else { Ok(()) }
}

/// Keeps the lines for later, as long as there are not too many.
fn keep(spool: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = own_file::open_to_append(spool, 0o640)?;
    if file.metadata()?.len() >= SPOOL {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.write_all(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_patterns_decide() {
        let wanted = |patterns: &[&str], name: &str| {
            let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect();
            is_wanted(&patterns, name.as_bytes())
        };
        assert!(wanted(&[], "x.memory.heap"));
        assert!(wanted(&["*.memory.*", "!*.heap"], "x.memory.bufs"));
        assert!(!wanted(&["*.memory.*", "!*.heap"], "x.memory.heap"));
        assert!(!wanted(&["!*.heap"], "x.memory.bufs"));
        assert!(!wanted(&["*.memory.*", "!*.heap", "!*.bufs"], "x.memory.smbytes"));
        assert!(wanted(&["*.memory.*", "!*.heap", "!*.bufs"], "x.memory.heap"));
    }
}
