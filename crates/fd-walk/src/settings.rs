//! The settings of a walk, the questions that it asks its host, and its result.

use std::borrow::Cow;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use fd_fileset::{EffectiveOptions, FileSet, Flags, Include};
use fd_messages::MessageType;
use fd_records::{FileType, Stat};

use crate::limits::DirectoryLimits;
use crate::names::record_names;
use crate::snapshots::Snapshots;

/// The purpose of the walk. It decides what counts as an entry, and the messages (reference 03 §8,
/// §9).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Purpose {
    /// A backup: sockets are skipped.
    #[default]
    Backup,
    /// The console's `estimate`: counts and a listing only.
    Estimate {
        /// Stop at about this many entries (reference 03 §9); 0 for all.
        limit: u64,
    },
    /// A Verify job: each entry is announced, sockets are entries.
    Verify,
}

/// How many names are looked up at a time. What the walk finds does not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LookupDepth {
    /// One where the kernel answers at once, more while lookups wait.
    #[default]
    Adaptive,
    /// Always so many; 1: no thread is started for it.
    Fixed(NonZeroU16),
}

/// Whether unchanged files are found by an inode scan, where that is possible. What the walk finds
/// does not depend on it, but for what changes meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum InodeScan {
    /// Never.
    #[default]
    Off,
    /// If it pays.
    Auto,
    /// From the beginning on.
    Always,
}

/// How one walk is done.
#[derive(Clone, Default, Debug)]
pub struct WalkSettings {
    /// What the walk is for.
    pub purpose: Purpose,
    /// Leave out what did not change since [`Self::since`].
    pub incremental: bool,
    /// Seconds since 1970. What changed in this very second counts as changed.
    pub since: i64,
    /// Which directories the Director may read.
    pub limits: DirectoryLimits,
    /// How many names are looked up at a time.
    pub lookup_depth: LookupDepth,
    /// Whether unchanged files are found by an inode scan.
    pub inode_scan: InodeScan,
    /// Which names are read in snapshots.
    pub snapshots: Arc<Snapshots>,
}

impl WalkSettings {
    /// Whether the times say that a file did not change (reference 03 §6).
    pub fn is_old(&self, stat: &Stat, options: &EffectiveOptions) -> bool {
        self.incremental && times_are_old(stat.mtime, stat.ctime, self.since, options.has(Flags::MTIME_ONLY))
    }

    /// Whether unchanged files can be found by a scan: only if both times decide, or an accurate
    /// list by what a scan finds, which it compares then. What changes after the scan has a new
    /// change time, without which the next job would not save it, either; and the no-dump flag is
    /// asked of each file.
    pub(crate) fn scan_for(&self, fileset: &FileSet, host: &dyn WalkHost) -> (InodeScan, Option<Compared>) {
        const DECIDE_OTHERWISE: [Flags; 2] = [Flags::MTIME_ONLY, Flags::HONOR_NO_DUMP];
        // These are the sum of all of its Options.
        let has = |include: &Include| DECIDE_OTHERWISE.iter().any(|flag| include.top_level().has(*flag));
        let compared = host.compares_by_list(fileset);
        let decide = host.compares_by_time() || compared.is_some();
        let decide = decide && self.incremental && !fileset.includes().iter().any(has);
        (if decide { self.inode_scan } else { InodeScan::Off }, compared)
    }
}

/// The rule of [`WalkSettings::is_old`].
pub(crate) const fn times_are_old(mtime: i64, ctime: i64, since: i64, mtime_only: bool) -> bool {
    mtime < since && (mtime_only || ctime < since)
}

/// Answers the questions of a walk. All methods are called on the walk's thread.
pub trait WalkHost {
    /// Whether the job was canceled. Called before each entry, so it must be cheap.
    fn is_canceled(&self) -> bool;

    /// One more entry was examined (`num_files_examined`; an unchanged or unreadable directory
    /// counts as in the stock daemon). Called before the entry's own events.
    fn examined(&self, path: &[u8]) {
        let _ = path;
    }

    /// Whether messages of this type are delivered. Texts of other types are not even built, except
    /// errors.
    fn wants(&self, kind: MessageType) -> bool {
        let _ = kind;
        true
    }

