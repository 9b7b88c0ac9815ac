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

const TRACING: &str = "/sys/kernel/tracing";
const EVENT: &str = "events/sock/inet_sock_set_state";
/// In the line of a connection's first packet.
const BEGINS: &str = "newstate=TCP_SYN_SENT";
/// At the end of the line in which the Director closes it, or it is torn. That a File Daemon has
/// no more to say does not end it: one closes its half before the Director is done, another one
/// waits for it.
const ENDS: [&str; 4] = [
    "newstate=TCP_FIN_WAIT1",
    "newstate=TCP_LAST_ACK",
    "oldstate=TCP_ESTABLISHED newstate=TCP_CLOSE",
    "oldstate=TCP_CLOSE_WAIT newstate=TCP_CLOSE",
];

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
    /// From its first packet to the one with which the Director closes it.
    pub life: Duration,
    /// When the Director first called the Storage Daemon: the job has left the Director's queue,
    /// where it waits up to two seconds, whatever client it is for.
    pub started: Option<SystemTime>,
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
        self.seen(pid, port, None, work).map(|(result, connection)| (result, connection.life))
    }

    /// The same with its begin, and with the begin of the job if the Storage Daemon's port is told.
    pub fn seen<T>(
        &self,
        pid: u32,
        port: u16,
        storage: Option<u16>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Connection)> {
        match self {
            Self::Trace(trace) => {
                trace.begin(&[port], storage)?;
                let result = work()?;
                Ok((result, trace.end(storage, |text| longest_life(text, port))?))
            }
            Self::Poll => poll(pid, work),
        }
    }

    /// Does `work` and gives how long at least one of the connections to these ports stood, from
    /// the first begin to the last end. Without the trace point: how long the work took.
    pub fn all_of<T>(&self, ports: &[u16], storage: u16, work: impl FnOnce() -> Result<T>) -> Result<(T, Connection)> {
        match self {
            Self::Trace(trace) => {
                trace.begin(ports, Some(storage))?;
                let result = work()?;
                Ok((result, trace.end(Some(storage), |text| all_lives(text, ports))?))
            }
            Self::Poll => {
                let (begun, clock) = (SystemTime::now(), Instant::now());
                let result = work()?;
                Ok((result, Connection { begun, life: clock.elapsed(), started: None }))
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

    fn begin(&self, ports: &[u16], storage: Option<u16>) -> Result<()> {
        self.write("trace", "")?;
        // The Director's end of the connection has the daemon's port as its destination.
        let filter: Vec<String> = ports.iter().chain(&storage).map(|port| format!("dport == {port}")).collect();
        self.write(&format!("{EVENT}/filter"), &filter.join(" || "))?;
        self.write(&format!("{EVENT}/enable"), "1")
    }

    fn end(&self, storage: Option<u16>, lives: impl Fn(&str) -> Option<(Duration, Duration)>) -> Result<Connection> {
        let path = self.folder.join("trace");
        let (begun, life, started) = wait_for("the end of the connection to a File Daemon", PATIENCE, || {
            let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
            let started = storage.and_then(|port| times(&text, &[port], begins).next());
            Ok(lives(&text).map(|(begun, life)| (begun, life, started)).ok_or(text))
        })?;
        self.write(&format!("{EVENT}/enable"), "0")?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
            .map_err(|source| BedError::System { what: "clock_gettime", source })?;
        let (mono, now) = (Duration::from(now), SystemTime::now());
        let clock = |then: Duration| now.checked_sub(mono.saturating_sub(then)).unwrap_or(now);
        Ok(Connection { begun: clock(begun), life, started: started.map(clock) })
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(BedError::file("write", &path))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // An instance that stays behind costs some memory and nothing else.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The begin of a connection to a port and the time from its first packet to the one with which
/// the Director closes it, of the longest of those in a trace. `None` while one of them has not
/// ended, or none has begun.
fn longest_life(trace: &str, port: u16) -> Option<(Duration, Duration)> {
    let (mut open, mut longest): (_, Option<(Duration, Duration)>) = (None, None);
    for line in lines_of(trace, &[port]) {
        if begins(line) {
            open = seconds_of(line);
        } else if ends(line) {
            let first = open.take()?;
            let life = seconds_of(line)?.checked_sub(first)?;
            if longest.is_none_or(|(_, known)| life > known) {
                longest = Some((first, life));
            }
        }
    }
    if open.is_none() { longest } else { None }
}

/// The first begin of a connection to each of these ports and the time to the last end. `None`
/// while one of them has not ended.
fn all_lives(trace: &str, ports: &[u16]) -> Option<(Duration, Duration)> {
    let (opened, closed) = (times(trace, ports, begins).count(), times(trace, ports, ends).count());
    let (begun, ended) = (times(trace, ports, begins).next()?, times(trace, ports, ends).last()?);
    (opened == closed && opened >= ports.len()).then_some((begun, ended.checked_sub(begun)?))
}

/// When connections to these ports did this.
fn times<'a>(trace: &'a str, ports: &'a [u16], what: fn(&str) -> bool) -> impl Iterator<Item = Duration> + 'a {
    lines_of(trace, ports).filter(move |line| what(line)).filter_map(seconds_of)
}

/// Whether a line is of a connection's first packet.
fn begins(line: &str) -> bool {
    line.contains(BEGINS)
}

/// Whether the Director closes a connection with it.
fn ends(line: &str) -> bool {
    ENDS.iter().any(|end| line.trim_end().ends_with(end))
}

/// The lines of connections to these ports.
fn lines_of<'a>(trace: &'a str, ports: &'a [u16]) -> impl Iterator<Item = &'a str> + 'a {
    let port_of = |line: &str| line.split_once(" dport=")?.1.split(' ').next()?.parse::<u16>().ok();
    let is_wanted =
        move |line: &&str| !line.starts_with('#') && port_of(line).is_some_and(|port| ports.contains(&port));
    trace.lines().filter(is_wanted)
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
            Connection { begun: clock, life, started: None }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        let connection =
            watcher.join().unwrap_or(Connection { begun: SystemTime::now(), life: Duration::ZERO, started: None });
        Ok((result?, connection))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# tracer: nop\n#\n\
     bacula-dir-7 [000] ..... 10.000100: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_CLOSE newstate=TCP_SYN_SENT\n\
     bacula-dir-7 [000] ..s.. 10.000200: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_SYN_SENT newstate=TCP_ESTABLISHED\n\
     bacula-dir-7 [001] ..s.. 12.400300: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_ESTABLISHED newstate=TCP_CLOSE_WAIT\n\
     bacula-dir-7 [001] ..s.. 12.500300: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_CLOSE_WAIT newstate=TCP_LAST_ACK\n\
     bacula-dir-7 [001] ..s.. 12.500400: inet_sock_set_state: family=AF_INET dport=1 oldstate=TCP_LAST_ACK newstate=TCP_CLOSE\n";

    #[test]
    fn a_connection_lives_until_the_director_closes_it() {
        let life = (Duration::from_micros(10_000_100), Duration::from_micros(2_500_200));
        assert_eq!((longest_life(TRACE, 1), all_lives(TRACE, &[1])), (Some(life), Some(life)));
        assert_eq!((longest_life(TRACE, 2), all_lives(TRACE, &[1, 2])), (None, None));
        let open = TRACE.split_inclusive('\n').take(5).collect::<String>();
        assert_eq!((longest_life(&open, 1), all_lives(&open, &[1])), (None, None));
        assert_eq!(longest_life(&format!("{TRACE}{open}"), 1), None);
        let elsewhere = open.replace("dport=1", "dport=2");
        assert_eq!(longest_life(&format!("{elsewhere}{TRACE}"), 1), Some(life));
        assert_eq!(times(&elsewhere, &[2], begins).next(), Some(life.0));
        assert_eq!(longest_life("", 1), None);
    }
}
