//! Why an action can't be done, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

use fd_os::io_error_text;

/// The reason; its text becomes `error="…"`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A program that the action needs is not installed.
    #[error("{program}: command not found: install {package}")]
    NotInstalled {
        /// Its name.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program that is there could not be started, or its output not be read.
    #[error("{}: {}", .0.display(), io_error_text(.1))]
    Program(PathBuf, io::Error),
    /// A program ended with an error.
    #[error("{program}: {said}")]
    Said {
        /// Its name.
        program: String,
        /// What it wrote to standard error, or how it ended.
        said: String,
    },
    /// A program took too long and was ended.
    #[error("{program}: no answer within {seconds} seconds")]
    TimedOut {
        /// Its name.
        program: String,
        /// The limit.
        seconds: u64,
    },
    /// A system call on a file.
    #[error("{doing} {}: {}", path.display(), io_error_text(error))]
    File {
        /// "can't open" or so.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path that another user could lead elsewhere, or that is not what it has to be.
    #[error("{}: refused: {why}", path.display())]
    Refused {
        /// Which.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// A variable of the daemon is missing or makes no sense.
    #[error("{variable}={value:?}: {why}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What it is.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A line of the configuration.
    #[error("{} line {line}: {why}", path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// `disabled = yes`.
    #[error("snapshots are disabled in bsnapshot.conf")]
    Disabled,
    /// `skip_volume` names it.
    #[error("{0} is in skip_volume of the configuration")]
    Skipped(String),
    /// No backend for the type or the file system.
    #[error("Unable to detect snapshot backend")]
    NoBackend,
    /// A file system that is on no logical volume.
    #[error("Not detected as LVM")]
    NotLvm,
    /// What another user can cause at any time. The job goes on without the snapshot.
    #[error("{0}")]
    Prevented(Box<Self>),
    /// What else can be wrong.
    #[error("{0}")]
    Other(String),
}

/// What an action ends with.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// Whether a directory is not what it has to be. Want of space is not meant.
    pub(crate) fn is_of_a_directory(&self) -> bool {
        use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound, ReadOnlyFilesystem};
        match self {
            Self::Refused { .. } => true,
            Self::File { error, .. } => {
                matches!(error.kind(), NotFound | NotADirectory | AlreadyExists | ReadOnlyFilesystem)
            }
            Self::Said { said, .. } => said.contains("Read-only file system"),
            _ => false,
        }
    }

    /// The same with the names of directories that a program knew by their descriptors.
    pub(crate) fn naming(self, places: &[(&Path, &Path)]) -> Self {
        match self {
            Self::Said { program, said } => {
                let said = places
                    .iter()
                    .fold(said, |said, (sure, path)| said.replace(&*sure.to_string_lossy(), &path.to_string_lossy()));
                Self::Said { program, said }
            }
            other => other,
        }
    }
}
