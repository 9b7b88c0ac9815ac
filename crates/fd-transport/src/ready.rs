//! Waiting for a socket with a bound.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until the socket shows one of these events, has an error or is closed, but no longer than
/// so. Gives what it shows: nothing if the time was up, or a signal came.
pub(crate) fn wait_for(socket: impl AsFd, events: PollFlags, longest: Duration) -> Result<PollFlags, Errno> {
    let longest = Timespec::try_from(longest).map_err(|_| Errno::INVAL)?;
    let mut asked = [PollFd::new(&socket, events)];
    match poll(&mut asked, Some(&longest)) {
        Ok(_) => Ok(asked.iter().map(PollFd::revents).collect()),
        Err(Errno::INTR) => Ok(PollFlags::empty()),
        Err(errno) => Err(errno),
    }
}
