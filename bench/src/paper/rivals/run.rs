//! Running the steps: each replica begins with empty stores, and in each step all programs save the
//! same files, in an order drawn for the step.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Console, Fd, FileSet, Folder, Result, next_second, reset_peak, say,
};
use nix::unistd::sync;

use crate::group::used;
use crate::order::shuffled;
use crate::paper::rivals::adapter::Adapter;
use crate::paper::rivals::rival::{Cost, Rival};
use crate::paper::rivals::row::{READ_ONLY, RESTORE, Row, STEPS, append, read};
use crate::paper::rivals::set::{Set, size};
use crate::sample::Sample;
use crate::statistics::float;
use crate::surroundings::load;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// So many replicas.
    pub replicas: u32,
    /// MiB of noise in the set, and as many of zeros.
    pub mebibytes: usize,
    /// Draws the order.
    pub seed: u64,
}

/// What saves.
enum System<'a> {
    // The console is dropped before the bed whose Director it talks to. Its jobs so far.
    Daemon(Console, Box<Bed>, Fd, Vec<String>),
    Rival(Box<Rival<'a>>),
}

/// Measures what is missing; gives what went wrong.
pub fn measure(wanted: Wanted, adapters: &[Adapter], raw: &Path, interrupted: &AtomicBool) -> Result<Vec<String>> {
    let here: Vec<&Adapter> = adapters.iter().filter(|adapter| adapter.is_here()).collect();
    let missing: Vec<_> = adapters.iter().filter(|adapter| !adapter.is_here()).map(|one| one.name.as_str()).collect();
    if !missing.is_empty() {
        say(&format!("Not on PATH: {}", missing.join(", ")));
    }
    let mut problems = Vec::new();
    for replica in 1..=wanted.replicas {
        if interrupted.load(Ordering::Relaxed) {
            problems.push("interrupted".to_owned());
            break;
        }
        let there: BTreeSet<String> =
            read(raw)?.into_iter().filter(|row| row.replica == replica).map(|row| row.system).collect();
        let folder = Folder::new("rivals")?;
        let set = Set::make(folder.path().join("set"), wanted.mebibytes)?;
        let mut systems = Vec::new();
        for fd in Fd::BOTH.into_iter().filter(|fd| !there.contains(fd.name())) {
            systems.push(daemon(fd, &set)?);
        }
        for adapter in here.iter().filter(|adapter| !there.contains(&adapter.name)) {
            systems.push(System::Rival(Box::new(Rival::start(adapter, &set)?)));
        }
        let rows = steps(wanted, replica, &set, &mut systems)?;
        problems.extend(rows.iter().filter(|row| row.outcome != 'T').map(|row| format!("{row:?}")));
        append(raw, &rows)?;
    }
    Ok(problems)
}

