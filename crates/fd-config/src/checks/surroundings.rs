//! What the start-up checks ask of the outside world.

use std::path::Path;

use crate::resources::Tls;

/// The state of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryState {
    /// It is there.
    Directory,
    /// There is something else.
    NotADirectory,
    /// There is nothing.
    Missing,
}

/// A key or certificate that can't be used: the library's messages, one line each, for example
/// `Unable to open certificate file: ERR=error:80000002:system library::No such file or directory`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyProblem {
    /// May be empty.
    pub lines: Vec<String>,
    /// What to do about it, for the explanation beside the stock daemon's words. May be empty.
    pub hint: String,
}

/// The questions of the checks to the outside world.
pub trait Surroundings {
    /// Whether a TLS context can be built of these files. Not called any more after the first
    /// problem.
    ///
    /// # Errors
    /// What is wrong with a file.
    fn tls_context(&mut self, tls: &Tls) -> Result<(), KeyProblem>;

    /// Whether the file holds a certificate with a public key that we can use.
    ///
    /// # Errors
    /// What is wrong with it.
    fn certificate(&mut self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the file holds an unencrypted private key.
    ///
    /// # Errors
    /// What is wrong with it.
    fn private_key(&mut self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the file looks as if it holds a private key, good or bad.
    fn mentions_private_key(&mut self, file: &Path) -> bool;

    /// What is at this path, following symbolic links.
    fn directory(&mut self, path: &Path) -> DirectoryState;

    /// The Director's commands that this word of `DisableCommand` disables; none if it is unknown
    /// (reference 06 §3.7).
    fn disabled_by(&mut self, item: &[u8]) -> Vec<&'static str>;
}

/// Surroundings in which every check succeeds: for tests, and for programs that only check the
/// text. What a word of `DisableCommand` disables is the caller's to say.
#[derive(Clone, Copy, Debug)]
pub struct Unchecked(pub fn(&[u8]) -> Vec<&'static str>);

impl Surroundings for Unchecked {
    fn tls_context(&mut self, _tls: &Tls) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn certificate(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn private_key(&mut self, _file: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn mentions_private_key(&mut self, _file: &Path) -> bool {
        false
    }

    fn directory(&mut self, _path: &Path) -> DirectoryState {
        DirectoryState::Directory
    }

    fn disabled_by(&mut self, item: &[u8]) -> Vec<&'static str> {
        (self.0)(item)
    }
}
