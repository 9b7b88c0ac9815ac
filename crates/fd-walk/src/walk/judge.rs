//! Decides about entries: by the Director's limits, the FileSet, the accurate list or the times,
//! and the file system.

use std::cell::Cell;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use fd_fileset::{EffectiveOptions, FileSet, Flags, Include, Verdict};
use fd_records::Stat;

use super::place::{Place, marker_path};
use crate::ahead::Attend;
use crate::fs_types;
use crate::limits::{OutOfLimits, RealTop};
use crate::settings::{Candidate, Comparison, WalkHost, WalkSettings};
use crate::snapshots::ReadAt;

/// See the module.
pub(super) struct Judge<'w> {
    pub(super) fileset: &'w FileSet,
    pub(super) settings: &'w WalkSettings,
    pub(super) host: &'w dyn WalkHost,
    /// For the limits: the real path of the FileSet's name that is being walked.
    pub(super) real_top: RealTop,
    /// The options of the last entry that the FileSet has judged; of none since the Include began.
    pub(super) last_options: Cell<Option<&'w Arc<EffectiveOptions>>>,
}

/// The decision of the FileSet and the limits.
pub(super) struct Judgement<'f> {
    pub(super) accepted: bool,
    pub(super) options: &'f Arc<EffectiveOptions>,
    /// It is a directory that the Director may not read, which is reported.
    pub(super) out_of_limits: bool,
}

/// Whether an entry has changed.
#[derive(Clone, Copy)]
pub(super) enum Changed {
    No,
    Yes { token: Option<u64> },
}

/// Why a directory is not entered.
#[derive(Clone, Copy)]
pub(super) enum Barrier {
    NoRecursion,
    OtherFileSystem,
    FileSystemType,
}

impl<'w> Judge<'w> {
    /// Applies the limits, then the FileSet. The FileSet never rejects its own names.
    pub(super) fn judge(&self, place: &Place<'w, '_>, is_directory: bool) -> Judgement<'w> {
        let include = place.include;
        let verdict = if place.is_top() {
            Verdict { accepted: true, options: include.top_level() }
        } else {
            let excluded = |path: &[u8]| self.host.excludes(path);
            let verdict = self.fileset.judge_also(include, place.path, is_directory, excluded);
            self.last_options.set(Some(verdict.options));
            verdict
        };
        let limits = self.settings.limits.check(place.path, &self.real_top);
        let is_hidden = !place.is_top() && self.settings.snapshots.hides(place.path, place.read_at);
        Judgement {
            accepted: verdict.accepted && limits.is_ok() && !is_hidden,
            options: verdict.options,
            out_of_limits: is_directory && limits == Err(OutOfLimits::NotAllowed),
        }
    }

    /// Whether the Director's limits accept this path.
    pub(super) fn is_in_limits(&self, path: &[u8]) -> bool {
        self.settings.limits.check(path, &self.real_top).is_ok()
    }

    /// Whether it may be looked up ahead that a directory does not hold this file. With limits, the
    /// walk looks at what is there itself; what leads out of the directory is not looked up.
    pub(super) fn may_look_ahead_for(&self, file: &[u8]) -> bool {
        self.settings.limits.are_none() || !file.contains(&b'/')
    }

    /// Whether the directory at this place holds this file, and the Director may know that.
    pub(super) fn holds(&self, place: &Place<'_, '_>, file: &[u8]) -> bool {
        let limits = &self.settings.limits;
        if limits.are_none() {
            return place.holds(file);
        }
        place.handle().is_ok_and(|directory| limits.let_see(directory.as_fd(), place.path, &self.real_top, file))
    }

    /// Whether the Director's limits let the data of a device be read.
    pub(super) fn let_read_device(&self, path: &[u8]) -> bool {
        self.settings.limits.let_read_device(path, &self.real_top)
    }

    /// Whether the walk will probably enter the directory at this path, which is below a name of
    /// the FileSet and on the file system of the directory that holds it.
    pub(super) fn enters(&self, include: &Include, path: &[u8], read_at: &ReadAt) -> bool {
        const NEEDS_MORE: [Flags; 2] = [Flags::NO_RECURSION, Flags::HONOR_NO_DUMP];
        let excluded = |path: &[u8]| self.host.excludes(path);
        let verdict = self.fileset.judge_also(include, path, true, excluded);
        verdict.accepted
            && !NEEDS_MORE.iter().any(|flag| verdict.options.has(*flag))
            && self.is_in_limits(path)
            && !self.settings.snapshots.hides(path, read_at)
    }

    /// Decides for the look-ahead beside this place.
    pub(super) const fn lookout<'l>(&'l self, place: &Place<'l, 'l>) -> Lookout<'l, 'w> {
        Lookout { judge: self, include: place.include, read_at: place.read_at }
    }

    /// What the accurate list has about an entry that was not looked up, and is no directory.
    pub(super) fn listed(&self, place: &Place<'w, '_>, judgement: &Judgement<'_>) -> Option<Stat> {
        let (stat, options) = (&Stat { ino: place.leaf, ..Stat::default() }, judgement.options);
        self.host.listed(&Candidate { path: place.path, stat, options, accepted: judgement.accepted })
    }

    pub(super) fn compare(&self, place: &Place<'w, '_>, stat: &Stat, judgement: &Judgement<'_>) -> Changed {
        let candidate = Candidate { path: place.path, stat, options: judgement.options, accepted: judgement.accepted };
        match self.host.compare(&candidate) {
            Comparison::Unchanged => Changed::No,
            Comparison::Changed { token } => Changed::Yes { token },
            Comparison::ByTime => {
                if self.settings.is_old(stat, judgement.options) {
                    Changed::No
                } else {
                    Changed::Yes { token: None }
                }
            }
        }
    }
}

/// Why a directory on this device is not entered, if so.
pub(super) fn barrier(place: &Place<'_, '_>, dev: u64, options: &EffectiveOptions) -> Option<Barrier> {
    let (_, parent_dev) = place.parent?;
    if options.has(Flags::NO_RECURSION) {
        Some(Barrier::NoRecursion)
    } else if dev == parent_dev {
        None
    } else if !options.has(Flags::MULTI_FS) {
        Some(Barrier::OtherFileSystem)
    } else if fs_types::left_out(&options.fs_types, &place.read_path()).is_some() {
        Some(Barrier::FileSystemType)
    } else {
        None
    }
}

/// Decides for the look-ahead below a name of the FileSet.
pub(super) struct Lookout<'l, 'w> {
    pub(super) judge: &'l Judge<'w>,
    pub(super) include: &'l Include,
    pub(super) read_at: &'l ReadAt,
}

impl Attend for Lookout<'_, '_> {
    fn is_canceled(&self) -> bool {
        self.judge.host.is_canceled()
    }

    fn enters(&self, path: &[u8]) -> bool {
        self.judge.enters(self.include, path, self.read_at)
    }

    fn marker(&self, path: &[u8]) -> Option<Vec<u8>> {
        let marker = self.include.ignore_dir().filter(|marker| self.judge.may_look_ahead_for(marker))?;
        Some(marker_path(&self.read_at.of(path), marker))
    }
}
