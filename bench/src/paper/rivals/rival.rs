//! One of the other programs at work: its store, its server if it has one, and what a step takes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bed::{BedError, Folder, PATIENCE, Process, ReservedPort, Result, argv, children, say, wait_for};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::paper::rivals::adapter::Adapter;
use crate::paper::rivals::set::{Set, size};
use crate::programs::own;

/// Ticks of a second, in which the kernel tells what a process and its children have used.
const TICKS: f64 = 100.0;

/// A program with an empty store.
pub struct Rival<'a> {
    /// How it is called.
    pub adapter: &'a Adapter,
    // Dropped in this order: the server before the folder that it writes to.
    server: Option<(Process, ReservedPort)>,
    folder: Folder,
}

/// What a step took.
pub struct Cost {
    /// `T` good, `D` a restored file differs, others failed.
    pub outcome: char,
    /// Seconds.
    pub wall: f64,
    /// Seconds of all its processes.
    pub cpu: f64,
    /// Bytes.
    pub memory: f64,
    /// Bytes.
    pub stored: u64,
}

impl<'a> Rival<'a> {
    /// Makes the store.
    pub fn start(adapter: &'a Adapter, set: &Set) -> Result<Self> {
        let mut rival = Self { adapter, server: None, folder: Folder::new(&adapter.name)? };
        rival.folder.make("store")?;
        rival.folder.make("work")?;
        if let Some(serve) = &adapter.serve {
            let port = ReservedPort::new()?;
            let number = port.number();
            let mut words = argv(["env"]);
            words.extend(rival.variables(set, 0, number).into_iter().map(|(key, value)| {
                let mut word = OsString::from(key);
                word.push("=");
                word.push(value);
                word
            }));
            words.extend(argv(["sh", "-ec", serve]));
            let mut server = Process::start(&adapter.name, &words, &rival.folder.path().join("server.out"))?;
            server.must_listen(number)?;
            rival.server = Some((server, port));
        }
        let mut shell = Command::new("sh");
        shell.args(["-ec", &adapter.prepare]).envs(rival.variables(set, 0, rival.port()));
        let done = shell.output().map_err(BedError::file("run", Path::new(&adapter.name)))?;
        if done.status.success() {
            return Ok(rival);
        }
        let problem = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(BedError::Program { program: adapter.name.clone(), problem })
    }

    fn port(&self) -> u16 {
        self.server.as_ref().map_or(0, |(_, port)| port.number())
    }

    /// The variables of its commands.
    fn variables(&self, set: &Set, step: usize, port: u16) -> Vec<(String, OsString)> {
        let [store, work, out] = ["store", "work", "out"].map(|name| self.folder.path().join(name));
        let (port, step) = (port.to_string(), step.to_string());
        let put = |text: &str| {
            let text = text.replace("$STORE", &store.to_string_lossy()).replace("$WORK", &work.to_string_lossy());
            text.replace("$PORT", &port)
        };
        let own = self.adapter.environment.iter().map(|(key, value)| (key.clone(), put(value).into()));
        let own: Vec<(String, OsString)> = own.collect();
        let usual = [("TREE", set.path.clone().into_os_string()), ("STORE", store.clone().into_os_string())];
        let more = [("WORK", work.clone().into_os_string()), ("OUT", out.into_os_string())];
        let words = [("STEP", step.into()), ("PORT", port.clone().into())];
        usual.into_iter().chain(more).chain(words).map(|(key, value)| (key.to_owned(), value)).chain(own).collect()
    }

    /// Saves, as the step of this number.
    pub fn save(&self, set: &Set, number: usize) -> Result<Cost> {
        self.run(set, number, &self.adapter.save)
    }

    /// Restores what the step of this number has saved, if it is known how, and removes it.
    pub fn restore(&self, set: &Set, number: usize) -> Result<Option<Cost>> {
        let Some(restore) = &self.adapter.restore else { return Ok(None) };
        let out = self.folder.make("out")?;
        let mut cost = self.run(set, number, restore)?;
        if cost.outcome == 'T' && !set.is_below(&out)? {
            cost.outcome = 'D';
        }
        fs::remove_dir_all(&out).map_err(BedError::file("remove", &out))?;
        Ok(Some(cost))
    }

    /// A process of this program runs a command, so that what it used can be told apart.
    fn run(&self, set: &Set, number: usize, shell: &str) -> Result<Cost> {
        let program = own()?;
        let report = self.folder.path().join("cost");
        let mut command = Command::new(&program);
        command.envs(self.variables(set, number, self.port()));
        command.args(["paper", "cost"]).arg(&report).args(["--", "sh", "-ec", shell]);
        let before = self.served()?;
        let done = command.output().map_err(BedError::file("run", &program))?;
        let served = self.served()? - before;
        let text = fs::read_to_string(&report).map_err(BedError::file("read", &report))?;
        if !done.status.success() {
            say(&format!("{}: {}", self.adapter.name, String::from_utf8_lossy(&done.stderr)));
        }
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [wall, cpu, memory] = numbers[..] else {
            return Err(BedError::Program { program: self.adapter.name.clone(), problem: text });
        };
        let outcome = if done.status.success() { 'T' } else { 'E' };
        Ok(Cost { outcome, wall, cpu: cpu + served, memory, stored: size(&self.folder.path().join("store"))? })
    }

    /// What the server has used when it has nothing to do, its children included; seconds.
    fn served(&self) -> Result<f64> {
        let Some((server, _)) = &self.server else { return Ok(0.0) };
        let pid = server.pid();
        wait_for(&format!("the server of {} to be idle", self.adapter.name), PATIENCE, || {
            Ok(if children(pid)?.is_empty() { Ok(()) } else { Err("it has children".to_owned()) })
        })?;
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let text = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        let after_name = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        // In user mode and in the kernel, and the same of children that have ended.
        let ticks = after_name.split(' ').skip(11).take(4).filter_map(|word| word.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / TICKS)
    }
}

/// Runs a command and writes what it used: wall and CPU seconds, bytes of its largest process.
pub fn cost(report: &PathBuf, words: &[String]) -> Result<bool> {
    let (program, arguments) = words.split_first().ok_or_else(|| BedError::Usage("no command".to_owned()))?;
    let begun = Instant::now();
    let status = Command::new(program).args(arguments).status().map_err(BedError::file("run", Path::new(program)))?;
    let wall = begun.elapsed().as_secs_f64();
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|source| BedError::System { what: "getrusage", source })?;
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    let cpu = Duration::from_micros(u64::try_from(micros).unwrap_or_default()).as_secs_f64();
    fs::write(report, format!("{wall} {cpu} {}", usage.max_rss() * 1024)).map_err(BedError::file("write", report))?;
    Ok(status.success())
}