    /// Compares an entry with the accurate list. Called for each entry whose attributes were read,
    /// or found by an inode scan, before it is accepted or rejected, as in the stock daemon
    /// (reference 03 §5.2 step 6); again for what a scan has left out and is looked up after all.
    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        let _ = candidate;
        Comparison::ByTime
    }

    /// This path, or what lies below it, could not be examined, though it may be there. Not called
    /// for a path that is too long for the kernel: no job has saved that. `strip_path`: what the
    /// Include strips off the names of entries, unless their Options don't.
    fn not_examined(&self, path: &[u8], strip_path: u32) {
        let _ = (path, strip_path);
    }

    /// Whether [`Self::compare`] is [`Comparison::ByTime`] for all entries, so that it need not be
    /// asked about those that are old.
    fn compares_by_time(&self) -> bool {
        false
    }

    /// Which attributes an accurate list compares of the entries of this `FileSet`, beside their
    /// times, if an entry that has those of [`Self::listed`] is unchanged; `None` if there is no
    /// list, or something else decides as well.
    fn compares_by_list(&self, fileset: &FileSet) -> Option<Compared> {
        let _ = fileset;
        None
    }

    /// What the accurate list has about an entry that was not looked up. Of its attributes, only
    /// the inode number is known. `None` if it has to be looked up.
    fn listed(&self, candidate: &Candidate<'_>) -> Option<Stat> {
        let _ = candidate;
        None
    }

    /// An inode scan has ended: how many inodes there are and how long it took, or why there is
    /// none.
    fn scanned(&self, device: u64, found: Result<(u64, Duration), String>) {
        let _ = (device, found);
    }

    /// Whether a plugin has excluded this path since the FileSet was complete.
    fn excludes(&self, path: &[u8]) -> bool {
        let _ = path;
        false
    }

    /// The Include with this number is next.
    fn begins_include(&self, include: usize) {
        let _ = include;
    }

    /// Takes the next plugin command that a plugin has added to the present Include since the
    /// FileSet was complete.
    fn added_command(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Attributes that an accurate list compares, beside both times.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Compared {
    /// `st_ino`.
    pub inode: bool,
    /// `st_size`.
    pub size: bool,
    /// `st_mode`, `st_nlink`, `st_uid`, `st_gid`.
    pub class: bool,
}

/// An entry that may have changed.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Path as walked.
    pub path: &'a [u8],
    /// Attributes.
    pub stat: &'a Stat,
    /// Options that apply to it.
    pub options: &'a Arc<EffectiveOptions>,
    /// Whether the FileSet accepts the entry. The stock daemon marks rejected entries as seen, too.
    pub accepted: bool,
}

impl<'a> Candidate<'a> {
    /// The entry's name in the accurate list: stripped, a directory's with its slash.
    pub fn key(&self) -> Cow<'a, [u8]> {
        let directory = self.stat.mode_type() == Stat::MODE_DIRECTORY;
        let file_type = if directory { FileType::Directory } else { FileType::Regular };
        record_names(self.path, file_type, b"", self.options.strip_path).name
    }
}

/// The result of a comparison with the accurate list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// There is no list: the times decide.
    ByTime,
    /// The entry is as in the list.
    Unchanged,
    /// The entry is new or different, or only its data decides.
    Changed {
        /// Passed on in [`crate::Entry::token`].
        token: Option<u64>,
    },
}

/// The result of a walk, beside its events.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WalkSummary {
    /// Entries passed to the sink.
    pub entries: u64,
    /// Sizes of the regular files among them, without later names of hard links.
    pub bytes: u64,
    /// Directories outside of the allowed ones. A complete backup warns about them with
    /// [`crate::texts::skipped_directories`].
    pub skipped_directories: u64,
    /// Entries that were left out without a lookup.
    pub not_looked_up: u64,
    /// How the walk ended.
    pub end: WalkEnd,
}

impl WalkSummary {
    /// Of two walks, of which the other came later.
    #[must_use]
    pub const fn and(self, later: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(later.entries),
            bytes: self.bytes.saturating_add(later.bytes),
            skipped_directories: self.skipped_directories.saturating_add(later.skipped_directories),
            not_looked_up: self.not_looked_up.saturating_add(later.not_looked_up),
            end: later.end,
        }
    }
}

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WalkEnd {
    /// Everything was walked, or an estimate reached its limit.
    #[default]
    Complete,
    /// The job was canceled.
    Canceled,
    /// The sink ended it.
    Stopped,
}
