//! The C library's text for an error number, as the messages of the reference show it.

use nix::errno::Errno;

/// The text, for example `No such file or directory`. `nix` has its own wording for some, so this asks the C library.
pub fn strerror(errno: Errno) -> String {
    let mut text = std::io::Error::from_raw_os_error(errno as i32).to_string();
    // The standard library adds the number.
    if let Some(end) = text.rfind(" (os error ") {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_c_library() {
        assert_eq!(strerror(Errno::ENOENT), "No such file or directory");
        assert_eq!(strerror(Errno::ERANGE), "Numerical result out of range");
        assert_eq!(strerror(Errno::E2BIG), "Argument list too long");
        assert_eq!(strerror(Errno::ENODATA), "No data available");
    }
}
