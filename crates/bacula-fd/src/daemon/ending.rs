//! What a signal that ends the daemon does, from the first moment of the start on.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use fd_os::lock::Mutex;

use crate::daemon::pid_file::PidFile;
use crate::daemon::signals::{Asked, Signals};

/// How far the daemon is.
#[derive(Debug)]
enum Phase {
    /// It starts: it has no connection and no job, so that a signal ends it at once. Loading a
    /// plugin or binding an address may take long.
    Starts(Option<PidFile>),
    /// It serves: a signal ends it in good order.
    Serves,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Ending(Mutex<Phase>);

impl Ending {
    /// Of a daemon that starts.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Phase::Starts(None))))
    }

    /// The pid file, to be removed if the start ends early.
    pub(crate) fn keep(&self, pid_file: PidFile) {
        *self.0.lock() = Phase::Starts(Some(pid_file));
    }

    /// The start is over. The pid file, if there is one.
    pub(crate) fn serves(&self) -> Option<PidFile> {
        match std::mem::replace(&mut *self.0.lock(), Phase::Serves) {
            Phase::Starts(pid_file) => pid_file,
            Phase::Serves => None,
        }
    }

    /// Starts the thread that waits for signals. What it sends is what those after the start ask
    /// for. The second one that ends the daemon ends the process at once, with status 1 (reference
    /// 06 §5.5).
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn hear(self: &Arc<Self>, signals: Signals) -> io::Result<Receiver<Asked>> {
        let (tells, heard) = channel();
        let ending = Arc::clone(self);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut is_second = false;
            loop {
                match signals.wait() {
                    Ok(Asked::End(number)) => {
                        ending.end_a_start(number);
                        if std::mem::replace(&mut is_second, true) || tells.send(Asked::End(number)).is_err() {
                            exit(1);
                        }
                    }
                    // A daemon that ends reads nothing again.
                    Ok(Asked::Reload) => drop(tells.send(Asked::Reload)),
                    Err(error) => {
                        tracing::error!(%error, "signals can't be read");
                        return;
                    }
                }
            }
        })?;
        Ok(heard)
    }

    /// Ends a daemon that starts.
    fn end_a_start(&self, number: i32) {
        let mut phase = self.0.lock();
        let Phase::Starts(pid_file) = &mut *phase else { return };
        if let Some(Err(error)) = pid_file.take().map(PidFile::remove) {
            tracing::warn!(%error, "the pid file can't be removed");
        }
        exit(number);
    }
}

/// Ends the process, and with it the plugin hosts.
#[expect(clippy::exit, reason = "nothing is begun that would have to be ended, or an orderly end may hang")]
fn exit(status: i32) {
    std::process::exit(status);
}
