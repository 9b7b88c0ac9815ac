//! Examines entries: what each is, whether it belongs to the job, and its event (reference 03 §5.2
//! to §5.4).

use std::ops::ControlFlow;
use std::sync::Arc;

use fd_fileset::Flags;
use fd_messages::MessageType;
use fd_records::{FileType, Stat};
use rustix::fs::CWD;
use rustix::io::Errno;

use super::judge::{Barrier, Changed, Judge, barrier};
use super::place::Place;
use super::report::Report;
use super::spare::{Spare, Sparing};
use crate::ahead::{Ahead, Calls, FolderId};
use crate::attributes::{Found, file_type};
use crate::directory::{Directory, Scratch};
use crate::entry::{Entry, HardLink};
use crate::fs_types;
use crate::links::{LinkTable, Met, traits};
use crate::names::{split_path, without_slashes};
use crate::root::Root;
use crate::settings::{Purpose, WalkEnd};
use crate::texts;

/// An entry that changes while it is examined is examined at most so often.
const MOST_LOOKS: usize = 3;

/// What one walk owns.
pub(super) struct Walker<'w> {
    pub(super) report: Report<'w>,
    pub(super) judge: Judge<'w>,
    pub(super) links: &'w LinkTable,
    pub(super) scratch: Scratch,
    pub(super) ahead: Ahead,
    pub(super) sparing: Sparing,
    /// Held by each root that holds its directory, to count them.
    pub(super) roots: Arc<()>,
    /// The root of the last name of the FileSet that is not a directory.
    pub(super) root_of_names: Option<Arc<Root>>,
}

/// A directory whose contents are being walked.
pub(super) struct Level {
    pub(super) directory: Directory,
    /// Its own record, which comes after its contents; `None` if it did not change.
    pub(super) entry: Option<Entry>,
    /// Length of its path with the final slash.
    pub(super) prefix: usize,
    pub(super) dev: u64,
    /// Its number while it is read ahead.
    pub(super) lent: Option<FolderId>,
}

/// A directory, with its number if it is read ahead.
type Opened = Result<(Directory, Option<FolderId>), Errno>;

/// Why a look has no result.
enum Broken {
    /// The entry has changed meanwhile; there was no event yet.
    Again,
    Ended(WalkEnd),
}

impl From<WalkEnd> for Broken {
    fn from(end: WalkEnd) -> Self {
        Self::Ended(end)
    }
}

impl<'w> Walker<'w> {
    /// One entry (reference 03 §5.2). A directory that is to be entered comes back as a level.
    pub(super) fn entry(&mut self, place: &Place<'w, '_>) -> Result<Option<Level>, WalkEnd> {
        for look in 1..=MOST_LOOKS {
            // What was found ahead counts once.
            let place = &Place { lent: place.lent.filter(|_| look == 1), ..*place };
            match self.look(place, look == MOST_LOOKS) {
                Ok(level) => return Ok(level),
                Err(Broken::Ended(end)) => return Err(end),
                Err(Broken::Again) => {}
            }
        }
        Ok(None)
    }

    /// One look at an entry. The last one accepts changes.
    fn look(&mut self, place: &Place<'w, '_>, is_last: bool) -> Result<Option<Level>, Broken> {
        if self.report.host.is_canceled() {
            return Err(WalkEnd::Canceled.into());
        }
        let (is_doubt, found) = match self.sparing.spare(place, &self.judge, &mut self.ahead, &mut self.report)? {
            Spare::Done => return Ok(None),
            Spare::Found(found) => (true, found),
            Spare::No => (false, self.attributes(place)?),
        };
        self.sparing.doubt(place, is_doubt, &found, &mut self.ahead, &mut self.report)?;
        let found = match found {
            Ok(found) => found,
            Err(errno) => {
                // Its directory tells at least what is no directory.
                if self.judge.judge(place, place.leaf == 0).accepted {
                    self.report.failed(place.path, texts::STAT, errno)?;
                }
                return Ok(None);
            }
        };
        // Of what the Director may not read, it does not hear where that is.
        if place.is_top() && self.judge.is_in_limits(place.path) && !self.file_system_is_allowed(place)? {
            return Ok(None);
        }
        if found.0.mode_type() == Stat::MODE_DIRECTORY {
            return self.directory(place, found, is_last);
        }
        if !self.sparing.has_its_turn(&found.0) {
            return Ok(None);
        }
        self.report.is_muted = false;
        let done = self.file(place, found, is_last);
        self.report.is_muted = self.sparing.looks_again;
        done.map(|()| None)
    }

