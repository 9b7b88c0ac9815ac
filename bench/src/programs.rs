//! Programs of the host, and this one.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use bed::{BedError, Result};

static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();

/// This program's file. The first call must come before the process gets a mount namespace of its
/// own: if its root is another one, the kernel tells a path of the old namespace afterwards.
pub(crate) fn own() -> Result<PathBuf> {
    let known = OWN.get_or_init(|| env::current_exe().ok());
    known.clone().ok_or_else(|| BedError::Usage("the bench can't find its own file".to_owned()))
}

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
