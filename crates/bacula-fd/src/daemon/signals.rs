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
/// Signals that are taken and do nothing. With SIGXFSZ out of the way, a file that grows beyond the
/// limit of the process is the error of a write, and no end of the daemon.
const IGNORED: [Signal; 6] =
    [Signal::SIGCONT, Signal::SIGPROF, Signal::SIGWINCH, Signal::SIGPIPE, Signal::SIGUSR2, Signal::SIGXFSZ];

/// Certificates are to be read again. The stock daemon ignores it.
const RELOAD: Signal = Signal::SIGHUP;

/// What a signal asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// That the daemon ends, with this exit status, which is the number of the signal. After the
    /// first one the caller ends in good order; a second one, while it does so, should end the
    /// process with status 1.
    End(i32),
    /// That certificates are read again.
    Reload,
}

impl Signals {
    /// Blocks the signals in this thread and all that it starts later, so that only [`Self::wait`]
    /// sees them. Programs get them unblocked ([`fd_os::process::command`]).
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn install() -> io::Result<Self> {
        let mask: SigSet = ENDING.into_iter().chain(IGNORED).chain([RELOAD]).collect();
        mask.thread_block()?;
        Ok(Self { descriptor: SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for a signal that asks for something.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn wait(&self) -> io::Result<Asked> {
        loop {
            match self.descriptor.read_signal() {
                Ok(Some(info)) => {
                    let number = i32::try_from(info.ssi_signo).unwrap_or_default();
                    if ENDING.iter().any(|ending| *ending as i32 == number) {
                        return Ok(Asked::End(number));
                    }
                    if number == RELOAD as i32 {
                        return Ok(Asked::Reload);
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

    /// What becomes of the daemon at a signal whose default is the end of the process.
    #[derive(PartialEq, Debug)]
    enum Effect {
        /// It ends in good order.
        Ends,
        /// It goes on.
        GoesOn,
        /// It ends at once: the kernel says so, or the process can't be trusted any more.
        Dies,
        /// None by default.
        None,
    }

    #[test]
    fn each_signal_that_would_end_a_process_has_an_effect_that_is_meant() {
        use Signal as S;
        for signal in S::iterator() {
            let meant = match signal {
                S::SIGTERM | S::SIGINT | S::SIGQUIT | S::SIGUSR1 | S::SIGALRM | S::SIGIO
                | S::SIGVTALRM | S::SIGSTKFLT | S::SIGPWR
                // The default of these four is to stop the process, or nothing. As in the stock
                // daemon they end it.
                | S::SIGTSTP | S::SIGTTIN | S::SIGTTOU | S::SIGURG => {
                    Effect::Ends
                }
                S::SIGHUP | S::SIGPIPE | S::SIGPROF | S::SIGUSR2 | S::SIGXFSZ | S::SIGCONT | S::SIGWINCH => {
                    Effect::GoesOn
                }
                // A fault in its memory or its code; an order that can't be refused; a limit that
                // was set for it to end.
                S::SIGILL | S::SIGTRAP | S::SIGABRT | S::SIGBUS | S::SIGFPE | S::SIGSEGV | S::SIGSYS | S::SIGKILL
                | S::SIGXCPU => Effect::Dies,
                S::SIGCHLD | S::SIGSTOP => Effect::None,
                _ => panic!("{signal} is new"),
            };
            let is_passed_over = IGNORED.contains(&signal) || signal == RELOAD;
            let is = match (ENDING.contains(&signal), is_passed_over) {
                (true, false) => Effect::Ends,
                (false, true) => Effect::GoesOn,
                (false, false) if matches!(signal, S::SIGCHLD | S::SIGSTOP) => Effect::None,
                (false, false) => Effect::Dies,
                (true, true) => panic!("{signal} is in both lists"),
            };
            assert_eq!(is, meant, "{signal}");
        }
    }

    #[test]
    fn a_file_beyond_the_limit_is_the_error_of_a_write() {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        use std::io::Write as _;
        // The limit is that of the process: it is higher than what other tests write.
        const LIMIT: u64 = 1 << 40;
        let _signals = Signals::install().unwrap();
        let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, LIMIT, hard).unwrap();
        let file = tempfile::tempfile().unwrap();
        let written = std::os::unix::fs::FileExt::write_at(&file, b"x", LIMIT);
        setrlimit(Resource::RLIMIT_FSIZE, hard, hard).unwrap();
        let error = written.and_then(|_| (&file).flush()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EFBIG as i32));
    }

    #[test]
    fn what_signals_ask_for_is_seen_and_others_are_not() {
        // `raise` signals this thread only, so that other tests don't see it.
        let signals = Signals::install().unwrap();
        for signal in [Signal::SIGUSR2, Signal::SIGHUP, Signal::SIGTERM] {
            nix::sys::signal::raise(signal).unwrap();
        }
        let asked: Vec<_> = [signals.wait(), signals.wait()].into_iter().map(Result::unwrap).collect();
        assert_eq!(asked, [Asked::Reload, Asked::End(15)]);
    }
}