    fn attributes(&mut self, place: &Place<'w, '_>) -> Result<Result<Found, Errno>, WalkEnd> {
        if place.is_too_long() {
            return Ok(Err(Errno::NAMETOOLONG));
        }
        if let Some(Err(errno)) = place.held {
            // A file on the way may be one that the Director may not know of.
            return Ok(Err(if *errno == Errno::NOTDIR { Errno::NOENT } else { *errno }));
        }
        if let Some(folder) = place.lent
            && let Some(found) = self.ahead.look(folder, &self.judge.lookout(place))?
        {
            return Ok(found);
        }
        Ok(self.ahead.directly(|calls| place.lstat(calls)))
    }

    /// Everything but directories.
    fn file(&mut self, place: &Place<'w, '_>, found: Found, is_last: bool) -> Result<(), Broken> {
        let (path, stat) = (place.path, found.0);
        let judgement = self.judge.judge(place, false);
        let options = judgement.options;
        if stat.mode_type() == Stat::MODE_REGULAR && options.has(Flags::HONOR_NO_DUMP) && place.is_no_dump() {
            return Ok(());
        }
        let changed = self.judge.compare(place, &stat, &judgement);
        if !judgement.accepted {
            return Ok(());
        }
        let Changed::Yes { token } = changed else {
            // That was said when it was left out.
            self.report.is_muted = self.sparing.looks_again;
            return Ok(self.report.unchanged(path)?);
        };
        if stat.mode_type() == Stat::MODE_SOCKET && self.report.purpose == Purpose::Backup {
            self.report.host.examined(path);
            return Ok(self.report.say(MessageType::Skipped, |text| texts::socket(text, path))?);
        }
        let mut file_type = file_type(&stat, place.is_top(), options);
        let (mut link, mut hard_link) = (Vec::new(), None);
        if file_type == FileType::Symlink {
            match place.link_target(&stat, is_last, self.ahead.link()) {
                Ok(target) => link = target.ok_or(Broken::Again)?,
                Err(errno) => return Ok(self.report.failed(path, texts::FOLLOW, errno)?),
            }
        } else if stat.nlink > 1 && !options.has(Flags::NO_HARD_LINK) {
            let ControlFlow::Continue(name) = self.name_of_inode(place, &stat, (file_type, options.strip_path)) else {
                return Ok(());
            };
            hard_link = name;
            if let Some(HardLink::Later { slot, .. }) = &hard_link {
                link = slot.path();
                file_type = FileType::HardLink;
            }
        }
        let is_barred = file_type == FileType::Raw && !self.judge.let_read_device(path);
        if is_barred {
            file_type = FileType::Special;
            self.report.say(MessageType::Warning, |text| texts::device_out_of_limits(text, path))?;
        }
        let root = if place.is_top() { self.root_of_name(place) } else { place.root.cloned() };
        self.report.begin(path)?;
        let entry = place.entry(file_type, found, options, token);
        let top_level = entry.top_level && !is_barred;
        Ok(self.report.entry(Entry { link, hard_link, top_level, root, ..entry })?)
    }

    /// Which name this is of an inode that has several, if that is followed; or it has been met.
    /// Only entries to be saved get here: a name that is left out never becomes a first name.
    fn name_of_inode(
        &mut self,
        place: &Place<'w, '_>,
        stat: &Stat,
        (own_type, strip_path): (FileType, u32),
    ) -> ControlFlow<(), Option<HardLink>> {
        let later = match self.links.meet(stat, place.path, strip_path) {
            Met::Again => return ControlFlow::Break(()),
            Met::Untracked => None,
            Met::First(slot) => return ControlFlow::Continue(Some(HardLink::First(slot))),
            Met::Later(slot) => Some(slot),
            // Another file of the same number is saved as a file of its own.
            Met::Doubtful(slot) => Some(slot).filter(|slot| self.is_one_file(place, &slot.path())),
        };
        ControlFlow::Continue(later.map(|slot| HardLink::Later { slot, own_type }))
    }

