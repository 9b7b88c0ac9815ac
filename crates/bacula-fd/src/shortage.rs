//! What a host may lack for a moment, as threads and descriptors: it is asked for again.

use std::io;
use std::thread;
use std::time::Duration;

/// How often it is asked for. A Director gives up after five seconds without an answer.
const TRIES: u32 = 30;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Asks until there is an answer, for at most three seconds and as long as the error is one that
/// `may_pass`.
///
/// # Errors
/// The last one.
pub(crate) fn ask_again<T>(
    mut ask: impl FnMut() -> io::Result<T>,
    may_pass: impl Fn(&io::Error) -> bool,
) -> io::Result<T> {
    for _ in 1..TRIES {
        match ask() {
            Err(error) if may_pass(&error) => thread::sleep(BETWEEN_TRIES),
            answer => return answer,
        }
    }
    ask()
}
