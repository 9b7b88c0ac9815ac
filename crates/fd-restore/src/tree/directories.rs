//! The handles of the directories on the way to the current one, and how missing ones are made.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

use fd_metadata::{Target, pin};
use fd_os::file_system::is_local;
use fd_records::Stat;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{getegid, geteuid};

use super::folded::real_name;
use super::memory::{RecordedDirectories, Remembered};
use super::output_path::{Base, OutputPath, common_length, components};
use crate::output_file::{Identity, NewFile};

use super::step::{Floor, LinkRefusal, LinkRule, Reached, StepError, open_directory};

/// How many handles are held at most. Beyond that, handles in the middle of a path are closed.
const MOST_HANDLES: usize = 64;

/// Mode of a directory that has no record. The umask applies, but other users can't write there
/// even if it is 0.
const NEW_DIRECTORY: Mode =
    Mode::S_IRWXU.union(Mode::S_IRGRP).union(Mode::S_IXGRP).union(Mode::S_IROTH).union(Mode::S_IXOTH);

/// What a directory keeps of its mode until the job leaves it: what others may read by the modes of
/// the files may be private by that of the directory, which comes behind them.
const PRIVATE: u32 = 0o7700;

/// What marks one that the job has not left: the sticky bit, as of a file that is not finished. In
/// a private directory it means nothing, and stays if the daemon is killed.
const MARK: u32 = 0o1000;

/// The mode of a new directory that the job has not left.
const PRIVATE_AND_MARKED: u32 = 0o700 | MARK;

/// Whether this is a directory that a restore of this user has made and never left. A record with
/// that very mode has also this time of change, in seconds.
pub(crate) fn is_unfinished_directory(found: &FileStat, recorded: i64) -> bool {
    // Its own directory may have given it its group.
    let others = Stat::MODE_DIRECTORY | 0o2700 | MARK;
    found.st_mode & !others == 0
        && found.st_mode & Stat::MODE_TYPE == Stat::MODE_DIRECTORY
        && found.st_mode & MARK != 0
        && found.st_uid == geteuid().as_raw()
        && found.st_mtime != recorded
}

/// Whether this is a directory of the daemon's user that has no secrets of it, as one on the way to
/// what an earlier restore brought. A daemon that is not root can give nothing away.
fn hides_nothing(found: &FileStat) -> bool {
    let user = geteuid();
    found.st_uid == user.as_raw() && (!user.is_root() || found.st_mode & 0o005 == 0o005)
}

/// One directory that is held open.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    /// Length of its path in [`Directories::path`].
    end: usize,
    handle: OwnedFd,
    readable: bool,
    /// Whether this job made it.
    made: bool,
    /// Length of the path of the first link on the way.
    first_link: Option<usize>,
    /// Length of the path of the last one.
    last_link: Option<usize>,
    /// The directory above or at it that links must not lead out of.
    floor: Option<Floor>,
    /// What it gets when the job leaves it, unless its own record has come by then.
    usual: Option<Usual>,
    /// Whether its status was read since its record was applied, so that `times` is right.
    modified: bool,
    /// Whether only this process can change the names in it, once that was examined.
    guarded: Option<bool>,
    /// Whether its file system is a local one, once that was asked.
    local: Option<bool>,
    /// The times to set again when the job leaves it: those of its record, which files restored
    /// later would change.
    times: Option<(TimeSpec, TimeSpec)>,
}

impl OpenDirectory {
    /// `before` is the one above it.
    fn new(end: usize, reached: Reached, made: bool, before: Option<&Self>, floor: Option<Floor>) -> Self {
        let Reached { handle, readable, through_link } = reached;
        let link = through_link.then_some(end);
        let first_link = before.and_then(|dir| dir.first_link).or(link);
        let last_link = link.or(before.and_then(|dir| dir.last_link));
        Self {
            end,
            handle,
            readable,
            made,
            first_link,
            last_link,
            floor,
            usual: None,
            // The times of a new directory need not be kept.
            modified: made,
            guarded: None,
            local: None,
            times: None,
        }
    }

