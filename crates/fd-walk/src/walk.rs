//! The walk itself (reference 03 §5): one entry after the other, in the reference's order, with an explicit stack.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fd_fileset::{EffectiveOptions, FileSet, Flags, Include, Verdict};
use fd_messages::MessageType;
use fd_records::{FileType, Stat};
use rustix::fs::{AtFlags, CWD, IFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::directory::{Directory, Scratch, stat_at};
use crate::entry::{Entry, HardLink, Nanoseconds, convert, file_type, without_slashes};
use crate::event::{Flow, Message, WalkEvent};
use crate::fs_types;
use crate::limits::{OutOfLimits, RealTop};
use crate::links::{LinkTable, Met};
use crate::reach::Root;
use crate::settings::{Candidate, Comparison, Purpose, WalkEnd, WalkHost, WalkSettings, WalkSummary};
use crate::texts;

/// Longest path that the kernel takes, in bytes, without the NUL.
const LONGEST_PATH: usize = 4095;
/// Directories that are kept open; those above are put aside.
const MOST_OPEN: usize = 128;
/// How often something that changes while it is looked at is looked at.
const MOST_LOOKS: usize = 3;

/// Walks over everything that `fileset` names and hands what it finds to `sink`, in order.
pub fn walk(
    fileset: &FileSet,
    settings: &WalkSettings,
    host: &dyn WalkHost,
    sink: &mut dyn FnMut(WalkEvent<'_>) -> Flow,
) -> WalkSummary {
    let mut walker = Walker {
        fileset,
        settings,
        host,
        sink,
        links: LinkTable::default(),
        real_top: RealTop::default(),
        scratch: Scratch::new(),
        text: Vec::new(),
        roots: Arc::default(),
        root_of_names: None,
        summary: WalkSummary::default(),
    };
    if let Err(end) = walker.includes() {
        walker.summary.end = end;
    }
    walker.summary
}

/// The walk ends here, and how.
type Ended = WalkEnd;

struct Walker<'w> {
    fileset: &'w FileSet,
    settings: &'w WalkSettings,
    host: &'w dyn WalkHost,
    sink: &'w mut dyn FnMut(WalkEvent<'_>) -> Flow,
    links: LinkTable,
    /// For the limits: where the name of the FileSet really is that is being walked.
    real_top: RealTop,
    scratch: Scratch,
    /// Where the texts of messages are built.
    text: Vec<u8>,
    /// Held by each root that holds its directory, to count them.
    roots: Arc<()>,
    /// That of the last name of the FileSet which is no directory.
    root_of_names: Option<Arc<Root>>,
    summary: WalkSummary,
}

/// A directory whose contents are being walked.
struct Level {
    directory: Directory,
    /// Its own record, which comes after its contents; `None` if it did not change.
    entry: Option<Entry>,
    /// Length of its path with the final slash.
    prefix: usize,
    dev: u64,
}

/// Where the entry stands that is being looked at.
#[derive(Clone, Copy)]
struct Place<'w, 'p> {
    include: &'w Include,
    top: &'p [u8],
    path: &'p [u8],
    /// Where the path's last part starts.
    name_at: usize,
    /// The directory that holds it, and its device; `None` for a name of the FileSet itself.
    parent: Option<(BorrowedFd<'p>, u64)>,
    /// The directory of the FileSet's name that it is below, if that is held.
    root: Option<&'p Arc<Root>>,
}

impl<'p> Place<'_, 'p> {
    const fn is_top(&self) -> bool {
        self.parent.is_none()
    }

    /// Descriptor and path for a system call on the entry: relative to its directory, which saves the kernel the way
    /// there, and lets nobody change the way.
    fn target(&self) -> (BorrowedFd<'p>, &'p [u8]) {
        match self.parent {
            Some((descriptor, _)) => (descriptor, self.path.get(self.name_at..).unwrap_or_default()),
            None => (CWD, self.path),
        }
    }
}

