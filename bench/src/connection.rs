//! How long the Director's connection to a File Daemon lasted, to the microsecond and without a
//! capture: the kernel's trace point `sock:inet_sock_set_state` fires when a socket changes its
//! state.
//!
//! The socket tables in `/proc/net/tcp` would have to be read about every millisecond; one reading
//! takes seven milliseconds of CPU time on a machine with the usual number of hash buckets. Without
//! root there is no trace point: then the File Daemon's open sockets are looked at every
//! millisecond, which shows the time from accepting to closing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bed::{BedError, PATIENCE, Result, descriptors, wait_for};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::time::{ClockId, clock_gettime};

use crate::programs::own;
use crate::tree::file;

const TRACING: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/sock/inet_sock_set_state";
/// In the line of a connection's first packet, and of the first one that ends it.
const BEGINS: &str = "newstate=TCP_SYN_SENT";
const ENDS: &str = "oldstate=TCP_ESTABLISHED";

/// What sees connections.
#[derive(Debug)]
pub enum Watch {
    /// A trace buffer of our own.
    Trace(Trace),
    /// Looking at open descriptors.
    Poll,
}

/// A connection that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// By the host's clock.
    pub begun: SystemTime,
    /// From its first packet to the first that ends it.
    pub life: Duration,
}

/// An instance of the kernel's tracing with a buffer of its own; it goes with the value.
#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
}

impl Watch {
    /// The best that this process may have. To be called while the process has one thread: what is
    /// mounted then is seen by it and its children only.
    pub fn best() -> Self {
        Trace::new().map_or(Self::Poll, Self::Trace)
    }

    /// How it sees, for the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Trace(_) => "kernel trace point",
            Self::Poll => "descriptors, looked at every millisecond",
        }
    }

    /// Does `work` and gives how long the connection to the daemon `pid` on `port` stood meanwhile;
    /// the longest if there were several.
    pub fn during<T>(&self, pid: u32, port: u16, work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        self.seen(pid, port, work).map(|(result, connection)| (result, connection.life))
    }

    /// The same with its begin.
    pub fn seen<T>(&self, pid: u32, port: u16, work: impl FnOnce() -> Result<T>) -> Result<(T, Connection)> {
        match self {
            Self::Trace(trace) => {
                trace.begin(&[port])?;
                let result = work()?;
                Ok((result, trace.end(longest_life)?))
            }
            Self::Poll => poll(pid, work),
        }
    }

    /// Does `work` and gives how long at least one of the connections to these ports stood, from
    /// the first begin to the last end. Without the trace point: how long the work took.
    pub fn all_of<T>(&self, ports: &[u16], work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        match self {
            Self::Trace(trace) => {
                trace.begin(ports)?;
                let result = work()?;
                Ok((result, trace.end(|text| all_lives(text, ports.len()))?.life))
            }
            Self::Poll => {
                let begun = Instant::now();
                let result = work()?;
                Ok((result, begun.elapsed()))
            }
        }
    }
}

