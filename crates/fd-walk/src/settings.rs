//! What the walk is told, whom it asks, and what it reports at the end.

use std::borrow::Cow;
use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_messages::MessageType;
use fd_records::{FileType, Stat};

use crate::limits::DirectoryLimits;
use crate::names::record_names;

/// What the walk is for. It decides which entries are entries, and the words of the messages (reference 03 §8, §9).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Purpose {
    /// A backup: sockets are skipped.
    #[default]
    Backup,
    /// The console's `estimate`: nothing but counts and a listing.
    Estimate {
        /// Stop at about this many entries (reference 03 §9); 0 for all.
        limit: u64,
    },
    /// A Verify job: every entry is announced, sockets are entries.
    Verify,
}

/// How one walk is to be done.
#[derive(Clone, Default, Debug)]
pub struct WalkSettings {
    /// What the walk is for.
    pub purpose: Purpose,
    /// Leave out what did not change since [`Self::since`].
    pub incremental: bool,
    /// Seconds since 1970. What changed in this very second counts as changed.
    pub since: i64,
    /// Where the Director may look at all.
    pub limits: DirectoryLimits,
}

/// Whom the walk asks while it runs. All methods are called on the walk's thread.
pub trait WalkHost {
    /// Whether the job was cancelled. Asked before each entry, so it has to be cheap.
    fn is_cancelled(&self) -> bool;

    /// One more entry was looked at (`num_files_examined`; an unchanged or unreadable directory counts as in the
    /// reference). Called before the entry's own events.
    fn examined(&self, path: &[u8]) {
        let _ = path;
    }

    /// Whether anybody wants messages of this kind. Texts of others are not even built, unless they are errors.
    fn wants(&self, kind: MessageType) -> bool {
        let _ = kind;
        true
    }

    /// Compares an entry with the accurate list. Called once for every entry that is no error, before it is accepted
    /// or rejected for good, as in the reference (03 §5.2 step 6).
    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let _ = candidate;
        Comparison::ByTime
    }
}

/// An entry that may have changed.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Path as walked.
    pub path: &'a [u8],
    /// Attributes.
    pub stat: &'a Stat,
    /// Options in force.
    pub options: &'a Arc<EffectiveOptions>,
    /// Whether the FileSet accepts the entry. The reference marks rejected entries as seen, too.
    pub accepted: bool,
}

impl<'a> Candidate<'a> {
    /// The name under which the accurate list knows the entry: stripped, a directory's with its slash.
    pub fn key(&self) -> Cow<'a, [u8]> {
        let directory = self.stat.mode_type() == Stat::MODE_DIRECTORY;
        let file_type = if directory { FileType::Directory } else { FileType::Regular };
        record_names(self.path, file_type, b"", self.options.strip_path).name
    }
}

/// What the accurate list says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// There is no list: the times decide.
    ByTime,
    /// The entry is as the list says.
    Unchanged,
    /// The entry is new or different, or only its data can tell.
    Changed {
        /// Handed through to [`crate::Entry::token`].
        token: Option<u64>,
    },
}

/// What the walk found, beside its events.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WalkSummary {
    /// Entries given to the sink.
    pub entries: u64,
    /// Sizes of the regular files among them, further names of hard links left out.
    pub bytes: u64,
    /// Directories outside of the allowed ones ([`crate::texts::skipped_directories`] is the warning for a backup
    /// that got through).
    pub skipped_directories: u64,
    /// How the walk ended.
    pub end: WalkEnd,
}

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WalkEnd {
    /// Everything was walked, or an estimate reached its limit.
    #[default]
    Complete,
    /// The host said that the job was cancelled.
    Cancelled,
    /// The sink said stop.
    Stopped,
}