/// What came of a look at an entry.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum Look {
    /// All is said and done, but for a directory's contents.
    Over(Option<Level>),
    /// It changed meanwhile, and nothing was said yet.
    Again,
}

/// What the FileSet and the limits say about an entry.
struct Judgement<'f> {
    accepted: bool,
    options: &'f Arc<EffectiveOptions>,
    /// It is a directory that the Director may not see, and that is to be said.
    out_of_limits: bool,
}

impl<'w> Walker<'w> {
    fn includes(&mut self) -> Result<(), Ended> {
        for include in self.fileset.includes() {
            for name in include.names() {
                self.top_level(include, name)?;
            }
            for command in include.plugins() {
                self.give(WalkEvent::Plugin { command, options: include.top_level() })?;
            }
        }
        Ok(())
    }

    /// A name of the FileSet and everything below it.
    fn top_level(&mut self, include: &'w Include, name: &[u8]) -> Result<(), Ended> {
        let mut path = name.to_vec();
        self.real_top = self.settings.limits.real_top(name);
        let place = Place { include, top: name, path: &path, name_at: 0, parent: None, root: None };
        let counted = self.summary.entries;
        let Some(level) = self.entry(&place)? else {
            let is_counted = self.summary.entries > counted;
            return if is_counted { self.stop_beyond_limit() } else { Ok(()) };
        };
        path.truncate(without_slashes(name).len());
        path.push(b'/');
        let root =
            level.directory.descriptor().and_then(|top| Root::new(top, level.prefix, &self.roots).ok()).map(Arc::new);
        let mut levels = vec![level];
        while let Some(level) = levels.last_mut() {
            let prefix = level.prefix;
            path.truncate(prefix);
            if self.limit_reached() || !self.next_name(level, &mut path)? {
                path.truncate(prefix.saturating_sub(1));
                if let Some(level) = levels.pop() {
                    self.leave(level, if levels.is_empty() { name } else { &path })?;
                }
                continue;
            }
            // A directory that has given a name is open.
            let Some(directory) = level.directory.descriptor() else { continue };
            let parent = Some((directory, level.dev));
            let place = Place { include, top: name, path: &path, name_at: prefix, parent, root: root.as_ref() };
            if let Some(below) = self.entry(&place)? {
                path.push(b'/');
                levels.push(below);
                self.free_descriptor(&mut levels);
            }
        }
        Ok(())
    }

    /// Where the way to an entry begins that is a name of the FileSet.
    fn root_of_name(&mut self, name: &[u8]) -> Option<Arc<Root>> {
        if !self.root_of_names.as_ref().is_some_and(|root| root.is_parent(name)) {
            self.root_of_names = Root::of_parent(name, &self.roots).ok().map(Arc::new);
        }
        self.root_of_names.clone()
    }

