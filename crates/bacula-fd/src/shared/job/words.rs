//! What a job is and does, its codes in the catalog, and the words that status and job codes have
//! for them.

use fd_session::JobStatus;
use fd_session::command::{BackupLevel, VerifyLevel};

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

/// How much a job saves or verifies, the `JobLevel` of the catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobLevel {
    /// The Director has said none, or it is a restore.
    None,
    /// Of a backup or estimate.
    Backup(BackupLevel),
    /// Of a verify.
    Verify(VerifyLevel),
}

impl JobLevel {
    const ALL: [Self; 11] = [
        Self::None,
        Self::Backup(BackupLevel::Full),
        Self::Backup(BackupLevel::Base),
        Self::Backup(BackupLevel::Differential),
        Self::Backup(BackupLevel::Incremental),
        Self::Backup(BackupLevel::Since),
        Self::Verify(VerifyLevel::Catalog),
        Self::Verify(VerifyLevel::Init),
        Self::Verify(VerifyLevel::Volume),
        Self::Verify(VerifyLevel::DiskToCatalog),
        Self::Verify(VerifyLevel::Data),
    ];

    /// The code of the catalog; a blank for none.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::None => b' ',
            Self::Backup(level) => level.letter(),
            Self::Verify(level) => level.letter(),
        }
    }

    /// Of the catalog's code.
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|level| level.code() == code).unwrap_or(Self::None)
    }

    /// As status and job codes show it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::None => " ",
            Self::Backup(BackupLevel::Full) => "Full",
            Self::Backup(BackupLevel::Base) => "Base",
            Self::Backup(BackupLevel::Differential) => "Differential",
            Self::Backup(BackupLevel::Incremental) => "Incremental",
            Self::Backup(BackupLevel::Since) => "Since",
            Self::Verify(VerifyLevel::Catalog) => "Verify Catalog",
            Self::Verify(VerifyLevel::Init) => "Verify Init Catalog",
            Self::Verify(VerifyLevel::Volume) => "Verify Volume to Catalog",
            Self::Verify(VerifyLevel::DiskToCatalog) => "Verify Disk to Catalog",
            Self::Verify(VerifyLevel::Data) => "Verify Data",
        }
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
