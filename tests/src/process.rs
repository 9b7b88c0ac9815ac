//! Child processes that belong to the bed: stopped, killed and waited for through the handle of
//! what started them, and ended by the kernel when the test process dies for any reason.
//!
//! Not here: the programs' configuration (`config`) and their place (`root`).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use ports::is_listening;

use crate::error::{BedError, Result};
use crate::patience::{PATIENCE, wait_for};

/// A running program of the bed. Dropping it kills it and waits for it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    output: PathBuf,
}

impl Process {
    /// Starts `argv` with its output (both streams) appended to `output`. The program gets
    /// `SIGKILL` from the kernel when this process ends.
    pub fn start(name: &str, argv: &[OsString], output: &Path) -> Result<Self> {
        let file = File::options().append(true).create(true).open(output).map_err(BedError::file("open", output))?;
        let again = file.try_clone().map_err(BedError::file("open", output))?;
        let mut command = dying_with_us(argv);
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = spawn(command).map_err(|error| BedError::Program {
            program: name.to_owned(),
            problem: format!("cannot start: {error}"),
        })?;
        Ok(Self { name: name.to_owned(), child, output: output.to_owned() })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet, waited for or not.
    pub fn runs(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        fs::read(&self.output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Its exit status if it has ended.
    pub fn try_exit(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|error| self.problem(format!("wait: {error}")))
    }

    /// Waits for its end.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        wait_for(&what, limit, || Ok(self.try_exit()?.ok_or_else(|| "still running".to_owned())))
    }

    /// Sends a signal. The process is our child and not yet waited for, so its number can't belong
    /// to another one.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.try_exit()?.is_some() {
            return Err(self.problem(format!("has ended already: {}", self.output())));
        }
        let pid = i32::try_from(self.child.id()).map_err(|error| self.problem(error.to_string()))?;
        kill(Pid::from_raw(pid), signal).map_err(BedError::system("kill"))
    }

    /// `SIGTERM`, then waits for the end.
    pub fn stop(mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait_exit(limit)
    }

    /// `SIGKILL`, then waits for the end.
    pub fn kill(mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        let status = self.child.wait().map_err(|error| self.problem(format!("wait: {error}")))?;
        if status.signal() == Some(Signal::SIGKILL as i32) {
            Ok(())
        } else {
            Err(self.problem(format!("should have died of SIGKILL, but: {status}")))
        }
    }

    /// Fails with the program's own words if it has ended.
    pub fn must_run(&mut self) -> Result<()> {
        match self.try_exit()? {
            None => Ok(()),
            Some(status) => Err(self.problem(format!("ended with {status}, saying:\n{}", self.output()))),
        }
    }

    /// Waits until it listens on a port of 127.0.0.1.
    pub fn must_listen(&mut self, port: u16) -> Result<()> {
        wait_for(&format!("{} to listen on port {port}", self.name), PATIENCE, || {
            self.must_run()?;
            Ok(if is_listening(port)? { Ok(()) } else { Err(self.output()) })
        })
    }

    fn problem(&self, problem: String) -> BedError {
        BedError::Program { program: self.name.clone(), problem }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both only fail when the child is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon that left its starter and was inherited by us. Dropping it kills it and waits for it.
#[derive(Debug)]
pub struct Adopted {
    pid: Pid,
    ended: Option<WaitStatus>,
}

impl Adopted {
    /// From now on, processes whose parents end become our children instead of init's.
    pub fn become_heir() -> Result<()> {
        prctl::set_child_subreaper(true).map_err(BedError::system("PR_SET_CHILD_SUBREAPER"))
    }

    /// Takes over a process that has been inherited. Any other is refused, so no foreign process is
    /// ever signalled.
    pub fn take(pid: u32) -> Result<Self> {
        let path = Path::new("/proc").join(pid.to_string()).join("status");
        let status = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        let pid = i32::try_from(pid).map(Pid::from_raw).map_err(|error| BedError::Usage(error.to_string()))?;
        if parent == Some(&std::process::id().to_string()) {
            Ok(Self { pid, ended: None })
        } else {
            Err(BedError::Usage(format!("process {pid} is not ours: its parent is {parent:?}")))
        }
    }

    /// `SIGTERM`, then waits for the end; gives the exit status (or the negative signal number).
    pub fn stop(mut self, limit: Duration) -> Result<i32> {
        kill(self.pid, Signal::SIGTERM).map_err(BedError::system("kill"))?;
        let what = format!("the end of process {}", self.pid);
        wait_for(&what, limit, || {
            self.ended = match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)).map_err(BedError::system("waitpid"))? {
                WaitStatus::StillAlive => None,
                status => Some(status),
            };
            Ok(match self.ended {
                Some(WaitStatus::Exited(_, code)) => Ok(code),
                Some(WaitStatus::Signaled(_, signal, _)) => Ok(-(signal as i32)),
                _ => Err("still running".to_owned()),
            })
        })
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Not waited for yet, so the number is still this child's; both fail only when it has
            // ended.
            let _ = kill(self.pid, Signal::SIGKILL);
            let _ = waitpid(self.pid, None);
        }
    }
}

