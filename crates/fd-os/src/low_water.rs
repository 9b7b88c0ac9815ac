//! How much a socket must have received before a waiting thread is woken.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From now on a receiver of this socket sleeps until `bytes` of data are there, its timeout has
/// passed or the peer has ended; 1 is what a new socket has.
///
/// # Errors
/// What the kernel says.
pub fn set_low_water(socket: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    const SIZE: libc::socklen_t = 4;
    const { assert!(size_of::<libc::c_int>() == 4) };
    let value = std::ptr::from_ref(&bytes).cast();
    // SAFETY: `value` points to an integer of `SIZE` bytes, which lives until the call is over.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, SIZE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
