//! The signals that end a program. It blocks them, so that it can end its bed first: the daemons
//! die, the folder goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

use crate::error::{BedError, Result};

/// Blocks them in this thread and in those that it starts. To be called before anything starts, so
/// that every thread has them blocked.
pub fn block_ends() -> Result<SigSet> {
    let ends = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    ends.thread_block().map_err(BedError::system("sigprocmask"))?;
    Ok(ends)
}

/// Blocks them; what it returns becomes true with the first that comes.
pub fn interrupted() -> Result<Arc<AtomicBool>> {
    let ends = block_ends()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    thread::spawn(move || {
        if ends.wait().is_ok() {
            flag.store(true, Ordering::Relaxed);
        }
    });
    Ok(interrupted)
}
