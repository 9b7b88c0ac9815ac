//! Programs that run for a job, and reads from them or from a FIFO, which end when they are not
//! wanted any more.
//!
//! Every wait checks its [`IsWanted`] ten times a second.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, killpg, signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::threads::{self, GLANCE};

/// [`GLANCE`] in milliseconds, for the kernel.
const GLANCE_MS: u16 = 100;
/// How long a program may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The first pause between two looks at a program that is about to end; it doubles up to
/// [`GLANCE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Returns whether a wait is to go on.
pub type IsWanted<'w> = &'w dyn Fn() -> bool;

/// The error of a read that is not wanted any more.
fn unwanted() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionAborted)
}

/// Whether a read ended because it was not wanted any more. The kernel's own error of this kind,
/// as of a FUSE server that has died, has a number.
pub fn is_unwanted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted && error.raw_os_error().is_none()
}

/// A pipe or file whose reads end when they are not wanted any more.
pub struct Watched<'w, R> {
    inner: R,
    wanted: IsWanted<'w>,
    looked: Instant,
    /// Until when the first byte, or the end, must have come.
    first_byte: Option<Instant>,
}

impl<'w, R: Read + AsFd> Watched<'w, R> {
    /// Reads `inner`, as long as `wanted`.
    pub fn new(inner: R, wanted: IsWanted<'w>) -> Self {
        Self { inner, wanted, looked: Instant::now(), first_byte: None }
    }

    /// With a bound for the time until there is something to read, or a writer has closed it.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.first_byte = Instant::now().checked_add(patience);
        self
    }

    fn look(&mut self) -> io::Result<()> {
        self.looked = Instant::now();
        if !(self.wanted)() {
            return Err(unwanted());
        }
        match self.first_byte {
            Some(limit) if self.looked >= limit => Err(io::Error::from_raw_os_error(Errno::ETIMEDOUT as i32)),
            _ => Ok(()),
        }
    }

    /// Waits one step. Whether there is something to read, the end included.
    fn is_ready(&self) -> io::Result<bool> {
        let mut asked = [PollFd::new(self.inner.as_fd(), PollFlags::POLLIN)];
        match poll(&mut asked, PollTimeout::from(GLANCE_MS)) {
            Ok(found) => Ok(found > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl<R: Read + AsFd> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.looked.elapsed() >= GLANCE {
                self.look()?;
            }
            if self.is_ready()? {
                match self.inner.read(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => {
                        self.first_byte = None;
                        return read;
                    }
                }
            }
        }
    }
}

/// What a manager of services tells a daemon by its environment. A service that a script starts
/// would tell the manager about itself.
const OF_MANAGER: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// Has this process learn how the programs that it starts end. A parent may have left it with
/// SIGCHLD ignored: the kernel then keeps no child's status. To be called before one is started.
pub fn expect_children() {
    // SAFETY: no handler is installed, and the one before is not used.
    let _known_signal = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
}

/// So many files this process wants to have open, if it may.
const MOST_OPEN: rlim_t = 65_536;
/// How many it might have open until it asked for more.
static OPEN_BEFORE: OnceLock<rlim_t> = OnceLock::new();

/// Has this process open more files at a time, as far as its hard limit permits. The programs that
/// [`command`] starts get the limit from before: many wait with `select(2)`, which knows no
/// descriptor above 1,023.
///
/// # Errors
/// The system's.
pub fn raise_open_files() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(MOST_OPEN).max(soft), hard)?;
    let _before = OPEN_BEFORE.get_or_init(|| soft);
    Ok(())
}

fn limit_open_files_as_before(before: Option<rlim_t>) -> io::Result<()> {
    let Some(before) = before else { return Ok(()) };
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, before.min(hard), hard)?)
}

/// A program that a daemon starts. The daemon's threads block signals, and a child would inherit
/// that: it could not be asked to end, would not see that the reader of its pipe is gone, and would
/// hand it on to every service that it starts. For the limit of open files see
/// [`raise_open_files`].
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in OF_MANAGER {
        let _same_command = command.env_remove(name);
    }
    let open_before = OPEN_BEFORE.get().copied();
    let begin = move || {
        SigSet::empty().thread_set_mask()?;
        limit_open_files_as_before(open_before)
    };
    // SAFETY: between fork and exec nothing is done but to set the mask of signals and a limit, by
    // system calls, without memory or locks.
    unsafe { command.pre_exec(begin) };
    command
}

/// The program that runs. Where there is no `/proc`, it is the path by which it was started.
pub fn own_program() -> PathBuf {
    let of_kernel = PathBuf::from("/proc/self/exe");
    let is_path = |name: &PathBuf| name.is_absolute();
    if of_kernel.exists() {
        of_kernel
    } else {
        std::env::args_os().next().map(PathBuf::from).filter(is_path).unwrap_or(of_kernel)
    }
}

