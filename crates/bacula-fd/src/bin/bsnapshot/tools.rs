//! Runs the programs of the file systems: found in a fixed list of directories, without a shell,
//! with an environment of their own, bounded in time and output.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::geteuid;

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use crate::trace::Trace;

/// Bytes that a program may print on each of its outputs.
const MOST: u64 = 16 << 20;
/// The daemon waits 600 seconds for us (reference 07 §12.4); all that we ask gets less together.
const LIMIT: Duration = Duration::from_secs(540);
/// Bytes of a program's error text that are passed on.
const SAID: usize = 500;
/// What a busy device is called by the programs.
const BUSY: [&str; 4] = ["busy", "in use", "is mounted", "is used by"];

/// The programs of this host.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    settings: &'a Settings,
    trace: &'a Trace,
    deadline: Instant,
    /// Between two tries of what is busy.
    pub(crate) pause: Duration,
    /// The table of mounts.
    pub(crate) mountinfo: PathBuf,
    /// The kernel's view of devices.
    pub(crate) sysfs: PathBuf,
}

impl<'a> Tools<'a> {
    /// Those of the running system.
    pub(crate) fn new(settings: &'a Settings, trace: &'a Trace) -> Self {
        Self {
            settings,
            trace,
            deadline: Instant::now() + LIMIT,
            pause: Duration::from_secs(1),
            mountinfo: "/proc/self/mountinfo".into(),
            sysfs: "/sys".into(),
        }
    }

    /// Where a program is.
    ///
    /// # Errors
    /// [`Failure::NotInstalled`].
    pub(crate) fn find(&self, program: &str) -> Outcome<PathBuf> {
        let candidates = self.settings.path.iter().map(|directory| directory.join(program));
        let executable = |path: &PathBuf| {
            path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        };
        candidates
            .into_iter()
            .find(executable)
            .ok_or_else(|| Failure::NotInstalled { program: program.to_owned(), package: package_of(program) })
    }

    /// Whether programs are run with the privileges of another user.
    pub(crate) fn uses_sudo(&self) -> bool {
        self.settings.sudo && !geteuid().is_root()
    }

    /// Runs a program that only asks, and returns what it printed.
    ///
    /// # Errors
    /// It is not there, can't be started, fails, prints too much, or takes too long.
    pub(crate) fn run(&self, program: &str, arguments: &[&OsStr]) -> Outcome<Vec<u8>> {
        self.traced(program, arguments, |command| self.ask(program, command))
    }

    /// Runs a program that changes something. Nothing ends it, neither this program nor who ends
    /// that: a logical volume is suspended while its snapshot is made or removed, and would stay
    /// so. It may take any time, and what it says is kept in a file: a pipe may break.
    ///
    /// # Errors
    /// It is not there, can't be started, or fails.
    pub(crate) fn change(&self, program: &str, arguments: &[&OsStr]) -> Outcome<()> {
        self.traced(program, arguments, |command| wait(program, command)).map(drop)
    }

    /// The same, again while what it works on is busy.
    pub(crate) fn change_patiently(&self, program: &str, arguments: &[&OsStr]) -> Outcome<()> {
        for _ in 0..self.settings.retry {
            match self.change(program, arguments) {
                Err(Failure::Said { said, .. }) if BUSY.iter().any(|word| said.contains(word)) => {
                    thread::sleep(self.pause);
                }
                other => return other,
            }
        }
        self.change(program, arguments)
    }

    fn traced(
        &self,
        program: &str,
        arguments: &[&OsStr],
        finish: impl FnOnce(Command) -> Outcome<Vec<u8>>,
    ) -> Outcome<Vec<u8>> {
        let path = self.find(program)?;
        let mut words = vec![path.as_os_str()];
        words.extend(arguments);
        let sudo;
        if self.uses_sudo() {
            sudo = self.find("sudo")?;
            // Never asks for a password: there is no terminal.
            words.splice(0..0, [sudo.as_os_str(), OsStr::new("-n")]);
        }
        self.trace.program(&words);
        let result = self.command(program, &words).and_then(finish);
        match &result {
            Ok(printed) => self.trace.line(2, &[b"it printed: ", &printed[..]].concat()),
            Err(failure) => self.trace.line(1, failure.to_string().as_bytes()),
        }
        result
    }

