//! What can go wrong in the bed, each with its place.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;

/// Result of anything the bed does.
pub type Result<T> = std::result::Result<T, BedError>;

/// An error of the bed itself, or a daemon that did not do what the bed waited for.
#[derive(thiserror::Error)]
pub enum BedError {
    /// A file or directory could not be worked on.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, e.g. `"read"`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call without a file failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: Errno,
    },
    /// A program could not be started, or ended with a status that it must not have.
    #[error("{program}: {problem}")]
    Program {
        /// The program's name.
        program: String,
        /// What happened, with the program's output when there is some.
        problem: String,
    },
    /// Something that was waited for did not come.
    #[error("waited {limit:?} in vain for {what}: {detail}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was seen instead.
        detail: String,
    },
    /// No usable Bacula 15.0.3.
    #[error("no Bacula 15.0.3 in {}: {problem}", root.display())]
    Root {
        /// The unpacked root.
        root: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A volume that does not hold what it must (reference 04 Appendix A).
    #[error("volume {} at byte {offset}: {problem}", volume.display())]
    Volume {
        /// The volume's file.
        volume: PathBuf,
        /// Where in it.
        offset: u64,
        /// Expected and got.
        problem: String,
    },
    /// An answer of the catalog that makes no sense.
    #[error("catalog, asked {query:?}: {problem}")]
    Catalog {
        /// The SQL text.
        query: String,
        /// Expected and got.
        problem: String,
    },
    /// The console's answer lacks what it must hold.
    #[error("console, asked {command:?}: {problem}; it answered:\n{answer}")]
    Console {
        /// The commands sent.
        command: String,
        /// Expected and got.
        problem: String,
        /// The whole answer.
        answer: String,
    },
    /// A scripted conversation went another way.
    #[error("peer {who}: {problem}")]
    Peer {
        /// The daemon talked to.
        who: String,
        /// Expected and got.
        problem: String,
    },
    /// No port is to be had.
    #[error(transparent)]
    Port(#[from] ports::PortError),
    /// The caller asked for something that does not exist.
    #[error("{0}")]
    Usage(String),
}

impl BedError {
    /// An I/O error with its file.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    /// The same for a call that answers with an [`Errno`].
    pub fn file_errno(action: &'static str, path: &Path) -> impl FnOnce(Errno) -> Self {
        let path = path.to_owned();
        move |errno| Self::File { action, path, source: errno.into() }
    }

    /// A failed system call that names no file.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |source| Self::System { what, source }
    }
}

/// The same text as for a human: this is what the test harness prints when a test ends with an
/// error.
impl fmt::Debug for BedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
