//! What the checks ask of the host. No question changes anything, and each has its end: what is
//! asked of storage that does not answer fails with [`io::ErrorKind::TimedOut`].

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fd_config::{KeyProblem, PluginHostSettings, Tls};
use zeroize::Zeroizing;

use crate::diagnose::rights::Rights;

/// What is at a path, behind links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct About {
    pub(super) is_directory: bool,
    /// The bits of its permissions.
    pub(super) mode: u32,
    pub(super) uid: u32,
}

/// Whose rights they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    /// Those of the running daemon, which has this number.
    Daemon(i32),
    /// Those that the unit gives the daemon; none runs.
    Unit,
    /// Those of this process; no daemon is seen.
    This,
}

/// What the daemon may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) whose: Whose,
    pub(super) rights: Rights,
}

impl Process {
    /// The number of the running daemon.
    pub(super) const fn daemon(&self) -> Option<i32> {
        match self.whose {
            Whose::Daemon(pid) => Some(pid),
            Whose::Unit | Whose::This => None,
        }
    }
}

/// How a port behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// What is looked for is there: a File Daemon, or its metrics.
    Pong,
    /// Something else is there, or a daemon that is too busy.
    Silence,
    /// Nothing accepts connections; the system's words.
    Nothing(String),
}

/// The host that the checks ask.
pub(super) trait World {
    /// Seconds since 1970.
    fn now(&self) -> i64;

    /// What is at this path.
    fn about(&self, path: &Path) -> io::Result<About>;

    /// The content of a small file, which may be a key.
    fn read(&self, path: &Path) -> io::Result<Zeroizing<Vec<u8>>>;

    /// The names of a directory's regular files. Links are none.
    fn files(&self, directory: &Path) -> io::Result<Vec<Vec<u8>>>;

    /// Whether this process could make files in a directory, as the running daemon sees it.
    fn may_write(&self, directory: &Path) -> io::Result<()>;

    /// Free bytes of a directory's file system.
    fn free_space(&self, directory: &Path) -> io::Result<u64>;

    /// Whether these files make a TLS context.
    fn tls_context(&self, tls: &Tls) -> Result<(), KeyProblem>;

    /// Whether the file holds a certificate that PKI can use.
    fn certificate(&self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the file holds a private key that PKI can use.
    fn private_key(&self, file: &Path) -> Result<(), KeyProblem>;

    /// Whether the user and group of a plugin's settings are known, or the reason.
    fn plugin_user(&self, settings: &PluginHostSettings) -> Result<(), String>;

    /// Whether the file looks as if it held a private key.
    fn mentions_private_key(&self, file: &Path) -> bool;

    /// The running daemon, the unit that starts it, or this process.
    fn process(&self) -> Process;

    /// What the kernel can do about the page cache of this file.
    fn is_told_of_any_page(&self, file: &Path) -> bool;

    /// Whether the clock is synchronized.
    fn clock(&self) -> io::Result<bool>;

    /// How the daemon's own port behaves.
    fn ping(&self, address: SocketAddr) -> Answer;

    /// How the address of the metrics behaves.
    fn metrics(&self, address: SocketAddr) -> Answer;

    /// How long it takes to connect to each of these places, or why that fails; side by side.
    fn reach(&self, places: &[(String, u16)]) -> Vec<Result<Duration, String>>;
}
