//! The threads of the watched process, from one stop to the next.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};

use nix::libc::{ENOSYS, PTRACE_EVENT_STOP, c_long, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::actor::Actor;
use crate::calls::Call;
use crate::rules::{Action, Rules};

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    /// Between the stop before a call and the one behind it.
    inside: bool,
    /// What the call answers, if that is decided.
    answer: Option<i32>,
    /// A word of its memory that has been changed for the call, and what it was.
    lent: Option<(u64, c_long)>,
}

/// The watched process.
#[derive(Debug)]
pub(crate) struct Tracer {
    process: Pid,
    threads: HashMap<Pid, Thread>,
    actor: Actor,
    log: Option<File>,
}

impl Tracer {
    /// Attaches to all threads.
    pub(crate) fn attach(pid: i32, actor: Actor, log: Option<File>) -> io::Result<Self> {
        let process = Pid::from_raw(pid);
        let mut threads = HashMap::new();
        // Until no more are found: they may start others meanwhile.
        loop {
            let before = threads.len();
            for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
                let name = entry?.file_name();
                let Some(thread) = name.to_str().and_then(|name| name.parse().ok()).map(Pid::from_raw) else {
                    continue;
                };
                if threads.contains_key(&thread) {
                    continue;
                }
                match ptrace::seize(thread, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE) {
                    // It has ended, or was attached as the child of another one.
                    Err(nix::Error::ESRCH | nix::Error::EPERM) if thread != process => {}
                    result => {
                        result?;
                        threads.insert(thread, Thread::default());
                        ptrace::interrupt(thread)?;
                    }
                }
            }
            if threads.len() == before {
                break;
            }
        }
        Ok(Self { process, threads, actor, log })
    }

    /// Watches until standard input or the process ends. The kernel detaches what is left when this
    /// program ends.
    pub(crate) fn run(&mut self, rules: &mut Rules) -> io::Result<()> {
        let end = end_of_input()?;
        let end = Pid::from_raw(i32::try_from(end.id()).map_err(io::Error::other)?);
        loop {
            match waitpid(None, Some(WaitPidFlag::__WALL))? {
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) if pid == end => return Ok(()),
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..) => {
                    self.threads.remove(&pid);
                    if pid == self.process {
                        return Ok(());
                    }
                }
                WaitStatus::PtraceSyscall(pid) => {
                    self.at_call(pid, rules)?;
                    resume(pid, None)?;
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    let thread = self.threads.entry(pid).or_default();
                    if event == PTRACE_EVENT_STOP {
                        *thread = Thread::default();
                    }
                    resume(pid, None)?;
                }
                WaitStatus::Stopped(pid, signal) => resume(pid, Some(signal))?,
                _ => {}
            }
        }
    }

    /// Before or behind a call.
    fn at_call(&mut self, pid: Pid, rules: &mut Rules) -> io::Result<()> {
        let Ok(mut registers) = ptrace::getregs(pid) else { return Ok(()) };
        let thread = self.threads.entry(pid).or_default();
        thread.inside = !thread.inside;
        if !thread.inside {
            if let Some((address, word)) = thread.lent.take() {
                ptrace::write(pid, pointer(address), word)?;
            }
            if let Some(errno) = thread.answer.take() {
                registers.rax = (-i64::from(errno)).cast_unsigned();
                set(pid, registers)?;
            }
            return Ok(());
        }
        if registers.rax.cast_signed() != -i64::from(ENOSYS) {
            return Err(io::Error::other(format!("thread {pid} is not before a call: {}", registers.rax)));
        }
        match Call::read(&registers).filter(|call| rules.want(call.name)) {
            Some(call) => self.judge(pid, &call, registers, rules),
            None => Ok(()),
        }
    }

    /// Has a call move at most so many bytes. Whether it would have moved more.
    fn shorten(&mut self, pid: Pid, call: &Call, mut registers: user_regs_struct, most: u64) -> io::Result<bool> {
        let is_less = if call.name.contains('v') {
            // The length of the first part of a list, which becomes its only one.
            let address = registers.rsi + 8;
            let length = ptrace::read(pid, pointer(address))?;
            let less = length.min(most.cast_signed());
            ptrace::write(pid, pointer(address), less)?;
            self.threads.entry(pid).or_default().lent = Some((address, length));
            registers.rdx = 1;
            less < length
        } else {
            let is_less = most < registers.rdx;
            registers.rdx = registers.rdx.min(most);
            is_less
        };
        set(pid, registers)?;
        Ok(is_less)
    }

    fn judge(&mut self, pid: Pid, call: &Call, mut registers: user_regs_struct, rules: &mut Rules) -> io::Result<()> {
        let objects = call.objects(pid);
        if let Some(log) = &mut self.log {
            let shown = objects.iter().map(|object| String::from_utf8_lossy(object)).collect::<Vec<_>>().join(" ");
            log.write_all(format!("{pid} {} {shown}\n", call.name).as_bytes())?;
        }
        let Some(due) = rules.count(call.name, &objects) else { return Ok(()) };
        match &due.action {
            Action::Errno(errno) => {
                self.threads.entry(pid).or_default().answer = Some(*errno);
                // A descriptor is closed even if that fails.
                if call.name != "close" {
                    registers.orig_rax = u64::MAX;
                    set(pid, registers)?;
                }
                rules.note(&due, b"failed".to_vec());
            }
            Action::Short(count) => {
                let is_less = self.shorten(pid, call, registers, *count)?;
                rules.note(&due, if is_less { b"shortened".to_vec() } else { b"enough".to_vec() });
            }
            Action::Kill => {
                kill(self.process, Signal::SIGKILL)?;
                rules.note(&due, b"killed".to_vec());
            }
            Action::Act(what) => {
                let outcome = self.actor.act(what, &due.below, &due.path)?;
                rules.note(&due, outcome);
            }
        }
        Ok(())
    }
}

/// An address in the watched process.
fn pointer(address: u64) -> ptrace::AddressType {
    std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or_default())
}

/// A thread may have been killed since its stop.
fn resume(pid: Pid, signal: Option<Signal>) -> io::Result<()> {
    match ptrace::syscall(pid, signal) {
        Err(nix::Error::ESRCH) => Ok(()),
        result => Ok(result?),
    }
}

fn set(pid: Pid, registers: user_regs_struct) -> io::Result<()> {
    match ptrace::setregs(pid, registers) {
        Err(nix::Error::ESRCH) => Ok(()),
        result => Ok(result?),
    }
}

/// A child that ends with our standard input, so that one wait is enough for everything.
fn end_of_input() -> io::Result<Child> {
    Command::new("cat").stdin(Stdio::inherit()).stdout(Stdio::null()).spawn()
}
