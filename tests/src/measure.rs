//! What a running process has used: CPU time, peak memory, descriptors, threads. Read from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

use crate::error::{BedError, Result};
use crate::patience::{PATIENCE, wait_for};

/// Use of resources at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Time in its own code.
    pub user: Duration,
    /// Time in the kernel on its behalf.
    pub system: Duration,
    /// Largest resident memory since the start or since [`reset_peak`], bytes.
    pub peak_memory: u64,
    /// Bytes moved by `read` and `write` calls of all kinds.
    pub moved: u64,
}

impl Usage {
    /// User and system time together.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Its processor time in its own code and in the kernel, and the same of its children that it has
/// waited for.
fn times(pid: u32) -> Result<[Duration; 4]> {
    let stat = read(pid, "stat")?;
    // The program's name is in parentheses and may hold anything; the fields begin behind the last
    // one.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace().collect()).unwrap_or_default();
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u32::try_from(ticks).ok()).unwrap_or(100);
    // Fields 14 to 17 of the manual page, which counts from 1 with the process id.
    Ok([11, 12, 13, 14].map(|field| {
        let count: u32 = fields.get(field).and_then(|text| text.parse().ok()).unwrap_or(0);
        Duration::from_secs(1) * count / ticks
    }))
}

/// Processor time of a process and of all processes below it that have been waited for. It may have
/// ended, if nothing has waited for it.
pub fn cpu_with_children(pid: u32) -> Result<Duration> {
    Ok(times(pid)?.iter().sum())
}

/// Reads the use of a process.
pub fn usage(pid: u32) -> Result<Usage> {
    let [user, system, ..] = times(pid)?;
    let status = read(pid, "status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(first_number).unwrap_or(0);
    let io = read(pid, "io")?;
    let moved = io.lines().filter_map(|line| line.strip_prefix("rchar:").or_else(|| line.strip_prefix("wchar:")));
    Ok(Usage { user, system, peak_memory: peak * 1024, moved: moved.filter_map(first_number).sum() })
}

/// Bytes that a process has had read from disks since its start.
pub fn read_from_disk(pid: u32) -> Result<u64> {
    let io = read(pid, "io")?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("read_bytes:")).and_then(first_number);
    bytes.ok_or_else(|| BedError::Usage(format!("the kernel does not say what process {pid} reads from disks")))
}

/// Resident memory of a process now, bytes.
pub fn resident(pid: u32) -> Result<u64> {
    let status = read(pid, "status")?;
    Ok(status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(first_number).unwrap_or(0) * 1024)
}

/// What a process leaves out of the modes of what it makes.
pub fn umask(pid: u32) -> Result<u32> {
    let status = read(pid, "status")?;
    let value = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = value.and_then(|value| u32::from_str_radix(value.trim(), 8).ok());
    umask.ok_or_else(|| BedError::Usage(format!("process {pid} has no umask")))
}

/// Lets the peak memory begin anew at what is used now.
pub fn reset_peak(pid: u32) -> Result<()> {
    let path = place(pid, "clear_refs");
    fs::write(&path, "5").map_err(BedError::file("write", &path))
}

/// Open descriptors of a process: number and what each refers to.
pub fn descriptors(pid: u32) -> Result<Vec<String>> {
    let path = place(pid, "fd");
    let entries = fs::read_dir(&path).map_err(BedError::file("read", &path))?;
    // One that is closed meanwhile is not open.
    Ok(entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect())
}

/// The number of threads of a process.
pub fn threads(pid: u32) -> Result<usize> {
    let path = place(pid, "task");
    Ok(fs::read_dir(&path).map_err(BedError::file("read", &path))?.count())
}

/// What a daemon holds: descriptors and threads.
pub type Footprint = (usize, usize);

/// What a daemon that serves no peer holds. Waits until those that it has served are gone.
pub fn idle(pid: u32) -> Result<Footprint> {
    wait_for("the daemon to be idle", PATIENCE, || {
        let served = connections(pid)?;
        Ok(if served.is_empty() && !has_session(pid)? {
            Ok((descriptors(pid)?.len(), threads(pid)?))
        } else {
            Err(format!("its connections: {served:?}"))
        })
    })
}

