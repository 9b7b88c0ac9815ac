//! What a job is and does, its codes in the catalog, and the words that status and job codes have
//! for them.

use fd_session::JobStatus;

/// What a job is doing, the `JobType` of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobKind {
    /// Nothing yet.
    System,
    /// A backup.
    Backup,
    /// A restore.
    Restore,
    /// A verify.
    Verify,
}

impl JobKind {
    /// The code of the catalog.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::System => b'I',
            Self::Backup => b'B',
            Self::Restore => b'R',
            Self::Verify => b'V',
        }
    }

    /// As status and job codes show it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::System => "System or Console",
            Self::Backup => "Backup",
            Self::Restore => "Restore",
            Self::Verify => "Verify",
        }
    }

    /// Of the catalog's code; what is none of the others is a system's.
    pub(crate) const fn from_code(code: u8) -> Self {
        match code {
            b'B' => Self::Backup,
            b'R' => Self::Restore,
            b'V' => Self::Verify,
            _ => Self::System,
        }
    }
}

/// A level's code as status and job codes show it; a blank for none.
pub(crate) const fn level_words(code: u8) -> &'static str {
    match code {
        b'F' => "Full",
        b'B' => "Base",
        b'D' => "Differential",
        b'I' => "Incremental",
        b'S' => "Since",
        b'C' => "Verify Catalog",
        b'V' => "Verify Init Catalog",
        b'O' => "Verify Volume to Catalog",
        b'd' => "Verify Disk to Catalog",
        b'A' => "Verify Data",
        _ => " ",
    }
}

/// What a job does right now, for `.status activity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// It is the Director's turn.
    Waiting,
    /// The Storage Daemon is being called, or expected to call.
    Connecting,
    /// A program of the operator runs.
    Script,
    /// The Director sends the accurate list.
    AccurateList,
    /// Files are walked, saved, restored or compared.
    Files,
}

impl Phase {
    pub(super) const ALL: [Self; 5] = [Self::Waiting, Self::Connecting, Self::Script, Self::AccurateList, Self::Files];

    /// As `.status activity` shows it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for the Director",
            Self::Connecting => "connecting to the Storage daemon",
            Self::Script => "running a script",
            Self::AccurateList => "receiving the accurate list",
            Self::Files => "files",
        }
    }
}

/// A job's state, level and kind in words, as job codes show them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    /// `%e`.
    pub status: &'static str,
    /// `%l`.
    pub level: &'static str,
    /// `%t`.
    pub kind: &'static str,
}

/// What a status is called in commands (reference 06 §7.8); of a job without errors, `Terminated`
/// is `OK`.
pub(crate) const fn status_words(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Terminated | JobStatus::Warnings => "OK -- with warnings",
        JobStatus::Error => "Error",
        JobStatus::Fatal => "Fatal Error",
        JobStatus::Canceled => "Canceled",
        JobStatus::Differences => "Differences",
        JobStatus::Created => "Created",
        JobStatus::Incomplete => "Incomplete",
        JobStatus::Blocked | JobStatus::Running => "Unknown term code",
    }
}