/// Exit status and output of a program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Both outputs as text, for an error message.
    pub fn text(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

/// Runs a program to its end with the given standard input.
pub fn run(argv: &[OsString], input: &[u8]) -> Result<Finished> {
    let failed = |problem: String| BedError::Program { program: shown(argv), problem };
    let mut command = dying_with_us(argv);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command).map_err(|error| failed(format!("cannot start: {error}")))?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            use std::io::Write as _;
            // A program that ends without reading all of its input is judged by its status, not by
            // this.
            stdin.map(|mut pipe| pipe.write_all(input))
        });
        child.wait_with_output()
    })
    .map_err(|error| failed(format!("wait: {error}")))?;
    Ok(Finished { status: output.status, stdout: output.stdout, stderr: output.stderr })
}

/// Why no daemon can have mounts of its own here, if so: even root lacks the right in a container.
pub fn lacks_mounts() -> Option<&'static str> {
    static CAN: OnceLock<bool> = OnceLock::new();
    let tried = || run(&argv(["unshare", "--mount", "true"]), b"").is_ok_and(|done| done.status.success());
    (!CAN.get_or_init(tried)).then_some("no daemon can have mounts of its own")
}

/// The words before a program for which the host's log is this socket. The folder is for its
/// `/dev`. Needs root.
pub fn with_log(folder: &Path, log: &Path) -> Vec<String> {
    let commands = [
        &format!("cd {} && mkdir dev && touch dev/null dev/urandom", folder.display()),
        "mount --bind /dev/null dev/null && mount --bind /dev/urandom dev/urandom",
        &format!("ln -s {} dev/log && mount --rbind dev /dev && cd / && exec \"$@\"", log.display()),
    ];
    ["unshare", "--mount", "sh", "-c", &commands.join(" && "), "sh"].map(ToOwned::to_owned).to_vec()
}

/// Starts a program that answers on its standard output what it is told on its standard input. It
/// dies with this process.
pub fn converse(argv: &[OsString]) -> Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let failed = |problem: String| BedError::Program { program: shown(argv), problem };
    let mut command = dying_with_us(argv);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = spawn(command).map_err(|error| failed(format!("cannot start: {error}")))?;
    let (Some(says), Some(hears)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("it has no pipes".to_owned()));
    };
    Ok((child, says, BufReader::new(hears)))
}

fn shown(argv: &[OsString]) -> String {
    argv.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// A program that the kernel kills when its parent dies, and that any signal ends: this process may
/// block some for itself, and its children inherit that.
pub(crate) fn dying_with_us(argv: &[OsString]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "env", "--default-signal", "--"]).args(argv);
    command
}

/// An argument vector from anything that looks like strings.
pub fn argv<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(|word| word.as_ref().to_owned()).collect()
}

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

/// Starts a child from one thread that lives as long as the process does. The death signal is bound
/// to the *thread* that forked; a test's own thread may end (or be a short-lived helper) before the
/// bed does.
pub(crate) fn spawn(command: Command) -> std::io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                // The answer has no receiver only if the asking thread died; the child then ends by
                // Drop.
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let gone = || std::io::Error::other("the thread that starts programs has ended");
    let (reply, answer) = mpsc::channel();
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::SigSet;
    use std::path::PathBuf;

    fn output() -> (crate::folder::Folder, PathBuf) {
        let folder = crate::folder::Folder::new("process").unwrap();
        let file = folder.path().join("out");
        (folder, file)
    }

    #[test]
    fn stop_gives_the_status_and_kill_kills() {
        let (_folder, out) = output();
        let shell = argv(["sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"]);
        let process = Process::start("shell", &shell, &out).unwrap();
        wait_for("ready", PATIENCE, || {
            Ok(if process.output().contains("ready") { Ok(()) } else { Err(String::new()) })
        })
        .unwrap();
        assert_eq!(process.stop(PATIENCE).unwrap().code(), Some(7));
        Process::start("sleep", &argv(["sleep", "1000"]), &out).unwrap().kill().unwrap();
    }

    #[test]
    fn a_dropped_process_is_gone_and_waited_for() {
        let (_folder, out) = output();
        let process = Process::start("sleep", &argv(["sleep", "1000"]), &out).unwrap();
        let pid = process.pid();
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let (_folder, out) = output();
        let mut process =
            thread::scope(|scope| scope.spawn(|| Process::start("sleep", &argv(["sleep", "1000"]), &out)).join())
                .unwrap()
                .unwrap();
        process.must_run().unwrap();
        process.signal(Signal::SIGTERM).unwrap();
        assert_eq!(process.wait_exit(PATIENCE).unwrap().signal(), Some(15));
    }

    #[test]
    fn a_program_blocks_no_signal_that_its_starter_blocks() {
        let status = argv(["grep", "^SigBlk:", "/proc/self/status"]);
        let started = thread::spawn(move || {
            SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]).thread_block().unwrap();
            dying_with_us(&status).output().unwrap()
        });
        let told = String::from_utf8(started.join().unwrap().stdout).unwrap();
        assert_eq!(told, format!("SigBlk:\t{}\n", "0".repeat(16)));
    }

    #[test]
    fn run_feeds_input_and_collects_output() {
        let done = run(&argv(["sh", "-c", "cat; echo err >&2; exit 3"]), b"in").unwrap();
        assert_eq!((done.status.code(), &done.stdout[..], &done.stderr[..]), (Some(3), &b"in"[..], &b"err\n"[..]));
    }
}