    /// The handle.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// What its metadata is applied to.
    pub(crate) fn target(&self) -> Target<'_> {
        if self.readable { Target::Open(self.handle()) } else { Target::PinnedDirectory(self.handle()) }
    }

    /// Whether only this process can change the names in it.
    fn is_guarded(&mut self, rule: &LinkRule) -> bool {
        let handle = &self.handle;
        *self.guarded.get_or_insert_with(|| fstat(handle).is_ok_and(|stat| rule.keeps_its_names(&stat)))
    }

    /// Right after it was made: it belongs to nobody else and is private, until its record comes or
    /// the job leaves it. `is_last`: it is what was to be made, and not one on the way.
    fn begin(&mut self, how: MakeDirectory, is_last: bool) -> Result<(), Errno> {
        self.target().drop_inherited_acls_of_directory()?;
        if is_last && !how.keep {
            return Ok(());
        }
        let mode = fstat(&self.handle)?.st_mode;
        let private = self.target().set_mode(mode & PRIVATE | MARK);
        // A file system without modes refuses it.
        let _private = private.or_else(|_| self.target().set_mode(mode & PRIVATE));
        let takes_after = is_last == how.keep;
        let owner = takes_after.then_some((how.uid, how.gid));
        self.usual = Some(Usual { owner, mode: if takes_after { how.mode } else { mode } });
        Ok(())
    }

    /// Its record was not all that there is of it: it is as one that the job has not left. What
    /// can't be set stays as the record says, without a message.
    pub(crate) fn take_back(&self) {
        let target = self.target();
        let _owner = target.set_owner(geteuid().as_raw(), getegid().as_raw());
        let _mode = target.set_mode(PRIVATE_AND_MARKED).or_else(|_| target.set_mode(PRIVATE_AND_MARKED & !MARK));
        let _times = target.set_exact_times(TimeSpec::UTIME_NOW, TimeSpec::UTIME_NOW);
    }

    /// The job is done with it for now. Failures are silent, as in the reference (05 §8.4).
    fn leave(&self) {
        if let Some(Usual { owner, mode }) = self.usual {
            let _owner = owner.map(|(uid, gid)| self.target().set_owner(uid, gid));
            let _mode = self.target().set_mode(mode);
        }
        if let Some((accessed, modified)) = self.times {
            // A failure is silent: the directory's record could set them, so this can too.
            let _times = self.target().set_exact_times(accessed, modified);
        }
    }
}

/// Why a directory can't be opened or made. The lengths are those of the path up to the component
/// that is the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenError {
    /// This component does not exist. `first_link`: up to the first link before it.
    Missing { end: usize, first_link: Option<usize> },
    /// This component is not a directory; `dangling`: it is a link without a target.
    NotDirectory { end: usize, dangling: bool },
    /// This component is a link that must not be followed.
    Refused { end: usize, why: LinkRefusal },
    /// The system refuses.
    System { end: usize, errno: Errno },
}

impl OpenError {
    fn new(error: StepError, end: usize, first_link: Option<usize>) -> Self {
        match error {
            StepError::Missing => Self::Missing { end, first_link },
            StepError::NotDirectory => Self::NotDirectory { end, dangling: false },
            StepError::Dangling => Self::NotDirectory { end, dangling: true },
            StepError::Refused(why) => Self::Refused { end, why },
            StepError::System(errno) => Self::System { end, errno },
        }
    }

    /// The error of a call by path.
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::Missing { .. } | Self::NotDirectory { dangling: true, .. } => Errno::ENOENT,
            Self::NotDirectory { dangling: false, .. } => Errno::ENOTDIR,
            Self::Refused { .. } => Errno::ELOOP,
            Self::System { errno, .. } => errno,
        }
    }
}

/// How missing directories are made (reference 05 §6.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakeDirectory {
    /// Owner of the new ones.
    pub(crate) uid: u32,
    /// Group of the new ones.
    pub(crate) gid: u32,
    /// Mode of the new ones.
    pub(crate) mode: u32,
    /// Whether this is for something in the directory: then the new ones above it stay as the
    /// system makes them. Else the directory itself gets its owner and mode from its record.
    pub(crate) keep: bool,
}

/// What a directory without a record gets.
#[derive(Debug)]
struct Usual {
    /// User and group; `None`: as the system has made it.
    owner: Option<(u32, u32)>,
    mode: u32,
}

