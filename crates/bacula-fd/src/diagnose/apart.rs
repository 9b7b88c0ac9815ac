//! The checks run in a second process of this program. A thread that waits for dead storage can
//! keep its process from ending, even when it is killed, and what waits for the process would hang,
//! too. So the first process ends when it has the report, and leaves the second one behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use fd_os::process::{command, own_program};

/// The name under which this program is the second process.
const ROLE: &str = "bacula-fd-diagnose";
/// Largest report, in bytes.
const MOST: u64 = 16 << 20;
/// Ends the report, in which there are no control characters; the status follows.
const END: u8 = 0;

/// Whether this is the second process.
pub(super) fn is_meant(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| name == OsStr::new(ROLE))
}

/// Sends the report to the first process.
pub(super) fn send(report: &[u8], status: u8) {
    // If the first process is gone, there is nothing to do.
    let _gone = io::stdout().write_all(&[report, &[END, status]].concat()).and_then(|()| io::stdout().flush());
}

/// The report of a second process with these arguments, the first of which is the program's name,
/// and the status with which this process is to end.
///
/// # Errors
/// It can't be started, or has ended without a report.
pub(super) fn report(arguments: &[OsString]) -> io::Result<(Vec<u8>, u8)> {
    let mut second = command(own_program())
        .arg0(ROLE)
        .args(arguments.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It would keep the pipe of a caller open that waits for its end.
        .stderr(Stdio::null())
        .spawn()?;
    // It is not waited for: its end may never come.
    let output = second.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    received(BufReader::new(output.take(MOST)))
}

fn received(mut output: impl io::BufRead) -> io::Result<(Vec<u8>, u8)> {
    let mut report = Vec::new();
    output.read_until(END, &mut report)?;
    if report.pop() != Some(END) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut status = [0];
    output.read_exact(&mut status)?;
    Ok((report, status[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_is_cut_off_is_an_error_and_nothing_after_its_end_is_waited_for() {
        assert_eq!(received(&b"all is well\n\0\x01more"[..]).unwrap(), (b"all is well\n".to_vec(), 1));
        for cut in [&b""[..], b"all is", b"all is well\n\0"] {
            assert_eq!(received(cut).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{cut:?}");
        }
    }
}
