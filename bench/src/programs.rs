//! Programs of the host.

use std::env;

/// Whether a program is on `PATH`.
pub(crate) fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_there_and_nonsense_is_not() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program"));
    }
}
