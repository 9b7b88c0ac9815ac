//! The resolver's words for a name without an address.

use std::io;

use crate::error_text;

/// What `gai_strerror` says, as `Name or service not known`, without what Rust puts before it. An
/// error of the system has the system's words; any other keeps its own.
pub fn resolver_text(error: &io::Error) -> String {
    if let Some(number) = error.raw_os_error() {
        return error_text(number);
    }
    let text = error.to_string();
    text.rsplit_once("address information: ").map_or(text.as_str(), |(_, own)| own).to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    #[test]
    fn errors_have_the_words_of_the_c_library() {
        // With a blank in it no server is asked.
        let error = ("no host has this name", 9102).to_socket_addrs().unwrap_err();
        let text = resolver_text(&error);
        let known = ["Name or service not known", "Temporary failure in name resolution"];
        assert!(known.contains(&text.as_str()), "{text}");
        assert_eq!(resolver_text(&io::Error::from_raw_os_error(libc::ENOENT)), "No such file or directory");
        assert_eq!(resolver_text(&io::Error::other("odd")), "odd");
    }
}