/// The open directories from the base to the current one.
pub(crate) struct Directories {
    base: Base,
    path: Vec<u8>,
    held: Vec<OpenDirectory>,
    rule: LinkRule,
    recorded: RecordedDirectories,
    made: Remembered,
    /// The objects that this job has made, with the paths that they were made under.
    made_objects: Remembered,
    /// The paths of what stays, since the object of a record could not replace it.
    staying: Remembered,
    /// The paths of files with several names whose records have left what is there as it is.
    kept: Remembered,
    /// The parent of the last object that was no directory, if it could not be made.
    failed_parent: Option<OutputPath>,
}

impl Directories {
    /// No directory is open yet.
    pub(crate) fn new(rule: LinkRule) -> Self {
        Self {
            base: Base::Root,
            path: Vec::new(),
            held: Vec::new(),
            rule,
            recorded: RecordedDirectories::new(),
            made: Remembered::new(),
            made_objects: Remembered::new(),
            staying: Remembered::new(),
            kept: Remembered::new(),
            failed_parent: None,
        }
    }

    /// As if the clock of this host were so many seconds ahead of that of the storage.
    #[cfg(test)]
    pub(crate) fn be_ahead_of_storage(&mut self, seconds: i64) {
        self.rule.be_ahead_of_storage(seconds);
    }

    /// Makes the directory that an object is made in. If that failed for the object before, it is
    /// only opened, so that the error is that of the object itself: the inner result.
    pub(crate) fn make_parent(
        &mut self,
        path: &OutputPath,
        how: MakeDirectory,
    ) -> Result<Result<(), Errno>, OpenError> {
        if self.has_failed(path) {
            return Ok(self.open(path).map(drop).map_err(OpenError::errno));
        }
        let reached = self.reach_parent(path, how);
        if reached.is_err() {
            self.failed_parent = Some(path.clone());
        }
        reached.map(Ok)
    }

    /// The same without remembering that it failed.
    pub(crate) fn reach_parent(&mut self, path: &OutputPath, how: MakeDirectory) -> Result<(), OpenError> {
        self.make(path, how)?;
        self.failed_parent = None;
        Ok(())
    }

    /// Whether this is the parent of the last object, and could not be made.
    pub(crate) fn has_failed(&self, path: &OutputPath) -> bool {
        self.failed_parent.as_ref() == Some(path)
    }

    /// Opens an existing directory.
    pub(crate) fn open(&mut self, path: &OutputPath) -> Result<&mut OpenDirectory, OpenError> {
        self.go(path, path.as_bytes().len())?;
        self.last()
    }

    /// Opens a directory and makes what is missing of it. Returns whether it existed before.
    pub(crate) fn make(&mut self, path: &OutputPath, how: MakeDirectory) -> Result<bool, OpenError> {
        match self.go(path, path.as_bytes().len()) {
            Ok(()) => Ok(true),
            Err(OpenError::Missing { first_link: None, .. }) => self.make_missing(path, how).map(|()| false),
            Err(error) => Err(error),
        }
    }

    /// Makes the components that are missing after the last open one.
    fn make_missing(&mut self, path: &OutputPath, how: MakeDirectory) -> Result<(), OpenError> {
        let first = self.held.last().map_or(0, |dir| dir.end);
        for component in components(path.as_bytes(), first) {
            let end = component.end;
            let name = path.as_bytes().get(component).unwrap_or_default();
            self.note_modification();
            let rule = self.rule.clone();
            let dir = self.last()?;
            let guarded = dir.is_guarded(&rule);
            let directory = dir.handle();
            match mkdirat(directory, name, NEW_DIRECTORY) {
                Ok(()) => {
                    // A link is not followed here: what was just made is a directory.
                    let handle = open_directory(directory, name, OFlag::O_RDONLY)
                        .map_err(|errno| OpenError::System { end, errno })?;
                    let found = fstat(&handle);
                    let fresh = guarded || found.is_ok_and(|found| rule.is_fresh(&found));
                    let floor = floor_at(path, end, handle.as_fd(), self.last()?.floor)?;
                    self.push(path, end, Reached { handle, readable: true, through_link: false }, true, floor);
                    let made = path.as_bytes().get(..end).unwrap_or_default();
                    self.made.insert(&made);
                    if let Ok(found) = found {
                        self.made_objects.insert(&(made, Identity::of(&found)));
                    }
                    if fresh {
                        // The last one has a record, unless it is only the parent of a file.
                        let is_last = end == path.as_bytes().len();
                        let made = self.last()?.begin(how, is_last);
                        made.map_err(|errno| OpenError::System { end, errno })?;
                    }
                }
                // Another process was faster.
                Err(Errno::EEXIST) => self.go(path, end)?,
                Err(errno) => return Err(OpenError::System { end, errno }),
            }
        }
        Ok(())
    }