    /// Appends the next name of the directory to its path. What can't be read is told: the reference takes it for the
    /// end of the directory without a word.
    fn next_name(&mut self, level: &mut Level, path: &mut Vec<u8>) -> Result<bool, Ended> {
        level.directory.next_name(path, &mut self.scratch).or_else(|errno| {
            let path = path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path);
            self.could_not(path, texts::READ_DIRECTORY, errno).map(|()| false)
        })
    }

    /// Keeps the number of open directories bounded, however deep the tree.
    fn free_descriptor(&mut self, levels: &mut [Level]) {
        if let Some(outermost) = levels.len().checked_sub(MOST_OPEN + 1)
            && let Some(level) = levels.get_mut(outermost)
        {
            level.directory.put_aside(&mut self.scratch);
        }
    }

    /// In an estimate with a limit: a name of the FileSet that is counted beyond it ends the walk, but not if it is a
    /// directory that was entered.
    fn stop_beyond_limit(&self) -> Result<(), Ended> {
        match self.settings.purpose {
            Purpose::Estimate { limit } if limit > 0 && self.summary.entries > limit => Err(WalkEnd::Complete),
            _ => Ok(()),
        }
    }

    /// In an estimate with a limit: whether enough has been counted.
    const fn limit_reached(&self) -> bool {
        matches!(self.settings.purpose, Purpose::Estimate { limit } if limit > 0 && self.summary.entries >= limit)
    }

    /// One entry (reference 03 §5.2). A directory that is to be entered comes back as a level.
    fn entry(&mut self, place: &Place<'w, '_>) -> Result<Option<Level>, Ended> {
        for _ in 1..MOST_LOOKS {
            if let Look::Over(level) = self.look(place, false)? {
                return Ok(level);
            }
        }
        match self.look(place, true)? {
            Look::Over(level) => Ok(level),
            Look::Again => Ok(None),
        }
    }

    /// One look at an entry. The last one puts up with what changes meanwhile.
    fn look(&mut self, place: &Place<'w, '_>, is_last: bool) -> Result<Look, Ended> {
        if self.host.is_cancelled() {
            return Err(WalkEnd::Cancelled);
        }
        let found = if place.path.len() > LONGEST_PATH {
            Err(Errno::NAMETOOLONG)
        } else {
            let (at, path) = place.target();
            stat_at(at, path)
        };
        let found = match found {
            Ok(found) => found,
            Err(errno) => {
                if self.judge(place, false).accepted {
                    self.failed(place.path, texts::STAT, errno)?;
                }
                return Ok(Look::Over(None));
            }
        };
        let (stat, nanoseconds) = convert(&found);
        if place.is_top() && !self.file_system_is_allowed(place)? {
            return Ok(Look::Over(None));
        }
        if stat.mode_type() == Stat::MODE_DIRECTORY {
            return self.directory(place, stat, nanoseconds, is_last);
        }
        self.file(place, stat, nanoseconds, is_last)
    }

    /// Everything but directories.
    fn file(
        &mut self,
        place: &Place<'w, '_>,
        stat: Stat,
        nanoseconds: Nanoseconds,
        is_last: bool,
    ) -> Result<Look, Ended> {
        let judgement = self.judge(place, false);
        let options = judgement.options;
        if stat.mode_type() == Stat::MODE_REGULAR && no_dump(place, options) {
            return Ok(Look::Over(None));
        }
        let comparison = self.compare(place, &stat, &judgement);
        let Changed::Yes { token } = comparison else {
            if judgement.accepted {
                self.unchanged(place.path)?;
            }
            return Ok(Look::Over(None));
        };
        if !judgement.accepted {
            return Ok(Look::Over(None));
        }
        let root = if place.is_top() { self.root_of_name(place.path) } else { place.root.cloned() };
        let mut entry = Entry {
            path: Vec::new(),
            file_type: file_type(&stat, place.is_top(), options),
            stat,
            nanoseconds,
            link: Vec::new(),
            hard_link: None,
            options: Arc::clone(options),
            top_level: place.is_top(),
            token,
            root,
        };
        if entry.stat.mode_type() == Stat::MODE_SOCKET && self.settings.purpose == Purpose::Backup {
            self.host.examined(place.path);
            self.say(MessageType::Skipped, false, |text| texts::socket(text, place.path))?;
            return Ok(Look::Over(None));
        }
        if entry.file_type == FileType::Symlink {
            match target_of_link(place, &entry.stat, is_last) {
                Ok(Some(target)) => entry.link = target,
                Ok(None) => return Ok(Look::Again),
                Err(errno) => {
                    self.failed(place.path, texts::FOLLOW, errno)?;
                    return Ok(Look::Over(None));
                }
            }
        } else if entry.stat.nlink > 1 && !options.has(Flags::NO_HARD_LINK) {
            // Only what is going to be saved gets here: a name that is left out never stands for another one.
            match self.links.meet(&entry.stat, place.path) {
                Met::Again => return Ok(Look::Over(None)),
                Met::First(slot) => entry.hard_link = Some(HardLink::First(slot)),
                Met::Later(slot) => {
                    let own_type = std::mem::replace(&mut entry.file_type, FileType::HardLink);
                    entry.link = slot.path();
                    entry.hard_link = Some(HardLink::Later { slot, own_type });
                }
                Met::Untracked => {}
            }
        }
        self.host.examined(place.path);
        self.verifying(place.path)?;
        entry.path = place.path.to_vec();
        self.give_entry(entry)?;
        Ok(Look::Over(None))
    }

    /// A directory before its contents (reference 03 §5.4).
    fn directory(
        &mut self,
        place: &Place<'w, '_>,
        stat: Stat,
        nanoseconds: Nanoseconds,
        is_last: bool,
    ) -> Result<Look, Ended> {
        let judgement = self.judge(place, true);
        let options = judgement.options;
        if no_dump(place, options) {
            return Ok(Look::Over(None));
        }
        if let Some(marker) = place.include.ignore_dir()
            && holds(place.path, marker)
        {
            self.say(MessageType::Skipped, false, |text| texts::ignored_directory(text, place.path))?;
            return Ok(Look::Over(None));
        }
        let comparison = self.compare(place, &stat, &judgement);
        if judgement.out_of_limits {
            self.summary.skipped_directories += 1;
            self.say(MessageType::Skipped, false, |text| texts::out_of_limits(text, place.path))?;
        }
        if !judgement.accepted {
            return Ok(Look::Over(None));
        }
        let entry = Entry {
            path: place.path.to_vec(),
            file_type: FileType::Directory,
            stat,
            nanoseconds,
            link: Vec::new(),
            hard_link: None,
            options: Arc::clone(options),
            top_level: place.is_top(),
            token: if let Changed::Yes { token } = comparison { token } else { None },
            root: place.root.cloned(),
        };
        let barrier = barrier(place, &entry);
        let (at, path) = place.target();
        let opened = barrier.is_none().then(|| Directory::open(at, path, (stat.dev, stat.ino), &mut self.scratch));
        // Another directory, or a file system that was mounted there because somebody came.
        if matches!(opened, Some(Err(Errno::STALE))) && !is_last {
            return Ok(Look::Again);
        }
        let changed = matches!(comparison, Changed::Yes { .. });
        if changed {
            self.verifying(place.path)?;
        } else {
            self.unchanged(place.path)?;
        }
        if let Some(barrier) = barrier {
            self.barred(place, entry, barrier)?;
            return Ok(Look::Over(None));
        }
        match opened.unwrap_or(Err(Errno::STALE)) {
            Ok(directory) => Ok(Look::Over(Some(Level {
                directory,
                prefix: without_slashes(place.path).len() + 1,
                dev: stat.dev,
                entry: changed.then_some(entry),
            }))),
            Err(errno) => {
                self.failed(place.path, texts::OPEN_DIRECTORY, errno)?;
                Ok(Look::Over(None))
            }
        }
    }

    /// A directory after its contents. `path` is its path as it was met.
    fn leave(&mut self, level: Level, path: &[u8]) -> Result<(), Ended> {
        level.directory.close(&mut self.scratch);
        match level.entry {
            Some(entry) => {
                self.host.examined(path);
                self.verifying(path)?;
                self.give_entry(entry)
            }
            None => self.unchanged(path),
        }
    }

    /// A directory that is saved but not entered, even if it did not change.
    fn barred(&mut self, place: &Place<'w, '_>, entry: Entry, barrier: Barrier) -> Result<(), Ended> {
        let (top, path) = (place.top, place.path);
        self.host.examined(path);
        self.verifying(path)?;
        match (self.settings.purpose, barrier) {
            (Purpose::Estimate { .. }, _) => {}
            (Purpose::Backup, Barrier::NoRecursion) => {
                self.say(MessageType::Info, false, |text| texts::no_recursion(text, top, path))?;
            }
            (Purpose::Backup, Barrier::OtherFileSystem) => {
                if !self.fileset.lists(path) {
                    self.say(MessageType::Info, false, |text| texts::other_file_system(text, top, path))?;
                }
            }
            (Purpose::Backup, Barrier::FileSystemType) => {
                self.say(MessageType::Info, false, |text| texts::disallowed_file_system(text, top, path))?;
            }
            (Purpose::Verify, Barrier::NoRecursion) => {
                self.say(MessageType::Skipped, false, |text| texts::verify_no_recursion(text, path))?;
            }
            (Purpose::Verify, Barrier::OtherFileSystem) => {
                return self.say(MessageType::Skipped, false, |text| texts::verify_other_file_system(text, path));
            }
            (Purpose::Verify, Barrier::FileSystemType) => {
                let code = FileType::InvalidFileSystem.code();
                return self.say(MessageType::NotSaved, true, |text| texts::verify_unknown_type(text, code, path));
            }
        }
        self.give_entry(entry)
    }

    /// The limits of the Director, then the FileSet. Top-level names are never filtered by the FileSet.
    fn judge(&self, place: &Place<'w, '_>, is_directory: bool) -> Judgement<'w> {
        let include = place.include;
        let verdict = if place.is_top() {
            Verdict { accepted: true, options: include.top_level() }
        } else {
            self.fileset.judge(include, place.path, is_directory)
        };
        let limits = self.settings.limits.check(place.path, &self.real_top);
        Judgement {
            accepted: verdict.accepted && limits.is_ok(),
            options: verdict.options,
            out_of_limits: is_directory && limits == Err(OutOfLimits::NotAllowed),
        }
    }

    fn compare(&self, place: &Place<'w, '_>, stat: &Stat, judgement: &Judgement<'_>) -> Changed {
        let candidate = Candidate { path: place.path, stat, options: judgement.options, accepted: judgement.accepted };
        match self.host.compare(&candidate) {
            Comparison::Unchanged => Changed::No,
            Comparison::Changed { token } => Changed::Yes { token },
            Comparison::ByTime => {
                let since = self.settings.since;
                let unchanged = self.settings.incremental
                    && stat.mtime < since
                    && (judgement.options.has(Flags::MTIME_ONLY) || stat.ctime < since);
                if unchanged { Changed::No } else { Changed::Yes { token: None } }
            }
        }
    }

    /// File-system and drive type of a name of the FileSet (reference 03 §5.2 step 4).
    fn file_system_is_allowed(&mut self, place: &Place<'w, '_>) -> Result<bool, Ended> {
        let options = place.include.top_level();
        if !options.fs_types.is_empty() {
            let name = fs_type_name(place.path);
            if !fs_types::is_listed(&options.fs_types, name) {
                let name = name.unwrap_or("unknown");
                self.say(MessageType::Info, false, |text| texts::unlisted_fstype(text, place.path, name))?;
                return Ok(false);
            }
        }
        if !options.drive_types.is_empty() {
            self.say(MessageType::Info, false, |text| texts::unlisted_drivetype(text, place.path))?;
            return Ok(false);
        }
        Ok(true)
    }

    fn unchanged(&mut self, path: &[u8]) -> Result<(), Ended> {
        self.host.examined(path);
        self.verifying(path)?;
        if matches!(self.settings.purpose, Purpose::Estimate { .. }) {
            return Ok(());
        }
        self.say(MessageType::Skipped, false, |text| texts::unchanged(text, path))
    }

    fn verifying(&mut self, path: &[u8]) -> Result<(), Ended> {
        if self.settings.purpose != Purpose::Verify {
            return Ok(());
        }
        self.say(MessageType::Verified, false, |text| texts::verifying(text, path))
    }

    /// An entry that could not even be looked at.
    fn failed(&mut self, path: &[u8], what: &str, errno: Errno) -> Result<(), Ended> {
        self.host.examined(path);
        self.verifying(path)?;
        self.could_not(path, what, errno)
    }

    fn could_not(&mut self, path: &[u8], what: &str, errno: Errno) -> Result<(), Ended> {
        let purpose = self.settings.purpose;
        if matches!(purpose, Purpose::Estimate { .. }) {
            return Ok(());
        }
        let words = fd_os::error_text(errno.raw_os_error());
        self.say(MessageType::NotSaved, true, |text| texts::could_not(text, purpose, what, path, &words))
    }

    /// Says something, unless nobody wants to hear it and it is no error.
    fn say(&mut self, kind: MessageType, error: bool, build: impl FnOnce(&mut Vec<u8>)) -> Result<(), Ended> {
        if !error && !self.host.wants(kind) {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        build(&mut text);
        let flow = self.give(WalkEvent::Message(Message { kind, text: &text, error }));
        self.text = text;
        flow
    }

    fn give_entry(&mut self, entry: Entry) -> Result<(), Ended> {
        self.summary.entries += 1;
        if entry.stat.mode_type() == Stat::MODE_REGULAR && entry.file_type != FileType::HardLink {
            self.summary.bytes = self.summary.bytes.saturating_add(u64::try_from(entry.stat.size).unwrap_or(0));
        }
        self.give(WalkEvent::Entry(entry))
    }

    fn give(&mut self, event: WalkEvent<'_>) -> Result<(), Ended> {
        match (self.sink)(event) {
            Flow::Continue => Ok(()),
            Flow::Stop => Err(WalkEnd::Stopped),
        }
    }
}

