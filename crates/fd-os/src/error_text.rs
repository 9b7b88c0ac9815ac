//! The system's words for an error number: the one place that makes them, so that all messages have
//! the C library's.

use std::io;

/// The number of a program that is not in *Allowed Script Directories*; the stock daemon's own
/// (reference 07 §15.3).
pub const NOT_IN_ALLOWED_PATHS: i32 = 67_108_865;
/// The number of a command line with a character that is not allowed there.
pub const NOT_ALLOWED_CHARACTER: i32 = 67_108_866;

/// What the daemon says of an error number: the system's words, and its own for the two numbers
/// that plugins hand over.
pub fn job_error_text(number: i32) -> String {
    match number {
        NOT_IN_ALLOWED_PATHS => "Not in allowed paths".to_owned(),
        NOT_ALLOWED_CHARACTER => "Contains not allowed character".to_owned(),
        number => error_text(number),
    }
}

/// What `strerror` says in the locale of the process, without Rust's `(os error 2)`. Other tables,
/// such as that of `nix`, have words of their own for some numbers.
pub fn error_text(number: i32) -> String {
    let mut text = io::Error::from_raw_os_error(number).to_string();
    if let Some(end) = text.rfind(" (os error ") {
        text.truncate(end);
    }
    text
}

/// The same for an error of the standard library; one that is not the system's keeps its own words.
pub fn io_error_text(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), error_text)
}

/// The words for a signal, as the stock daemon has them.
pub fn signal_words(signal: i32) -> &'static str {
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
    fn errors_have_the_words_of_the_c_library() {
        assert_eq!(error_text(libc::ENOENT), "No such file or directory");
        assert_eq!(error_text(libc::EIO), "Input/output error");
        assert_eq!(error_text(libc::ELOOP), "Too many levels of symbolic links");
        // These have other words in the tables of crates.
        assert_eq!(error_text(libc::EAGAIN), "Resource temporarily unavailable");
        assert_eq!(error_text(libc::ERANGE), "Numerical result out of range");
        assert_eq!(error_text(libc::E2BIG), "Argument list too long");
        assert_eq!(error_text(libc::ENODATA), "No data available");
        assert_eq!(error_text(0), "Success");
        assert_eq!(error_text(123_456), "Unknown error 123456");
        assert_eq!(error_text(NOT_IN_ALLOWED_PATHS), "Unknown error 67108865");
        assert_eq!(job_error_text(NOT_IN_ALLOWED_PATHS), "Not in allowed paths");
        assert_eq!(job_error_text(libc::ENOENT), "No such file or directory");
    }

    #[test]
    fn an_error_without_a_number_keeps_its_text() {
        assert_eq!(io_error_text(&io::Error::from_raw_os_error(libc::EAGAIN)), "Resource temporarily unavailable");
        assert_eq!(io_error_text(&io::Error::other("odd")), "odd");
    }
}
