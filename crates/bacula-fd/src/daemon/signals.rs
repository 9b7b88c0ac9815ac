//! The signals of the daemon (reference 06 §5.5).

use std::io;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals of the daemon, read from a descriptor by the thread that waits for them.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
}

/// Signals that end the daemon; the exit status is their number.
const ENDING: [Signal; 13] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGALRM,
    Signal::SIGIO,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGURG,
    Signal::SIGVTALRM,
    Signal::SIGSTKFLT,
    Signal::SIGPWR,
];
/// Signals that are taken and do nothing. There is no reload.
const IGNORED: [Signal; 6] =
    [Signal::SIGHUP, Signal::SIGCONT, Signal::SIGPROF, Signal::SIGWINCH, Signal::SIGPIPE, Signal::SIGUSR2];

impl Signals {
    /// Blocks the signals in this thread and all that it starts later, so that only [`Self::wait`]
    /// sees them. Programs get them unblocked ([`fd_os::process::command`]).
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn install() -> io::Result<Self> {
        let mask: SigSet = ENDING.into_iter().chain(IGNORED).collect();
        mask.thread_block()?;
        Ok(Self { descriptor: SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for a signal that ends the daemon and gives its number, which is the exit status.
    /// After the first one the caller ends in good order; a second one, while it does so, should
    /// end the process with status 1.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn wait(&self) -> io::Result<i32> {
        loop {
            match self.descriptor.read_signal() {
                Ok(Some(info)) => {
                    let number = i32::try_from(info.ssi_signo).unwrap_or_default();
                    if ENDING.iter().any(|ending| *ending as i32 == number) {
                        return Ok(number);
                    }
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_signal_is_seen_and_others_are_not() {
        // `raise` signals this thread only, so that other tests don't see it.
        let signals = Signals::install().unwrap();
        for signal in [Signal::SIGHUP, Signal::SIGUSR2, Signal::SIGTERM] {
            nix::sys::signal::raise(signal).unwrap();
        }
        assert_eq!(signals.wait().unwrap(), 15);
    }
}