/// Whether a thread of ferrofd serves a Director, or one that may become it. Those of the stock
/// daemon have no names.
pub fn has_session(pid: u32) -> Result<bool> {
    Ok(thread_names(pid)?.iter().any(|name| name.starts_with("session ") || name.starts_with("caller ")))
}

/// The children of a process, those that have ended and are not waited for included.
pub fn children(parent: u32) -> Result<Vec<u32>> {
    let line = format!("PPid:\t{parent}\n");
    let proc = Path::new("/proc");
    let entries = fs::read_dir(proc).map_err(BedError::file("read", proc))?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // One that is gone meanwhile is none.
    Ok(numbers.filter(|pid| read(*pid, "status").is_ok_and(|status| status.contains(&line))).collect())
}

/// The names of a process's threads, of which the kernel keeps 15 bytes.
pub fn thread_names(pid: u32) -> Result<Vec<String>> {
    let path = place(pid, "task");
    let threads = fs::read_dir(&path).map_err(BedError::file("read", &path))?;
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    Ok(names.map(|name| name.trim_end().to_owned()).collect())
}

/// The TCP connections of a process, as the kernel shows them.
///
/// The kernel gives its table a page at a time. Where other connections come and go meanwhile, one
/// can stand in it twice.
pub fn connections(pid: u32) -> Result<Vec<String>> {
    let held: Vec<_> = descriptors(pid)?
        .iter()
        .filter_map(|what| what.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned))
        .collect();
    let tables = [read(pid, "net/tcp")?, read(pid, "net/tcp6").unwrap_or_default()].concat();
    Ok(held_in(&tables, &held))
}

/// The lines of a table of connections with one of these inodes, each inode once.
fn held_in(table: &str, held: &[String]) -> Vec<String> {
    const LISTENS: &str = "0A";
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for line in table.lines() {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (state, inode) = (fields.get(3), fields.get(9).copied().unwrap_or_default());
        if state != Some(&LISTENS) && held.iter().any(|held| held == inode) && seen.insert(inode) {
            lines.push(line.to_owned());
        }
    }
    lines
}

fn place(pid: u32, name: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(name)
}

fn read(pid: u32, name: &str) -> Result<String> {
    let path = place(pid, name);
    fs::read_to_string(&path).map_err(BedError::file("read", &path))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_use_is_plausible() {
        let own = std::process::id();
        let before = usage(own).unwrap();
        let big = std::hint::black_box(vec![1u8; 60_000_000]);
        let after = usage(own).unwrap();
        assert!(after.peak_memory >= big.len() as u64, "{after:?}");
        assert!(after.cpu() >= before.cpu());
        assert!(descriptors(own).unwrap().len() >= 3);
        assert!(threads(own).unwrap() >= 1);
    }

    #[test]
    fn a_connection_that_stands_in_the_table_twice_is_one() {
        let line = |state: &str, inode: &str| {
            format!("   0: 0100007F:1F90 0100007F:A0B2 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n")
        };
        let table = [line("01", "77"), line("01", "78"), line("01", "77"), line("0A", "79")].concat();
        let held = ["77", "79"].map(str::to_owned);
        assert_eq!(held_in(&table, &held).len(), 1);
    }

    #[test]
    fn a_connection_is_seen_until_it_is_closed_and_a_listener_is_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = |ports: [u16; 2]| {
            let ends = ports.map(|port| format!(":{port:04X}"));
            let all = connections(std::process::id()).unwrap();
            all.iter().filter(|line| ends.iter().all(|end| line.contains(end.as_str()))).count()
        };
        let port = listener.local_addr().unwrap().port();
        let made = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (taken, from) = listener.accept().unwrap();
        assert_eq!(ours([port, from.port()]), 2);
        drop(made);
        assert_eq!(ours([port, from.port()]), 1);
        drop(taken);
        assert_eq!(ours([port, from.port()]), 0);
    }
}
