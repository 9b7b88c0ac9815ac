//! The C library's text for an error number, as the messages of the reference show it.

use nix::errno::Errno;

/// The text, for example `No such file or directory` ([`fd_os::error_text`]).
pub fn strerror(errno: Errno) -> String {
    fd_os::error_text(errno as i32)
}