    fn command(&self, program: &str, words: &[&OsStr]) -> Outcome<Command> {
        let Some((first, arguments)) = words.split_first() else {
            return Err(Failure::Other(format!("{program}: no command")));
        };
        let mut command = Command::new(first);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::join_paths(&self.settings.path).unwrap_or_default())
            .env("LC_ALL", "C")
            // The daemon's descriptors are none of its business.
            .env("LVM_SUPPRESS_FD_WARNINGS", "1")
            .envs(std::env::var_os("TZ").map(|zone| ("TZ", zone)))
            .current_dir("/")
            .stdin(Stdio::null());
        Ok(command)
    }

    fn ask(&self, program: &str, mut command: Command) -> Outcome<Vec<u8>> {
        let path = PathBuf::from(command.get_program());
        let failed = |error| Failure::Program(path.clone(), error);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, outputs) = mpsc::channel();
        let printing = child.stdout.take().map_or(Ok(()), |pipe| collect(pipe, true, sender.clone()));
        let telling = child.stderr.take().map_or(Ok(()), |pipe| collect(pipe, false, sender));
        if let Err(error) = printing.and(telling) {
            // Both fail only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::Other(format!("{program}: no thread for what it prints: {error}")));
        }
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            match outputs.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
                Ok((true, Some(bytes))) => printed = bytes,
                Ok((false, Some(bytes))) => said = bytes,
                end => {
                    // Both fail only if it has ended.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match end {
                        Ok(_) => Failure::Other(format!("{program}: it prints more than {MOST} bytes")),
                        Err(_) => Failure::TimedOut { program: program.to_owned(), seconds: LIMIT.as_secs() },
                    });
                }
            }
        }
        ended(program, child.wait().map_err(failed)?, printed, &said)
    }
}

/// Runs a program to its end, whoever ends this one.
fn wait(program: &str, mut command: Command) -> Outcome<Vec<u8>> {
    let path = PathBuf::from(command.get_program());
    let mut said = Vec::new();
    let mut run = || -> io::Result<ExitStatus> {
        // Before Linux 3.17 there is none, and what the program says is lost.
        let file = memfd_create(c"said", MFdFlags::MFD_CLOEXEC).map(File::from).ok();
        let errors = file.as_ref().map(File::try_clone).transpose()?.map_or_else(Stdio::null, Stdio::from);
        let status = command.stdout(Stdio::null()).stderr(errors).process_group(0).status()?;
        if let Some(mut file) = file {
            file.rewind()?;
            file.take(MOST).read_to_end(&mut said)?;
        }
        Ok(status)
    };
    let status = run().map_err(|error| Failure::Program(path, error))?;
    ended(program, status, Vec::new(), &said)
}

fn ended(program: &str, status: ExitStatus, printed: Vec<u8>, said: &[u8]) -> Outcome<Vec<u8>> {
    if status.success() {
        return Ok(printed);
    }
    Err(Failure::Said { program: program.to_owned(), said: words_of(said, status) })
}

/// Reads an output to its end in a thread; nothing if it is too long.
fn collect(
    pipe: impl Read + Send + 'static,
    printed: bool,
    to: mpsc::Sender<(bool, Option<Vec<u8>>)>,
) -> io::Result<()> {
    let read = move || {
        let mut bytes = Vec::new();
        let read = pipe.take(MOST).read_to_end(&mut bytes).unwrap_or_default();
        // The receiver is gone if the program took too long.
        let _ = to.send((printed, (read as u64 != MOST).then_some(bytes)));
    };
    thread::Builder::new().spawn(read).map(|_ends_with_the_pipe| ())
}

/// What a program said about its failure, in one line.
fn words_of(said: &[u8], status: ExitStatus) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(|line| line.trim().trim_start_matches("ERROR: ")).filter(|line| !line.is_empty());
    let mut words = lines.collect::<Vec<_>>().join("; ");
    if let Some((end, _)) = words.char_indices().find(|(at, _)| *at > SAID) {
        words.truncate(end);
    }
    if words.is_empty() { format!("it ended with {status}") } else { words }
}

/// The Debian package of a program.
fn package_of(program: &str) -> &'static str {
    match program {
        "btrfs" => "btrfs-progs",
        "lvs" | "vgs" | "lvcreate" | "lvremove" => "lvm2",
        "zfs" => "zfsutils-linux",
        "sudo" => "sudo",
        "mkdir" | "rmdir" => "coreutils",
        _ => "mount",
    }
}

/// The words of a command line.
macro_rules! words {
    ($($word:expr),* $(,)?) => { &[$(::std::ffi::OsStr::new($word)),*] };
}
pub(crate) use words;

/// The lines of an output, trimmed, without empty ones.
pub(crate) fn lines(printed: &[u8]) -> impl Iterator<Item = &OsStr> {
    printed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).map(OsStr::from_bytes)
}