fn steps(wanted: Wanted, replica: u32, set: &Set, systems: &mut [System<'_>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut saved = 0;
    for step in STEPS.into_iter().chain([READ_ONLY]) {
        set.change(step)?;
        saved += usize::from(step != RESTORE);
        let _read_only = if step == READ_ONLY { Some(set.read_only()?) } else { None };
        let order = shuffled(wanted.seed, &format!("rivals/{step}#{replica}"), (0..systems.len()).collect());
        for (turn, at) in (1..).zip(order) {
            let Some(system) = systems.get_mut(at) else { continue };
            if matches!(system, System::Rival(rival) if rival.adapter.by_the_second) {
                next_second()?;
            }
            sync();
            set.warm()?;
            let (load, began) = (load(), SystemTime::now());
            let cost = if step == RESTORE { system.restore(saved, set)? } else { Some(system.save(saved, set)?) };
            let Some(Cost { outcome, wall, cpu, memory, stored }) = cost else { continue };
            let name = system.name().to_owned();
            say(&format!("{name} {step} #{replica}: {wall:.2} s, CPU {cpu:.2} s, {} MiB stored", stored >> 20));
            let (step, stored) = (step.to_owned(), float(stored));
            let began = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            rows.push(Row { system: name, step, replica, turn, began, outcome, wall, cpu, memory, stored, load });
        }
    }
    Ok(rows)
}

/// A bed with one client. Each daemon has a Director, a Storage Daemon and a catalog of its own, so
/// that what is stored can be told apart.
fn daemon<'a>(fd: Fd, set: &Set) -> Result<System<'a>> {
    let mut options = BedOptions::new("rivals", [ClientOptions::new(fd)])?;
    options.file_sets = vec![FileSet::new("Set", &["Signature = MD5"], &[&set.path])];
    let bed = Bed::start(options)?;
    Ok(System::Daemon(Console::of(&bed)?, Box::new(bed), fd, Vec::new()))
}

impl System<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Daemon(_, _, fd, _) => fd.name(),
            Self::Rival(rival) => &rival.adapter.name,
        }
    }

    fn save(&mut self, number: usize, set: &Set) -> Result<Cost> {
        match self {
            Self::Daemon(console, bed, fd, jobs) => {
                let level = if number == 1 { "Full" } else { "Incremental" };
                let (cost, job) =
                    of_daemons(console, bed, *fd, format!("run job=backup-{} level={level} yes", fd.name()))?;
                jobs.push(job);
                Ok(cost)
            }
            Self::Rival(rival) => rival.save(set, number),
        }
    }

    fn restore(&mut self, number: usize, set: &Set) -> Result<Option<Cost>> {
        match self {
            Self::Daemon(console, bed, fd, jobs) => {
                let out = bed.folder().join("out");
                let (jobs, client, place) = (jobs.join(","), fd.name(), out.display());
                let command = format!("restore jobid={jobs} client={client}-fd where={place} all done yes");
                let (mut cost, _) = of_daemons(console, bed, *fd, command)?;
                if cost.outcome == 'T' && !set.is_below(&out)? {
                    cost.outcome = 'D';
                }
                fs::remove_dir_all(&out).map_err(BedError::file("remove", &out))?;
                Ok(Some(cost))
            }
            Self::Rival(rival) => rival.restore(set, number),
        }
    }
}

/// A job, and its JobId.
fn of_daemons(console: &Console, bed: &mut Bed, fd: Fd, command: String) -> Result<(Cost, String)> {
    let pids = [bed.client(fd.name())?.pid()?, bed.storage().process()?.pid(), bed.director().process()?.pid()];
    let cpu = || -> Result<Duration> { pids.iter().map(|pid| Ok(used(*pid)?.cpu)).sum() };
    pids.iter().try_for_each(|pid| reset_peak(*pid))?;
    let before = cpu()?;
    let clocked = console.run(bed, &[command])?;
    let took = clocked.took;
    let job = clocked.one()?;
    let catalog = bed.folder().join("work/dir/bacula.db");
    let meta = fs::metadata(&catalog).map_err(BedError::file("look at", &catalog))?;
    let memory: u64 = pids.iter().map(|pid| used(*pid).map(|used| used.parts.peak_memory)).sum::<Result<u64>>()?;
    let cost = Cost {
        outcome: Sample::outcome_of(&job.row),
        wall: took.as_secs_f64(),
        cpu: cpu()?.saturating_sub(before).as_secs_f64(),
        memory: float(memory),
        stored: size(&bed.folder().join("volumes"))? + meta.len(),
    };
    Ok((cost, job.row.id.to_string()))
}

/// The versions of the programs that are here, a line each.
pub fn versions(adapters: &[Adapter]) -> Result<String> {
    let mut text = String::new();
    for adapter in adapters.iter().filter(|adapter| adapter.is_here()) {
        let mut command = Command::new("sh");
        let done =
            command.args(["-c", &adapter.version]).output().map_err(BedError::file("run", Path::new(&adapter.name)))?;
        let said = String::from_utf8_lossy(&done.stdout).lines().collect::<Vec<_>>().join("; ");
        let _ = writeln!(text, "{}: {said}", adapter.name);
    }
    Ok(text)
}
