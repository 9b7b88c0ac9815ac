//! What the kernel counts about the whole host, read from `/proc`, and what two readings say about
//! the interval between them. A reading that the kernel doesn't give is `None`; in a container some
//! are those of the host and some are missing.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, capabilities};

/// The kernel's ticks in a second, as `/proc/stat` counts.
const TICKS: u64 = 100;
/// Programs whose work is part of the backup: it is not somebody else's.
const BACULA: [&[u8]; 2] = [b"bacula-sd", b"bacula-dir"];

/// Counters at one moment; they only grow.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Counters {
    /// Time in which a thread waited for a processor, for the disks, for memory.
    pub(crate) pressure: [Option<Duration>; 3],
    /// All processors.
    pub(crate) processors: Option<Processors>,
    /// All disks.
    pub(crate) disks: Option<Disks>,
    /// What this process has read from disks, in sectors.
    pub(crate) own_sectors: u64,
    /// Time of this process and of other Bacula daemons in user mode.
    pub(crate) bacula_user: Duration,
    /// A Storage Daemon runs on this host.
    pub(crate) storage_is_here: bool,
}

/// How the processors spent their time.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Processors {
    /// Programs' own code.
    pub(crate) user: Duration,
    /// Nothing to do, or only disks to wait for.
    pub(crate) idle: Duration,
    /// All of it.
    pub(crate) all: Duration,
}

/// What the disks did.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Disks {
    pub(crate) operations: u64,
    /// Time of the operations together.
    pub(crate) spent: Duration,
    pub(crate) sectors_read: u64,
    /// Somebody waits until data is safe.
    pub(crate) flushes: u64,
}

/// What an interval was like. Shares are of its length.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Interval {
    /// Its length.
    pub(crate) length: Duration,
    /// Share in which some thread waited for a processor, for the disks, for memory.
    pub(crate) pressure: [Option<f64>; 3],
    /// Share of the processors that had nothing to do.
    pub(crate) idle: Option<f64>,
    /// Processors that others than Bacula's daemons used, in user mode.
    pub(crate) others_user: f64,
    /// Flushes per second: somebody else's, because a backup makes none.
    pub(crate) flushes: f64,
    /// Bytes per second that others have read from disks.
    pub(crate) others_read: f64,
    /// Mean time of an operation of the disks.
    pub(crate) operation: Option<Duration>,
    /// A Storage Daemon runs on this host.
    pub(crate) storage_is_here: bool,
}

impl Interval {
    /// What happened between two readings.
    pub(crate) fn between(before: &Counters, after: &Counters, length: Duration) -> Self {
        let seconds = length.as_secs_f64().max(1e-3);
        let share = |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / seconds;
        let mut pressure = [None; 3];
        for (share_of, (before, after)) in pressure.iter_mut().zip(before.pressure.iter().zip(&after.pressure)) {
            *share_of = before.zip(*after).map(|(before, after)| share(before, after));
        }
        let bacula = share(before.bacula_user, after.bacula_user);
        let processors = before.processors.zip(after.processors);
        let idle = processors.and_then(|(before, after)| {
            let all = share(before.all, after.all);
            (all > 0.0).then(|| share(before.idle, after.idle) / all)
        });
        let others_user = processors.map_or(0.0, |(before, after)| (share(before.user, after.user) - bacula).max(0.0));
        let mut interval =
            Self { length, pressure, idle, others_user, storage_is_here: after.storage_is_here, ..Self::default() };
        if let Some((old, new)) = before.disks.zip(after.disks) {
            let count = |before: u64, after: u64| u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX);
            let rate = |before: u64, after: u64| f64::from(count(before, after)) / seconds;
            interval.flushes = rate(old.flushes, new.flushes);
            let own = rate(before.own_sectors, after.own_sectors);
            interval.others_read = (rate(old.sectors_read, new.sectors_read) - own).max(0.0) * 512.0;
            interval.operation = new.spent.saturating_sub(old.spent).checked_div(count(old.operations, new.operations));
        }
        interval
    }
}

/// Reads counters again and again.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Disks that are no parts or layers of others.
    disks: HashSet<String>,
    /// Other Bacula daemons: their folders in `/proc`, and whether one is a Storage Daemon.
    daemons: Vec<String>,
    storage_is_here: bool,
    /// When they were looked for.
    looked: Option<Instant>,
}