    /// Opens the first `end` bytes of the path.
    fn go(&mut self, path: &OutputPath, end: usize) -> Result<(), OpenError> {
        if self.held.is_empty() || self.base != path.base() {
            self.start_at(path)?;
        }
        let common = common_length(&self.path, path.as_bytes().get(..end).unwrap_or_default());
        while self.held.last().is_some_and(|dir| dir.end > common) {
            self.leave_last();
        }
        let start = self.held.last().map_or(0, |dir| dir.end);
        self.path.truncate(start);
        for component in components(path.as_bytes(), start).take_while(|component| component.end <= end) {
            let end = component.end;
            let name = path.as_bytes().get(component).unwrap_or_default();
            let rule = self.rule.clone();
            let dir = self.last()?;
            let first_link = dir.first_link;
            let (reached, floor) = step(&rule, path, end, dir.handle(), dir.floor, name)
                .map_err(|error| OpenError::new(error, end, first_link))?;
            self.push(path, end, reached, false, floor);
        }
        Ok(())
    }

    fn start_at(&mut self, path: &OutputPath) -> Result<(), OpenError> {
        self.leave_all();
        let handle = open_base(path.base()).map_err(|errno| OpenError::System { end: 0, errno })?;
        self.base = path.base();
        let floor = floor_at(path, 0, handle.as_fd(), None)?;
        let reached = Reached { handle, readable: true, through_link: false };
        self.held.push(OpenDirectory::new(0, reached, false, None, floor));
        Ok(())
    }

    /// Adds the directory of the first `end` bytes of `path`.
    fn push(&mut self, path: &OutputPath, end: usize, reached: Reached, made: bool, floor: Option<Floor>) {
        if self.held.len() >= MOST_HANDLES {
            let gone = self.held.remove(MOST_HANDLES / 2);
            gone.leave();
        }
        let before = self.held.last();
        let known = path.as_bytes().get(before.map_or(0, |dir| dir.end)..end).unwrap_or_default();
        self.path.extend_from_slice(known);
        let next = OpenDirectory::new(end, reached, made, before, floor);
        self.held.push(next);
    }

    fn last(&mut self) -> Result<&mut OpenDirectory, OpenError> {
        self.held.last_mut().ok_or(OpenError::System { end: 0, errno: Errno::EBADF })
    }

    fn leave_last(&mut self) {
        if let Some(dir) = self.held.pop() {
            dir.leave();
        }
    }

    /// Closes all handles, and sets the times of directories again.
    pub(crate) fn leave_all(&mut self) {
        while !self.held.is_empty() {
            self.leave_last();
        }
        self.path.clear();
    }

    /// Closes all handles, and changes nothing.
    pub(crate) fn abandon(&mut self) {
        self.held.clear();
        self.path.clear();
    }

    /// Closes the handle of a path, since another object takes its name.
    pub(crate) fn forget(&mut self, path: &OutputPath) {
        self.staying.remove(&path.as_bytes());
        if self.base != path.base() || common_length(&self.path, path.as_bytes()) != path.as_bytes().len() {
            return;
        }
        while self.held.last().is_some_and(|dir| dir.end >= path.as_bytes().len()) {
            self.leave_last();
        }
        self.path.truncate(self.held.last().map_or(0, |dir| dir.end));
    }

