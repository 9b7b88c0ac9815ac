//! Waiting for a condition: polled up to a limit, without a fixed sleep.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::{BedError, Result};

/// The limit for anything that a healthy daemon does at once. It decides no result; it only ends a
/// hopeless wait.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks `probe` until it gives a value. It returns `Err(text)` with what it found instead; after
/// `limit` that text becomes part of the error.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<std::result::Result<T, String>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match probe()? {
            Ok(value) => return Ok(value),
            Err(detail) if start.elapsed() >= limit => {
                return Err(BedError::Timeout { what: what.to_owned(), limit, detail });
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Waits until there is something to read, or a caller to accept; a lost peer is something, too.
pub(crate) fn wait_for_input(what: &str, from: impl AsFd) -> Result<()> {
    let limit = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
    loop {
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], limit) {
            Ok(0) => {
                return Err(BedError::Timeout { what: what.to_owned(), limit: PATIENCE, detail: String::new() });
            }
            Err(Errno::EINTR) => {}
            polled => return polled.map(|_| ()).map_err(BedError::system("poll")),
        }
    }
}

/// Waits until the clock shows a later second than now, so that what was done before is older than
/// what comes; and a second more, because on a busy host a client's clock seems to be behind the
/// Director's, and an Incremental goes back that far (reference 02 §4.2).
pub fn next_second() -> Result<()> {
    let seconds = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let start = seconds();
    wait_for("the next second", PATIENCE, || Ok(if seconds() > start + 1 { Ok(()) } else { Err(String::new()) }))
}