/// Standard input of a program that gets none. On a host without `/dev/null` it is a pipe whose
/// writer is gone: a program that can't be started for this would seem not to be there itself.
pub fn no_input() -> Stdio {
    let null = File::open("/dev/null").map(Stdio::from);
    null.or_else(|_| io::pipe().map(|(end, _)| Stdio::from(end))).unwrap_or_else(|_| Stdio::inherit())
}

/// Output of a program that is not wanted: the daemon's own, on a host without `/dev/null`.
pub fn no_output() -> Stdio {
    File::options().write(true).open("/dev/null").map_or_else(|_| Stdio::inherit(), Stdio::from)
}

/// What happens to processes that a program has left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// They end with it: a list is of no use without its reader.
    Ends,
    /// They stay if the program itself has ended: it may have started a service.
    Stays,
}

/// A running program, in a process group of its own. Dropped, it is ended and reaped.
#[derive(Debug)]
pub struct Program {
    child: Option<Child>,
    group: Group,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(command: &mut Command, group: Group) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self { child: Some(child), group })
    }

    /// Makes a command and starts it, where either may ask storage that does not answer. If it is
    /// not wanted any more by then, the thread that starts it is left behind. What that has only
    /// made later is not started, and a program whose start hung is ended when it has been started.
    ///
    /// # Errors
    /// Those of `make`, and the system's; see [`is_unwanted`].
    pub fn start_while<E: From<io::Error> + Send + 'static>(
        make: impl FnOnce() -> Result<Command, E> + Send + 'static,
        group: Group,
        wanted: IsWanted<'_>,
    ) -> Result<Self, E> {
        let is_too_late = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_too_late);
        // At its end, our copies of its ends of pipes are gone: with them there is no end to read.
        let start = move || {
            let mut command = make()?;
            if seen.load(Ordering::Relaxed) { Err(unwanted().into()) } else { Ok(Self::start(&mut command, group)?) }
        };
        // Asked first after a moment: what starts at once is started.
        let mut asked = false;
        let is_waited_for = || {
            let is_wanted = !std::mem::replace(&mut asked, true) || wanted();
            is_too_late.store(!is_wanted, Ordering::Relaxed);
            is_wanted
        };
        let started = threads::start("starts", start)?.end(is_waited_for).ok_or_else(unwanted)?;
        started.unwrap_or_else(|_panic| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
    }

    /// Its standard output, once, if it is piped.
    pub fn take_output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.as_mut().and_then(|child| child.stdout.take())
    }

    /// Its standard input, once, if it is piped.
    pub fn take_input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.as_mut().and_then(|child| child.stdin.take())
    }

    /// Whether it has ended. It stays to be reaped.
    pub fn has_ended(&self) -> bool {
        self.child.as_ref().is_none_or(|child| has_ended(Pid::from_raw(child.id().cast_signed())))
    }

    /// Waits for its end; one that is not wanted any more is ended.
    ///
    /// # Errors
    /// The system's; also when it can't be ended, because the kernel holds it.
    pub fn wait(mut self, wanted: IsWanted<'_>) -> io::Result<ExitStatus> {
        let Some(mut child) = self.child.take() else { return Err(unwanted()) };
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if !wanted() {
                return end(child, self.group).ok_or_else(unwanted);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(GLANCE);
        }
    }

    /// Ends it now; its status, if the kernel releases it.
    pub fn end(mut self) -> Option<ExitStatus> {
        self.child.take().and_then(|child| end(child, self.group))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let _status = end(child, self.group);
        }
    }
}

/// Asks a program and its group to end, and then makes them. It is reaped last, because its number
/// is its group's.
fn end(mut child: Child, group: Group) -> Option<ExitStatus> {
    let pid = Pid::from_raw(child.id().cast_signed());
    if group == Group::Ends || !has_ended(pid) {
        // A process that is gone needs no signal.
        let _gone = killpg(pid, Signal::SIGTERM);
        let _ended = ends_within(pid, GRACE);
        let _gone = killpg(pid, Signal::SIGKILL);
    }
    if ends_within(pid, GRACE) {
        return child.wait().ok();
    }
    tracing::warn!(pid = pid.as_raw(), "a program can't be ended, the kernel holds it");
    let reap = move || child.wait();
    if let Err(error) = thread::Builder::new().name("reaps".to_owned()).spawn(reap) {
        tracing::warn!(%error, "no thread to wait for it");
    }
    None
}

fn ends_within(pid: Pid, limit: Duration) -> bool {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    while !has_ended(pid) {
        if start.elapsed() >= limit {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(GLANCE);
    }
    true
}

/// Whether a child has ended. It stays to be reaped.
fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    !matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::StillAlive))
}

#[cfg(test)]
mod tests;