    /// The handle of the current directory, in which a name is about to be made or removed: if its
    /// record was applied already, its times will be set again.
    pub(crate) fn for_change(&mut self) -> Result<BorrowedFd<'_>, Errno> {
        self.note_modification();
        self.handle().ok_or(Errno::EBADF)
    }

    fn note_modification(&mut self) {
        let Some(dir) = self.held.last_mut().filter(|dir| !dir.modified) else { return };
        dir.modified = true;
        if self.recorded.is_empty() {
            return;
        }
        if let Ok(stat) = fstat(&dir.handle)
            && self.recorded.contains(stat.st_dev, stat.st_ino)
        {
            dir.times = Some((
                TimeSpec::new(stat.st_atime, stat.st_atime_nsec),
                TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec),
            ));
        }
    }

    /// Nothing has come of a change in the current directory, whose status was this one.
    pub(crate) fn set_times_again(&self, before: &FileStat) {
        let accessed = TimeSpec::new(before.st_atime, before.st_atime_nsec);
        let modified = TimeSpec::new(before.st_mtime, before.st_mtime_nsec);
        let _times = self.current().map(|target| target.set_exact_times(accessed, modified));
    }

    /// The record of this directory is known, and is applied later: until then it stays as the job
    /// has made it, also when the job leaves it.
    pub(crate) fn expect_record(&mut self, path: &OutputPath) {
        let end = path.as_bytes().len();
        if self.base == path.base()
            && common_length(&self.path, path.as_bytes()) == end
            && let Some(dir) = self.held.iter_mut().find(|dir| dir.end == end)
        {
            dir.usual = None;
        }
    }

    /// To be called after the record of the current directory was applied to it.
    pub(crate) fn note_record(&mut self) {
        let Some(dir) = self.held.last_mut() else { return };
        dir.usual = None;
        dir.modified = false;
        dir.guarded = None;
        dir.times = None;
        if let Ok(stat) = fstat(&dir.handle) {
            self.recorded.insert(stat.st_dev, stat.st_ino);
        }
    }

    /// To be called after a symbolic link or a special file was made in the current directory.
    pub(crate) fn note_made(&mut self, path: &OutputPath, name: &[u8]) {
        let Some(dir) = self.held.last() else { return };
        if let Ok(made) = fstatat(&dir.handle, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            self.rule.learn(&made);
            self.note_object(path, Identity::of(&made));
        }
    }

    /// To be called with a file that was made and asked.
    pub(crate) fn note_file(&mut self, path: &OutputPath, file: NewFile) {
        self.rule.learn_of(file.identity.device(), file.made);
        self.note_object(path, file.identity);
    }

    /// Whether a file that is about to be made in the current directory is asked which one it is:
    /// where other users can change names. The first one tells how the clock there goes, too.
    pub(crate) fn asks_of_file(&mut self) -> bool {
        let is_first = self.held.last().is_some_and(|dir| dir.guarded.is_none());
        !self.is_guarded() || is_first
    }

    fn note_object(&mut self, path: &OutputPath, identity: Identity) {
        self.made_objects.insert(&(path.as_bytes(), identity));
    }

    /// What has this path stays, since the object of a record could not replace it.
    pub(crate) fn note_that_stays(&mut self, path: &OutputPath) {
        self.staying.insert(&path.as_bytes());
    }

    /// Whether what has this path stays in the place of what a record was to make.
    pub(crate) fn stays_for_another(&self, path: &OutputPath) -> bool {
        self.staying.contains(&path.as_bytes())
    }

    /// The record of a file with several names has left what has this path as it is.
    pub(crate) fn note_kept(&mut self, path: &OutputPath) {
        self.kept.insert(&path.as_bytes());
    }

    /// Whether a record has left what has this path as it is.
    pub(crate) fn was_kept(&self, path: &OutputPath) -> bool {
        self.kept.contains(&path.as_bytes())
    }

    /// Whether what was found under a path in the current directory may get owner and mode from a
    /// record with this owner that makes no object: whoever can change the names there has put
    /// nobody else's object in its place.
    pub(crate) fn may_update(&mut self, path: &OutputPath, found: &FileStat, (uid, gid): (u32, u32)) -> bool {
        if self.is_guarded() || (found.st_uid, found.st_gid) == (uid, gid) {
            return true;
        }
        // Who alone can change them owns it as well.
        let directory = self.held.last().and_then(|dir| fstat(&dir.handle).ok());
        let is_of_its_owner = |dir: FileStat| dir.st_uid == found.st_uid && dir.st_mode & 0o022 == 0;
        directory.is_some_and(is_of_its_owner) || self.made_objects.contains(&(path.as_bytes(), Identity::of(found)))
    }

    /// The owner of the current directory, which was reached by `path`, if it may not get owner and
    /// mode of a record with this one and this time of change in seconds: it belongs to another
    /// user, neither it nor who alone can change its name there, and no restore has made it.
    /// Nothing can be a name of a directory beside its own, so in a sticky directory its owner has
    /// put it there.
    pub(crate) fn put_there_by_another(
        &self,
        path: &OutputPath,
        owner: (u32, u32),
        recorded: i64,
    ) -> Option<(u32, u32)> {
        let dir = self.held.last()?;
        // What is behind a link was judged with that. The root directory's name can't be changed.
        if dir.made || dir.last_link == Some(dir.end) || dir.end == 0 {
            return None;
        }
        let found = fstat(&dir.handle).ok()?;
        let above = || fstatat(&dir.handle, "..", AtFlags::empty());
        let is_its_own = (found.st_uid, found.st_gid) == owner
            || above().is_ok_and(|above| self.rule.guards_names_of(found.st_uid, &above))
            || is_unfinished_directory(&found, recorded)
            || hides_nothing(&found)
            || self.made_objects.contains(&(path.as_bytes(), Identity::of(&found)));
        (!is_its_own).then_some((found.st_uid, found.st_gid))
    }

    /// Whether what was found in a directory under a path may get another name by a record with
    /// this owner: it is not what some other user has put in its place.
    pub(crate) fn may_link(
        &self,
        directory: BorrowedFd<'_>,
        path: &OutputPath,
        found: &FileStat,
        owner: (u32, u32),
    ) -> bool {
        self.rule.is_ours(found)
            || (found.st_uid, found.st_gid) == owner
            || fstat(directory).is_ok_and(|directory| self.rule.keeps_its_names(&directory))
            || self.made_objects.contains(&(path.as_bytes(), Identity::of(found)))
    }

    /// Whether an object with this status is as it was before the job began. One that has changed
    /// since may have existed, too.
    pub(crate) fn is_untouched(&self, found: &FileStat) -> bool {
        self.rule.precedes(found, None)
    }

    /// Whether an object that is held existed before the job began.
    pub(crate) fn is_old(&self, held: &File) -> Result<bool, Errno> {
        Ok(self.rule.precedes(&fstat(held)?, birth(held)))
    }

    /// The name of what was found at `path`, as `name` in the current directory, if it has another
    /// one, which the file system takes for the same, and was made since the job began. That is the
    /// name there, or one from a directory on the way that has another name.
    pub(crate) fn other_name(&self, path: &OutputPath, name: &[u8], found: &FileStat) -> Option<Vec<u8>> {
        let here = self.handle()?;
        let object = File::from(pin(here, name).ok()?);
        if !self.rule.is_of_its_time(found, birth(&object)) {
            return None;
        }
        real_name(here, name, found).or_else(|| Some([self.other_way(path)?.as_slice(), b"/", name].concat()))
    }

    /// The same of the current directory, which was reached by `path`, if the job has made it by
    /// another one.
    pub(crate) fn other_directory(&self, path: &OutputPath) -> Option<Vec<u8>> {
        if self.was_made(path) {
            return None;
        }
        let held = File::from(self.second_handle().ok()?);
        let is_new = self.rule.is_of_its_time(&fstat(&held).ok()?, birth(&held));
        if is_new { self.other_way(path) } else { None }
    }

    /// The path of the current directory from one on that has another name than that in `path`. How
    /// the place of the restore is written is not asked.
    fn other_way(&self, path: &OutputPath) -> Option<Vec<u8>> {
        self.held.iter().zip(self.held.iter().skip(1)).find_map(|(above, dir)| {
            let name = self.path.get(above.end..dir.end)?;
            let name = name.strip_prefix(b"/").unwrap_or(name);
            if path.floor().is_some_and(|floor| dir.end <= floor) || name.contains(&b'/') {
                return None;
            }
            let other = real_name(above.handle(), name, &fstat(&dir.handle).ok()?)?;
            Some([other.as_slice(), self.path.get(dir.end..)?].concat())
        })
    }

    /// Whether this job made the directory.
    pub(crate) fn was_made(&self, path: &OutputPath) -> bool {
        let path = path.as_bytes();
        let held = self.held.iter().any(|dir| dir.made && dir.end == path.len())
            && common_length(&self.path, path) == path.len();
        held || self.made.contains(&path)
    }

    /// Whether only this process can change which objects the names in the current directory mean.
    pub(crate) fn is_guarded(&mut self) -> bool {
        let rule = self.rule.clone();
        self.held.last_mut().is_some_and(|dir| dir.is_guarded(&rule))
    }

    /// Whether the current directory is on a local file system, where closing a file can't fail.
    pub(crate) fn is_local(&mut self) -> bool {
        self.held.last_mut().is_some_and(|dir| *dir.local.get_or_insert_with(|| is_local(&dir.handle)))
    }

    /// The handle of the current directory.
    pub(crate) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.held.last().map(OpenDirectory::handle)
    }

    /// Where the path of the current directory begins.
    pub(crate) const fn base(&self) -> Base {
        self.base
    }

    /// The path of the last symbolic link on the way to the current directory.
    pub(crate) fn last_link(&self) -> Option<&[u8]> {
        let end = self.held.last()?.last_link?;
        self.path.get(..end)
    }

    /// Whether any of them gets its times again when it is left.
    pub(crate) fn keep_times(&self) -> bool {
        self.held.iter().any(|dir| dir.times.is_some())
    }

    /// A second handle of the current directory.
    pub(crate) fn second_handle(&self) -> Result<OwnedFd, Errno> {
        let handle = self.handle().ok_or(Errno::EBADF)?;
        handle.try_clone_to_owned().map_err(|_| Errno::EMFILE)
    }

    /// What metadata of the current directory is applied to.
    pub(crate) fn current(&self) -> Option<Target<'_>> {
        self.held.last().map(OpenDirectory::target)
    }

    /// A second handle of a directory, without leaving the current one.
    pub(crate) fn open_aside(&self, path: &OutputPath) -> Result<OwnedFd, OpenError> {
        let no = |errno| OpenError::System { end: 0, errno };
        let common = common_length(&self.path, path.as_bytes());
        let known = self.held.iter().rev().find(|dir| self.base == path.base() && dir.end <= common);
        let (mut handle, mut floor, start) = if let Some(dir) = known {
            (dir.handle.try_clone().map_err(|_| no(Errno::EMFILE))?, dir.floor, dir.end)
        } else {
            let base = open_base(path.base()).map_err(no)?;
            let floor = floor_at(path, 0, base.as_fd(), None)?;
            (base, floor, 0)
        };
        for component in components(path.as_bytes(), start) {
            let end = component.end;
            let name = path.as_bytes().get(component).unwrap_or_default();
            let stepped = step(&self.rule, path, end, handle.as_fd(), floor, name);
            let (reached, below) = stepped.map_err(|error| OpenError::new(error, end, None))?;
            (handle, floor) = (reached.handle, below);
        }
        Ok(handle)
    }
}

