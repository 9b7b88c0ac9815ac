//! What is told of programs that ran or could not run, in the stock daemon's words and numbers (reference 02 §10.5).

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// The C library's words for an error of the system.
pub(crate) fn system_words(error: &io::Error) -> String {
    fd_os::io_error_text(error)
}

/// The exit status by which the stock daemon's child reports that a program could not be executed.
pub(crate) fn exec_status(error: &io::Error) -> i32 {
    // EACCES, ENOEXEC, EFAULT, EINTR, E2BIG, ENAMETOOLONG, ENOMEM, ETXTBSY, ENOENT: 200 and the place in this list.
    const NUMBERS: [i32; 9] = [13, 8, 14, 4, 7, 36, 12, 26, 2];
    let place = error.raw_os_error().and_then(|number| NUMBERS.iter().position(|known| *known == number));
    place.and_then(|place| i32::try_from(place).ok()).map_or(255, |place| 200 + place)
}

/// How a program ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("Child exited with code {code}"),
        (None, Some(signal)) => format!("Child died from signal {signal}: {}", signal_words(signal)),
        (None, None) => "Unknown Error".to_owned(),
    }
}

fn signal_words(signal: i32) -> &'static str {
    const WORDS: [&str; 30] = [
        "Hangup",
        "Interrupt",
        "Quit",
        "Illegal instruction",
        "Trace/Breakpoint trap",
        "IOT trap",
        "BUS error",
        "Floating-point exception",
        "Kill, unblockable",
        "User-defined signal 1",
        "Segmentation violation",
        "User-defined signal 2",
        "Broken pipe",
        "Alarm clock",
        "Termination",
        "Stack fault",
        "Child status has changed",
        "Continue",
        "Stop, unblockable",
        "Keyboard stop",
        "Background read from tty",
        "Background write to tty",
        "Urgent condition on socket",
        "CPU limit exceeded",
        "File size limit exceeded",
        "Virtual alarm clock",
        "Profiling alarm clock",
        "Window size change",
        "I/O now possible",
        "Power failure restart",
    ];
    let place = usize::try_from(signal).ok().and_then(|number| number.checked_sub(1));
    place.and_then(|place| WORDS.get(place)).copied().unwrap_or("Invalid signal number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!((exec_status(&error), system_words(&error).as_str()), (208, "No such file or directory"));
        assert_eq!(exec_status(&io::Error::from_raw_os_error(13)), 200);
        assert_eq!(exec_status(&io::Error::from_raw_os_error(5)), 255);
    }

    #[test]
    fn how_programs_end() {
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), "Child exited with code 3");
        assert_eq!(describe(ExitStatus::from_raw(15)), "Child died from signal 15: Termination");
    }
}