impl Reader {
    /// How often other daemons are looked for.
    const LOOK_AGAIN: Duration = Duration::from_secs(30);

    pub(crate) fn new() -> Self {
        let is_disk = |name: &String| Path::new("/sys/block").join(name).join("device").exists();
        let names = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let disks = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_disk).collect();
        Self { disks, daemons: Vec::new(), storage_is_here: false, looked: None }
    }

    /// The counters now.
    pub(crate) fn read(&mut self, now: Instant) -> Counters {
        if self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= Self::LOOK_AGAIN) {
            self.look(now);
        }
        let text = |path: &str| fs::read_to_string(path).ok();
        let daemons = self.daemons.iter().map(String::as_str).chain(["/proc/self"]);
        let user = daemons.filter_map(|folder| user_time(&fs::read(format!("{folder}/stat")).ok()?)).sum();
        Counters {
            pressure: ["cpu", "io", "memory"].map(|of| pressure(&text(&format!("/proc/pressure/{of}"))?)),
            processors: text("/proc/stat").and_then(|text| processors(&text)),
            disks: text("/proc/diskstats").and_then(|text| disks(&text, |name| self.disks.contains(name))),
            own_sectors: text("/proc/self/io").and_then(|text| own_sectors(&text)).unwrap_or(0),
            bacula_user: user,
            storage_is_here: self.storage_is_here,
        }
    }

    fn look(&mut self, now: Instant) {
        self.looked = Some(now);
        self.daemons.clear();
        self.storage_is_here = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let folder = entry.path();
            let Ok(name) = fs::read(folder.join("comm")) else { continue };
            let name = name.trim_ascii_end();
            if BACULA.contains(&name) {
                self.storage_is_here |= name == b"bacula-sd";
                self.daemons.extend(folder.into_os_string().into_string());
            }
        }
    }
}

/// Whether this process may raise a priority again that it has lowered.
pub(crate) fn may_raise_priority() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

/// How long a thread of this process has run, and how long it has waited for a processor while it
/// had work.
pub(crate) fn ran_and_waited(thread: i32) -> Option<(Duration, Duration)> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut times = text.split_ascii_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
    Some((times.next()??, times.next()??))
}

/// The total of the line `some` of a file of pressure stall information.
fn pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split(' ').find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

/// The first line of `/proc/stat`.
fn processors(text: &str) -> Option<Processors> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, nice, system, idle, waiting, interrupts, soft, stolen, ..] = *ticks.as_slice() else { return None };
    let time = |parts: &[u64]| Duration::from_millis(parts.iter().sum::<u64>() * (1000 / TICKS));
    Some(Processors {
        user: time(&[user, nice]),
        idle: time(&[idle, waiting]),
        all: time(&[user, nice, system, idle, waiting, interrupts, soft, stolen]),
    })
}

/// `/proc/diskstats`, of the disks that `is_disk` takes.
fn disks(text: &str, is_disk: impl Fn(&str) -> bool) -> Option<Disks> {
    let mut sum = Disks::default();
    let mut found = false;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        if !words.next().is_some_and(&is_disk) {
            continue;
        }
        let fields: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let [reads, _, sectors, read_ms, writes, _, _, write_ms, ..] = *fields.as_slice() else { continue };
        // Kernels before 5.5 don't count flushes.
        let (flushes, flush_ms) = fields.get(15).zip(fields.get(16)).unwrap_or((&0, &0));
        found = true;
        sum.operations = sum.operations.saturating_add(reads).saturating_add(writes).saturating_add(*flushes);
        sum.spent += Duration::from_millis(read_ms.saturating_add(write_ms).saturating_add(*flush_ms));
        sum.sectors_read = sum.sectors_read.saturating_add(sectors);
        sum.flushes = sum.flushes.saturating_add(*flushes);
    }
    found.then_some(sum)
}

/// `read_bytes` of `/proc/self/io`.
fn own_sectors(text: &str) -> Option<u64> {
    let bytes: u64 = text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()?;
    Some(bytes / 512)
}

/// The time in user mode of `/proc/PID/stat`; the name before it may hold anything.
fn user_time(stat: &[u8]) -> Option<Duration> {
    let behind = stat.get(stat.iter().rposition(|byte| *byte == b')')?..)?;
    let ticks: u64 = std::str::from_utf8(behind).ok()?.split_ascii_whitespace().nth(12)?.parse().ok()?;
    Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
}

#[cfg(test)]
mod tests;