/// When an object that is held was made, in seconds and nanoseconds since 1970, where that is
/// recorded.
fn birth(held: &File) -> Option<(i64, i64)> {
    let born = held.metadata().ok()?.created().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((i64::try_from(born.as_secs()).ok()?, i64::from(born.subsec_nanos())))
}

/// Goes to the directory of the first `end` bytes of `path`, called `name` in its parent `from`,
/// whose floor is known.
fn step(
    rule: &LinkRule,
    path: &OutputPath,
    end: usize,
    from: BorrowedFd<'_>,
    floor: Option<Floor>,
    name: &[u8],
) -> Result<(Reached, Option<Floor>), StepError> {
    let reached = rule.step(from, name)?;
    let is_behind = path.floor().is_some_and(|floor| end > floor);
    if is_behind && reached.through_link && !floor.is_some_and(|floor| floor.is_above(reached.handle.as_fd())) {
        return Err(StepError::Refused(LinkRefusal::LeadsOut));
    }
    let floor = floor_at(path, end, reached.handle.as_fd(), floor).map_err(|error| StepError::System(error.errno()))?;
    Ok((reached, floor))
}

/// The floor of the directory of the first `end` bytes of `path`, whose parent has the floor
/// `above`.
fn floor_at(
    path: &OutputPath,
    end: usize,
    directory: BorrowedFd<'_>,
    above: Option<Floor>,
) -> Result<Option<Floor>, OpenError> {
    if path.floor() != Some(end) {
        return Ok(above);
    }
    Floor::of(directory).map(Some).map_err(|errno| OpenError::System { end, errno })
}

fn open_base(base: Base) -> Result<OwnedFd, Errno> {
    let name: &[u8] = match base {
        Base::Root => b"/",
        Base::Current => b".",
    };
    open_directory(AT_FDCWD, name, OFlag::O_RDONLY)
}