impl Trace {
    fn new() -> Option<Self> {
        let instances = Path::new(TRACING).join("instances");
        if !instances.exists() {
            // A mount of our own, which no other process sees.
            own().ok()?;
            unshare(CloneFlags::CLONE_NEWNS).ok()?;
            let none: Option<&str> = None;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).ok()?;
            mount(Some("tracefs"), TRACING, Some("tracefs"), MsFlags::empty(), none).ok()?;
        }
        let trace = Self { folder: instances.join(format!("ferrofd-bench-{}", process::id())) };
        fs::create_dir(&trace.folder).ok()?;
        trace.write("trace_clock", "mono").ok()?;
        Some(trace)
    }

    fn begin(&self, ports: &[u16]) -> Result<()> {
        self.write("trace", "")?;
        // The Director's end of the connection has the daemon's port as its destination.
        let filter: Vec<String> = ports.iter().map(|port| format!("dport == {port}")).collect();
        self.write(&format!("{EVENT}/filter"), &filter.join(" || "))?;
        self.write(&format!("{EVENT}/enable"), "1")
    }

    fn end(&self, lives: impl Fn(&str) -> Option<(Duration, Duration)>) -> Result<Connection> {
        let path = self.folder.join("trace");
        let (begun, life) = wait_for("the end of the connection to a File Daemon", PATIENCE, || {
            let text = fs::read_to_string(&path).map_err(file("read", &path))?;
            Ok(lives(&text).ok_or(text))
        })?;
        self.write(&format!("{EVENT}/enable"), "0")?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map_err(|source| BedError::System { what: "clock_gettime", source })?;
        let ago = Duration::from(now).saturating_sub(begun);
        let now = SystemTime::now();
        Ok(Connection { begun: now.checked_sub(ago).unwrap_or(now), life })
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(file("write", &path))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // An instance that stays behind costs some memory and nothing else.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The begin of a connection and the time from its first packet to the first packet that ends it,
/// of the longest of those in a trace. `None` while one of them has not ended, or none has begun.
fn longest_life(trace: &str) -> Option<(Duration, Duration)> {
    let (mut open, mut longest): (_, Option<(Duration, Duration)>) = (None, None);
    for line in trace.lines().filter(|line| !line.starts_with('#')) {
        if line.contains(BEGINS) {
            open = seconds_of(line);
        } else if line.contains(ENDS) {
            let first = open.take()?;
            let life = seconds_of(line)?.checked_sub(first)?;
            if longest.is_none_or(|(_, known)| life > known) {
                longest = Some((first, life));
            }
        }
    }
    if open.is_none() { longest } else { None }
}

/// The first begin of so many connections and the time to the last end. `None` while one of them
/// has not ended.
fn all_lives(trace: &str, count: usize) -> Option<(Duration, Duration)> {
    let times = |what| trace.lines().filter(move |line| !line.starts_with('#') && line.contains(what));
    let (begins, ends) = (times(BEGINS).count(), times(ENDS).count());
    let (begun, ended) = (seconds_of(times(BEGINS).next()?)?, seconds_of(times(ENDS).next_back()?)?);
    (begins == ends && begins >= count).then_some((begun, ended.checked_sub(begun)?))
}

/// The time stamp: the word before the event's name, in seconds with six decimals.
fn seconds_of(line: &str) -> Option<Duration> {
    let (head, _) = line.split_once(": inet_sock_set_state:")?;
    let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_micros(micros.parse().ok()?))
}

/// The first socket that the daemon opens is the Director's connection.
fn poll<T>(pid: u32, work: impl FnOnce() -> Result<T>) -> Result<(T, Connection)> {
    let sockets = || -> Vec<String> {
        let open = descriptors(pid).unwrap_or_default();
        open.into_iter().filter(|name| name.starts_with("socket:")).collect()
    };
    let before = sockets();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut first, mut life) = (None, Duration::ZERO);
            let mut clock = SystemTime::now();
            while !done.load(Ordering::Relaxed) {
                let now = sockets();
                if let Some((name, begun)) = &first {
                    let begun: &Instant = begun;
                    if now.contains(name) {
                        life = begun.elapsed();
                    }
                } else {
                    first = now.into_iter().find(|name| !before.contains(name)).map(|name| (name, Instant::now()));
                    clock = SystemTime::now();
                }
                thread::sleep(Duration::from_millis(1));
            }
            Connection { begun: clock, life }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        let connection = watcher.join().unwrap_or(Connection { begun: SystemTime::now(), life: Duration::ZERO });
        Ok((result?, connection))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# tracer: nop\n#\n\
     bacula-dir-7 [000] ..... 10.000100: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_CLOSE newstate=TCP_SYN_SENT\n\
     bacula-dir-7 [000] ..s.. 10.000200: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_SYN_SENT newstate=TCP_ESTABLISHED\n\
     bacula-dir-7 [001] ..s.. 12.500300: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_ESTABLISHED newstate=TCP_CLOSE_WAIT\n";

    #[test]
    fn a_connection_lives_until_its_first_end() {
        let life = (Duration::from_micros(10_000_100), Duration::from_micros(2_500_200));
        assert_eq!((longest_life(TRACE), all_lives(TRACE, 1)), (Some(life), Some(life)));
        assert_eq!(all_lives(TRACE, 2), None);
        let open = TRACE.split_inclusive('\n').take(4).collect::<String>();
        assert_eq!((longest_life(&open), all_lives(&open, 1)), (None, None));
        assert_eq!(longest_life(&format!("{TRACE}{open}")), None);
        assert_eq!(longest_life(""), None);
    }
}