    /// Whether an entry is the file at `first`, which has the same device and inode. Some file
    /// systems give one number to two files, such as unions of others; and a file may have changed
    /// since its first name was met.
    fn is_one_file(&mut self, place: &Place<'w, '_>, first: &[u8]) -> bool {
        let first = place.read_at.of(first);
        (0..MOST_LOOKS).any(|_| {
            let found = self.ahead.directly(|calls| [calls.lstat(CWD, &first), place.lstat(calls)]);
            matches!(found, [Ok(one), Ok(other)] if {
                let shown = |(stat, nanoseconds): Found| (stat.dev, stat.ino, traits(&stat), nanoseconds);
                shown(one) == shown(other)
            })
        })
    }

    /// A directory before its contents (reference 03 §5.4).
    fn directory(&mut self, place: &Place<'w, '_>, found: Found, is_last: bool) -> Result<Option<Level>, Broken> {
        let path = place.path;
        let judgement = self.judge.judge(place, true);
        let options = judgement.options;
        // What is mounted on access, and not entered, is not to be mounted by a look into it.
        let asks_inside = options.has(Flags::HONOR_NO_DUMP) || place.include.ignore_dir().is_some();
        let is_trap = asks_inside
            && matches!(barrier(place, found.0.dev, options), Some(Barrier::OtherFileSystem))
            && place.is_mounted_on_access();
        if !is_trap && options.has(Flags::HONOR_NO_DUMP) && place.is_no_dump() {
            return Ok(None);
        }
        if let Some(marker) = place.include.ignore_dir()
            && !is_trap
            && self.is_marked(place, marker)?
        {
            self.report.say(MessageType::Skipped, |text| texts::ignored_directory(text, path))?;
            return Ok(None);
        }
        let changed = self.judge.compare(place, &found.0, &judgement);
        if judgement.out_of_limits {
            self.report.summary.skipped_directories += u64::from(!self.sparing.looks_again);
            self.report.say(MessageType::Skipped, |text| texts::out_of_limits(text, path))?;
        }
        if !judgement.accepted {
            return Ok(None);
        }
        let (is_changed, token) = match changed {
            Changed::Yes { token } => (true, token),
            Changed::No => (false, None),
        };
        let entry = place.entry(FileType::Directory, found, options, token);
        self.enter(place, entry, is_changed, is_last)
    }

    /// Opens a directory that belongs to the job, unless a barrier is in the way.
    fn enter(
        &mut self,
        place: &Place<'w, '_>,
        entry: Entry,
        is_changed: bool,
        is_last: bool,
    ) -> Result<Option<Level>, Broken> {
        let Stat { dev, ino, .. } = entry.stat;
        let barrier = barrier(place, dev, &entry.options);
        let opened = if barrier.is_none() { Some(self.open(place, (dev, ino))?) } else { None };
        // Another object, none, or a file system that is mounted on access.
        if matches!(opened, Some(Err(Errno::STALE | Errno::NOENT | Errno::NOTDIR | Errno::LOOP))) && !is_last {
            return Err(Broken::Again);
        }
        if is_changed {
            self.report.verifying(place.path)?;
        } else {
            self.report.unchanged(place.path)?;
        }
        if let Some(barrier) = barrier {
            self.barred(place, entry, barrier)?;
            return Ok(None);
        }
        match opened.unwrap_or(Err(Errno::STALE)) {
            Ok((directory, lent)) => {
                let prefix = without_slashes(place.path).len() + 1;
                let entry = is_changed.then_some(entry);
                Ok(Some(Level { directory, entry, prefix, dev, lent }))
            }
            Err(errno) => {
                self.report.failed(place.path, texts::OPEN_DIRECTORY, errno)?;
                Ok(None)
            }
        }
    }

