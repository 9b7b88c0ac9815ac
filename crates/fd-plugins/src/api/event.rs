//! Events: what happens in a job (reference 07 §3.7).

use super::packets::SavedObject;

/// An event. Two kinds have an answer and are functions of their own:
/// [`Instance::handle_file`](crate::Instance::handle_file) (24) and
/// [`Instance::features`](crate::Instance::features) (26).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A job has begun: `JobId=… Job=…`.
    JobStart(&'a [u8]),
    /// A job ends.
    JobEnd,
    /// A backup begins.
    StartBackupJob,
    /// A backup has sent its last file.
    EndBackupJob,
    /// A restore begins.
    StartRestoreJob,
    /// A restore has got its last record.
    EndRestoreJob,
    /// A Verify job begins.
    StartVerifyJob,
    /// A Verify job has compared its last file.
    EndVerifyJob,
    /// A command of the FileSet is to be saved. The answer is heeded.
    BackupCommand(&'a [u8]),
    /// A file that this command has saved is to be restored. The answer is heeded.
    RestoreCommand(&'a [u8]),
    /// A command of the FileSet is to be estimated. The answer is heeded.
    EstimateCommand(&'a [u8]),
    /// The job's level, a letter.
    Level(u8),
    /// Since when files count as changed, seconds since 1970.
    Since(i64),
    /// The job was canceled. It comes from another thread, by [`CancelEvent`](crate::CancelEvent).
    Cancel,
    /// An object that a backup has saved; `None` after the last one.
    RestoreObject(Option<&'a SavedObject>),
    /// The FileSet is complete.
    EndFileSet,
    /// The FileSet has this command.
    PluginCommand(&'a [u8]),
    /// A line about components.
    ComponentInfo(&'a [u8]),
    /// Options, from the configuration or from the Director.
    PluginOptions(&'a [u8]),
}

impl Event<'_> {
    /// Its number.
    pub const fn number(&self) -> u32 {
        match self {
            Self::JobStart(_) => 1,
            Self::JobEnd => 2,
            Self::StartBackupJob => 3,
            Self::EndBackupJob => 4,
            Self::StartRestoreJob => 5,
            Self::EndRestoreJob => 6,
            Self::StartVerifyJob => 7,
            Self::EndVerifyJob => 8,
            Self::BackupCommand(_) => 9,
            Self::RestoreCommand(_) => 10,
            Self::EstimateCommand(_) => 11,
            Self::Level(_) => 12,
            Self::Since(_) => 13,
            Self::Cancel => 14,
            Self::RestoreObject(_) => 18,
            Self::EndFileSet => 19,
            Self::PluginCommand(_) => 20,
            Self::ComponentInfo(_) => 25,
            Self::PluginOptions(_) => 28,
        }
    }

    /// Whether it is delivered in a canceled job, too (reference 07 §4).
    pub(crate) const fn outlives_cancel(&self) -> bool {
        matches!(self, Self::EndBackupJob | Self::EndRestoreJob | Self::EndVerifyJob | Self::Cancel)
    }
}
