//! The child process that a plugin host is, and the process group that it leads.
//!
//! What a plugin starts belongs to that group, unless it leaves it (`setsid`, `setpgid`), and ends
//! with the plugin host.

use std::io::{self, BufRead as _, PipeReader, Read as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Bytes of a line of output; longer ones come in parts.
const LONGEST_LINE: u64 = 2000;

/// The leader of a process group. It is reaped after its group has ended: until then no other
/// group can have its number.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    /// How it has ended, once it is reaped.
    status: Option<ExitStatus>,
}

impl Leader {
    /// Starts it. A thread takes the lines of its output. With `reads_all` the process has the
    /// daemon's capability to read every file.
    ///
    /// The kernel ends a plugin host together with the thread that has started it, so that thread
    /// stays as long as the process does.
    pub(super) fn start(
        mut command: Command,
        output: PipeReader,
        reads_all: bool,
        take_line: impl Fn(&[u8]) + Send + 'static,
    ) -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;

        let (tells, started) = mpsc::sync_channel(1);
        thread::Builder::new().name("plugin output".to_owned()).spawn(move || {
            let passes_on = if reads_all { fd_os::daemonize::pass_on_read_capability() } else { Ok(()) };
            let child = passes_on.and_then(|()| command.process_group(0).spawn());
            // It has copies of the child's ends of pipes.
            drop(command);
            let pid = child.as_ref().ok().map(pid_of);
            if tells.send(child).is_ok()
                && let Some(pid) = pid
            {
                read_lines(output, &take_line);
                wait_for_end(pid);
            }
        })?;
        let child = started.recv().map_err(|_| io::ErrorKind::BrokenPipe)??;
        Ok(Self { child, status: None })
    }

    /// How it has ended, if it has. Its group has ended then, too.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        if self.status.is_none() {
            match waitid(Id::Pid(pid_of(&self.child)), flags) {
                Ok(WaitStatus::StillAlive) | Err(_) => {}
                Ok(_) => {
                    self.kill();
                    self.status = self.child.try_wait().ok().flatten();
                }
            }
        }
        self.status
    }

    /// Ends it and its group at once.
    pub(super) fn kill(&mut self) {
        if self.status.is_none() {
            // A process that is gone needs no signal.
            let _gone = killpg(pid_of(&self.child), Signal::SIGKILL);
        }
    }
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn read_lines(output: PipeReader, take_line: impl Fn(&[u8])) {
    let mut output = io::BufReader::new(output);
    let mut line = Vec::new();
    while output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        take_line(line.trim_ascii_end());
        line.clear();
    }
}

/// Waits until a child has ended, and leaves it to be reaped.
fn wait_for_end(pid: Pid) {
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
}
