//! The system's words for an error number.

/// What `strerror` says in the locale of the process, without Rust's `(os error 2)`.
pub fn error_text(number: i32) -> String {
    let mut text = std::io::Error::from_raw_os_error(number).to_string();
    if let Some(end) = text.rfind(" (os error ") {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_c_library() {
        assert_eq!(error_text(libc::ENOENT), "No such file or directory");
        assert_eq!(error_text(libc::EIO), "Input/output error");
        assert_eq!(error_text(libc::ELOOP), "Too many levels of symbolic links");
        assert_eq!(error_text(123_456), "Unknown error 123456");
    }
}