/// Whether an entry is to be looked at further.
#[derive(Clone, Copy)]
enum Changed {
    No,
    Yes { token: Option<u64> },
}

/// Why a directory is not entered.
#[derive(Clone, Copy)]
enum Barrier {
    NoRecursion,
    OtherFileSystem,
    FileSystemType,
}

fn barrier(place: &Place<'_, '_>, entry: &Entry) -> Option<Barrier> {
    let (_, parent_dev) = place.parent?;
    let options = &entry.options;
    if options.has(Flags::NO_RECURSION) {
        Some(Barrier::NoRecursion)
    } else if entry.stat.dev == parent_dev {
        None
    } else if !options.has(Flags::MULTI_FS) {
        Some(Barrier::OtherFileSystem)
    } else if !options.fs_types.is_empty() && !fs_types::is_listed(&options.fs_types, fs_type_name(place.path)) {
        Some(Barrier::FileSystemType)
    } else {
        None
    }
}

fn fs_type_name(path: &[u8]) -> Option<&'static str> {
    let found = rustix::fs::statfs(path).ok()?;
    fs_types::name(u32::try_from(found.f_type).ok()?)
}

/// Where a symbolic link leads to. `None` if another one has taken its place, which the last look puts up with.
fn target_of_link(place: &Place<'_, '_>, stat: &Stat, is_last: bool) -> Result<Option<Vec<u8>>, Errno> {
    let (at, path) = place.target();
    match rustix::fs::readlinkat(at, path, Vec::new()) {
        Ok(target) => {
            let target = target.into_bytes();
            // Some file systems know no length.
            let is_its_own = stat.size == 0 || usize::try_from(stat.size) == Ok(target.len());
            Ok((is_its_own || is_last).then_some(target))
        }
        Err(Errno::NOENT | Errno::INVAL) if !is_last => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Whether the directory holds a file of this name, symbolic links followed (reference 03 §5.10).
fn holds(directory: &[u8], name: &[u8]) -> bool {
    let path = [without_slashes(directory), b"/", name].concat();
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

/// The no-dump flag of the inode, if the options honour it. What can't be opened or asked is not flagged.
fn no_dump(place: &Place<'_, '_>, options: &EffectiveOptions) -> bool {
    if !options.has(Flags::HONOR_NO_DUMP) {
        return false;
    }
    let (at, path) = place.target();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = rustix::fs::openat(at, path, flags, Mode::empty());
    opened.is_ok_and(|file| rustix::fs::ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::NODUMP)))
}
