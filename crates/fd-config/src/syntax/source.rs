//! The parser's questions to the outside world: files, programs, names of hosts and services.
//!
//! Only the questions; the answers come from the caller, so that the parser can be tested and
//! fuzzed without a file system.

use core::net::IpAddr;

/// Bytes of one file, or of what a program prints. What is longer is refused; a source may leave
/// out what is behind one byte more.
pub const MAX_FILE: usize = 64 << 20;

/// The family that a host name is looked up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressFamily {
    /// Only IPv4 addresses.
    V4,
    /// Only IPv6 addresses.
    V6,
}

/// The outside world as the configuration sees it (reference 06 §1.6, §2.3, §2.9, §4.3).
///
/// The file is parsed in two passes. Both get the files and outputs that the first one has asked
/// for; hosts and services may be asked for twice.
pub trait Source {
    /// All bytes of the file `name`, relative to the current directory. A directory reads as an
    /// empty file.
    ///
    /// # Errors
    /// The operating system's text (`strerror`) when the file can't be opened.
    fn read_file(&mut self, name: &[u8]) -> Result<Vec<u8>, String>;

    /// What the program prints on its standard output. `argv` is split already and never empty; no
    /// shell. Its standard error goes nowhere. A program that can't be run, or fails, gives what it
    /// printed, or nothing.
    fn run_program(&mut self, argv: &[Vec<u8>]) -> Vec<u8>;

    /// As [`Self::run_program`], but `None` unless the program ends with status 0: the shell of a
    /// directory's expansion.
    fn run_shell(&mut self, argv: &[Vec<u8>]) -> Option<Vec<u8>>;

    /// The value of the environment variable `SHELL`.
    fn shell(&mut self) -> Option<Vec<u8>>;

    /// The first address of `host` in `family`. Literal addresses never come here.
    ///
    /// # Errors
    /// The resolver's text, e.g. `Name or service not known`.
    fn resolve_host(&mut self, host: &[u8], family: AddressFamily) -> Result<IpAddr, String>;

    /// The port of a TCP service (`getservbyname(name, "tcp")`). Numbers never come here.
    fn service_port(&mut self, name: &[u8]) -> Option<u16>;
}
