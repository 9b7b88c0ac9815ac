//! What the Director has said of a job so far.

use std::sync::Arc;

use fd_backup::AccurateList;
use fd_fileset::FileSet;
use fd_session::command::{LevelFlags, RunScript};

use crate::job::job_host::OpenFileSet;

/// What the commands have said of the job.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) level: LevelSoFar,
    pub(super) fileset: FileSetSoFar,
    /// The FileSet asks for snapshots.
    pub(super) snapshot: bool,
    /// How long the job's snapshots stay, in seconds, as the Director wrote it.
    pub(super) snapshot_retention: Option<Vec<u8>>,
    pub(super) accurate: Option<Arc<AccurateList>>,
    pub(super) scripts: Vec<RunScript>,
    /// Options for the plugins of a Verify job.
    pub(super) plugin_options: Vec<Vec<u8>>,
    /// The key for the Storage Daemon.
    pub(super) key: Vec<u8>,
    /// There was a key before that one.
    pub(super) multi_storage: bool,
}

/// What `level` commands have said.
#[derive(Clone, Debug, Default)]
pub(super) struct LevelSoFar {
    pub(super) flags: LevelFlags,
    /// Set by `since_utime`: seconds since 1970 by our clock.
    pub(super) since: Option<i64>,
    pub(super) previous_job: Vec<u8>,
}

/// The FileSet of the job.
#[derive(Default)]
pub(super) enum FileSetSoFar {
    #[default]
    NotCome,
    /// Plugins may change it.
    Open(Box<OpenFileSet>),
    Complete(Arc<FileSet>),
}

impl FileSetSoFar {
    /// Whether it has come.
    pub(super) const fn has_come(&self) -> bool {
        !matches!(self, Self::NotCome)
    }

    /// The FileSet as long as plugins may change it.
    pub(super) const fn open(&self) -> Option<&OpenFileSet> {
        match self {
            Self::Open(open) => Some(open),
            Self::NotCome | Self::Complete(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) const fn open_mut(&mut self) -> Option<&mut OpenFileSet> {
        match self {
            Self::Open(open) => Some(open),
            Self::NotCome | Self::Complete(_) => None,
        }
    }

    /// It is complete, if it has come.
    pub(super) fn complete(self) -> Arc<FileSet> {
        match self {
            Self::NotCome => Arc::default(),
            Self::Open(open) => Arc::new(open.draft.complete()),
            Self::Complete(fileset) => fileset,
        }
    }
}