    fn is_marked(&mut self, place: &Place<'w, '_>, marker: &[u8]) -> Result<bool, WalkEnd> {
        if let Some(folder) = place.lent
            && self.judge.may_look_ahead_for(marker)
            && self.ahead.is_unmarked(folder, &self.judge.lookout(place))?
        {
            return Ok(false);
        }
        let judge = &self.judge;
        Ok(self.ahead.directly(|_| judge.holds(place, marker)))
    }

    /// Opens a directory, or takes over what was opened ahead.
    fn open(&mut self, place: &Place<'w, '_>, identity: (u64, u64)) -> Result<Opened, WalkEnd> {
        if let Some(folder) = place.lent
            && let Some(opened) = self.ahead.open(folder, identity, &self.judge.lookout(place))?
        {
            let lent = |(lent, descriptor)| (Directory::lent(identity, descriptor), Some(lent));
            return Ok(opened.map(lent));
        }
        let (at, name) = place.target();
        let scratch = &mut self.scratch;
        let open = |_: &dyn Calls| Directory::open(at, &name, identity, scratch);
        Ok(self.ahead.directly(open).map(|directory| (directory, None)))
    }

    /// A directory that is saved but not entered, even if it did not change.
    fn barred(&mut self, place: &Place<'w, '_>, entry: Entry, barrier: Barrier) -> Result<(), WalkEnd> {
        let (top, path) = (place.top, place.path);
        self.report.begin(path)?;
        match (self.report.purpose, barrier) {
            (Purpose::Estimate { .. }, _) => {}
            (Purpose::Backup, Barrier::NoRecursion) => {
                self.report.say(MessageType::Info, |text| texts::no_recursion(text, top, path))?;
            }
            (Purpose::Backup, Barrier::OtherFileSystem) => {
                if !self.judge.fileset.lists(path) {
                    self.report.say(MessageType::Info, |text| texts::other_file_system(text, top, path))?;
                }
            }
            (Purpose::Backup, Barrier::FileSystemType) => {
                self.report.say(MessageType::Info, |text| texts::disallowed_file_system(text, top, path))?;
            }
            (Purpose::Verify, Barrier::NoRecursion) => {
                self.report.say(MessageType::Skipped, |text| texts::verify_no_recursion(text, path))?;
            }
            (Purpose::Verify, Barrier::OtherFileSystem) => {
                return self.report.say(MessageType::Skipped, |text| texts::verify_other_file_system(text, path));
            }
            (Purpose::Verify, Barrier::FileSystemType) => {
                let code = FileType::InvalidFileSystem.code();
                return self.report.say(MessageType::NotSaved, |text| texts::verify_unknown_type(text, code, path));
            }
        }
        self.report.entry(Entry { barred: true, ..entry })
    }

    /// File-system and drive type of a name of the FileSet (reference 03 §5.2 step 4). Of a file
    /// system below a name, which is walked like one in a job with snapshots, the Options were
    /// asked that decide about it.
    fn file_system_is_allowed(&mut self, place: &Place<'w, '_>) -> Result<bool, WalkEnd> {
        if place.is_sub_mount {
            return Ok(true);
        }
        let options = place.include.top_level();
        if let Some(name) = fs_types::left_out(&options.fs_types, &place.read_path()) {
            self.report.say(MessageType::Info, |text| texts::unlisted_fstype(text, place.path, name))?;
            return Ok(false);
        }
        if !options.drive_types.is_empty() {
            self.report.say(MessageType::Info, |text| texts::unlisted_drivetype(text, place.path))?;
            return Ok(false);
        }
        Ok(true)
    }

    /// The root of a name of the FileSet that is not a directory.
    fn root_of_name(&mut self, place: &Place<'_, '_>) -> Option<Arc<Root>> {
        let name = &*place.read_path();
        if let Some(Ok(held)) = place.held {
            return Root::new(held.target().0, split_path(name).0.len(), &self.roots).ok().map(Arc::new);
        }
        if !self.root_of_names.as_ref().is_some_and(|root| root.is_parent(name)) {
            self.root_of_names = Root::of_parent(name, &self.roots).ok().map(Arc::new);
        }
        self.root_of_names.clone()
    }
}
