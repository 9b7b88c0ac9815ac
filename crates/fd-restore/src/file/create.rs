//! Creating the object of an attribute record: whether it exists, whether it is replaced, and what
//! it is (reference 05 §6).

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use fd_messages::{CancelToken, MessageType};
use fd_metadata::{make_special, pin};
use fd_records::{FileType, Replace, Stat};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, linkat, symlinkat, unlinkat};

use super::item::RestoreItem;
use super::plan::{Object, Place, Plan};
use super::replace::{changes_what_exists, is_too_new, reason_to_skip};
use super::special::{NotOpened, open_for_data, takes_data};
use crate::created::{Created, Taker};
use crate::digests::may_be_read_back;
use crate::output_file::{OutputFile, is_unfinished};
use crate::report::Report;
use crate::texts::{self, NoData};
use crate::tree::{Directories, LinkRefusal, OpenError, OutputPath};

/// The first name of a hard link.
struct FirstName {
    directory: OwnedFd,
    name: Vec<u8>,
    found: FileStat,
    /// Whether it is another file than the one that was saved, which was there before.
    is_another: bool,
}

/// Why a hard link could not be made.
enum LinkError {
    /// The first name may still be restored.
    NotYet,
    /// The first name is that of the file as it was at another time.
    Changed,
    /// The data of the first name is not whole.
    Unfinished,
    /// The first name may be that of another file now: another user can change it.
    Replaced,
    /// This symbolic link on the path of the first name must not be followed.
    Refused(Vec<u8>, LinkRefusal),
    Failed(Errno),
}

/// A step in creating one object; the error ends it early.
type Step<T> = Result<T, Created>;

/// When a hard link is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Now, or later, when its first name is restored.
    MayWait,
    Now,
    /// It has waited.
    Late,
}

/// Whether what is there is the file that was saved, by its size, time and type.
fn is_as_saved(item: &RestoreItem, found: &FileStat) -> bool {
    let there = (found.st_size, found.st_mtime, found.st_mode & Stat::MODE_TYPE);
    there == (item.stat.size, item.stat.mtime, item.stat.mode_type())
}

/// Creates objects.
pub(crate) struct Creator<'a, 'b> {
    pub(crate) directories: &'a mut Directories,
    pub(crate) report: &'a mut Report<'b>,
    pub(crate) replace: Replace,
    /// Whether encrypted data can be restored.
    pub(crate) has_keys: bool,
    /// Whether data of the file has come.
    pub(crate) has_data: bool,
    /// Whether a file that is open for writing only can be opened again to be read.
    pub(crate) can_reopen: bool,
    pub(crate) turn: Turn,
    pub(crate) cancel: &'a CancelToken,
}

impl Creator<'_, '_> {
    /// Creates the object of `item`.
    pub(crate) fn create(&mut self, item: &RestoreItem) -> Created {
        let made = match Plan::of(item) {
            Ok(Plan::Object(object, place)) => self.object(item, object, &place),
            Ok(Plan::Directory(path)) => self.directory(item, path),
            Ok(Plan::Nothing(path)) => self.nothing(item, path),
            Err((kind, text)) => {
                self.report.now(kind, &text);
                Err(Created::Nothing)
            }
        };
        made.unwrap_or_else(|early| early)
    }

    /// Fails with a message that is delivered at once.
    fn refuse<T>(&mut self, text: &[u8]) -> Step<T> {
        self.report.now(MessageType::Error, text);
        Err(Created::Nothing)
    }

    /// Fails with a message that the stock daemon queues.
    fn fail<T>(&mut self, text: Vec<u8>) -> Step<T> {
        self.report.later(MessageType::Error, text);
        Err(Created::Nothing)
    }

    /// Types that were never saved, or that are not files.
    fn nothing(&mut self, item: &RestoreItem, path: &OutputPath) -> Step<Created> {
        if let Some((parent, name)) = path.split() {
            let existing = self.existing(item, &parent, name)?;
            self.decide(item, path, existing.as_ref(), |here| pin(here, name))?;
        }
        let (kind, text) = match item.file_type {
            Some(FileType::Deleted) => (MessageType::Info, texts::was_deleted(&item.name)),
            Some(file_type) if (FileType::NoAccess.code()..=FileType::NoOpen.code()).contains(&file_type.code()) => {
                (MessageType::Error, texts::was_not_saved(&item.name, item.type_code))
            }
            _ => (MessageType::Error, texts::unknown_type(&item.name, item.type_code)),
        };
        self.report.later(kind, text);
        Ok(Created::Nothing)
    }

    /// The status of the existing object at the path, if there is one. Links are not followed.
    fn existing(&mut self, item: &RestoreItem, parent: &OutputPath, name: &[u8]) -> Step<Option<FileStat>> {
        match self.directories.open(parent) {
            Ok(directory) => match fstatat(directory.handle(), name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(found) => Ok(Some(found)),
                Err(Errno::ENOENT) => Ok(None),
                // What makes the object says what is wrong.
                Err(Errno::ENAMETOOLONG | Errno::EINVAL | Errno::EACCES) if !changes_what_exists(item) => Ok(None),
                Err(errno) => self.fail(texts::not_examined(&item.output, errno)),
            },
            Err(OpenError::Refused { end, why }) => {
                self.refuse(&texts::link_refused(&item.output, prefix(&item.output, parent, end), why))
            }
            // To make its parent would fail in the same way, and says so.
            Err(OpenError::System { errno, .. }) if changes_what_exists(item) => {
                self.fail(texts::not_examined(&item.output, errno))
            }
            Err(_) => Ok(None),
        }
    }

    /// Whether the record is to be restored in view of what exists (reference 05 §6.1). `grasp`
    /// opens that from the current directory.
    fn decide(
        &mut self,
        item: &RestoreItem,
        path: &OutputPath,
        existing: Option<&FileStat>,
        grasp: impl FnOnce(BorrowedFd<'_>) -> Result<OwnedFd, Errno>,
    ) -> Step<()> {
        let matters = existing.is_some() && self.replace != Replace::Always && changes_what_exists(item);
        let is_old = matters && {
            let object = self.here().and_then(grasp);
            object.and_then(|object| self.directories.is_old(&File::from(object))).unwrap_or(true)
        };
        let skip = reason_to_skip(item, existing, is_old, self.replace).filter(|skip| {
            // A directory that this job had to make for a file still needs its own attributes.
            !(item.is_directory() && is_too_new(*skip) && self.directories.was_made(path))
        });
        match skip {
            None => Ok(()),
            Some(why) => {
                // The links to it need not wait.
                if item.stat.nlink > 1 && !item.is_directory() {
                    self.directories.note_kept(path);
                }
                self.report.later(MessageType::Skipped, texts::skipped(why, &item.output));
                Err(Created::Kept)
            }
        }
    }

    /// Creates everything except directories.
    fn object(&mut self, item: &RestoreItem, object: Object, place: &Place<'_>) -> Step<Created> {
        if object == Object::Unnamed {
            return self.unnamed(item, place);
        }
        if object != Object::NewFile {
            self.make_room(item, place)?;
        }
        let ready = self.prepare_parent(item, &place.parent)?;
        match object {
            Object::NewFile | Object::Unnamed => self.new_file(item, place, ready),
            Object::ExistingFile => self.existing_file(item, place, ready),
            Object::Symlink => self.symlink(item, place, ready),
            Object::HardLink => self.hard_link(item, place.name, ready),
            Object::Special => self.special(item, place, ready),
        }
    }

    /// Says that nothing can be made of a name with a slash at its end. What has it without stays.
    fn unnamed(&mut self, item: &RestoreItem, place: &Place<'_>) -> Step<Created> {
        let existing = self.existing(item, &place.parent, place.name)?;
        self.decide(item, place.path, existing.as_ref(), |here| pin(here, place.name))?;
        self.refuse(&texts::no_file_name(&item.name))
    }

    /// Removes the existing object, if it is to be replaced.
    fn make_room(&mut self, item: &RestoreItem, place: &Place<'_>) -> Step<()> {
        let Place { path, ref parent, name } = *place;
        let existing = self.existing(item, parent, name)?;
        self.decide(item, path, existing.as_ref(), |here| pin(here, name))?;
        let is_of_another = |found| is_unfinished(&found, item.stat.mtime) || self.directories.stays_for_another(path);
        if changes_what_exists(item) && existing.is_some_and(is_of_another) {
            return self.refuse(&texts::belongs_to_unfinished(&item.output));
        }
        let Some(existing) = existing.filter(|_| !stays(item)) else { return Ok(()) };
        let removed = self.remove(item, place, existing);
        if matches!(removed, Err(Created::Nothing)) {
            self.directories.note_that_stays(path);
        }
        removed
    }

    /// Removes what is to be replaced.
    fn remove(&mut self, item: &RestoreItem, place: &Place<'_>, existing: FileStat) -> Step<()> {
        let Place { path, name, .. } = *place;
        if item.has_encrypted_data() && !self.has_keys {
            return self.refuse(&texts::kept_without_keys(&item.output));
        }
        if item.needs_data() && !self.has_data {
            return Err(Created::Waiting);
        }
        let mut first_name = None;
        if item.file_type == Some(FileType::HardLink) {
            // What is there may be the only copy, or the first name itself by another path.
            let first = self.first_name(item).or_else(|error| self.not_linked(item, error))?;
            if (existing.st_dev, existing.st_ino) == (first.found.st_dev, first.found.st_ino) {
                return Err(Created::ByCore);
            }
            // Those of files may differ in a file system: in an overlay they are of the layers.
            let devices =
                [self.here(), Ok(first.directory.as_fd())].map(|at| at.and_then(fstat).map(|stat| stat.st_dev));
            if devices[0] != devices[1] {
                return self.not_linked(item, LinkError::Failed(Errno::EXDEV));
            }
            if first.is_another {
                return self.refuse(&texts::kept_without_first_name(&item.output, &item.link.text));
            }
            first_name = Some(first);
        }
        if let Some(other) = self.directories.other_name(path, name, &existing) {
            return self.refuse(&texts::name_taken(&item.output, &other));
        }
        if let Some(first) = first_name {
            return self.replace_by_link(item, place, &existing, &first);
        }
        let here = self.directories.for_change();
        let removed = here.and_then(|here| unlinkat(here, name, UnlinkatFlags::NoRemoveDir));
        match removed {
            Ok(()) => {
                self.directories.forget(path);
                Ok(())
            }
            Err(errno) => self.fail(texts::not_replaced(&item.output, errno)),
        }
    }

    /// Makes a hard link beside what it replaces, which stays if that can't be done.
    fn replace_by_link(
        &mut self,
        item: &RestoreItem,
        place: &Place<'_>,
        existing: &FileStat,
        first: &FirstName,
    ) -> Step<()> {
        if existing.st_mode & Stat::MODE_TYPE == Stat::MODE_DIRECTORY {
            return self.fail(texts::not_replaced(&item.output, Errno::EISDIR));
        }
        let beside = format!(".ferrofd-{:016x}", RandomState::new().hash_one(place.name)).into_bytes();
        let replaced = self.directories.for_change().and_then(|here| {
            let before = fstat(here)?;
            linkat(&first.directory, first.name.as_slice(), here, beside.as_slice(), AtFlags::empty())?;
            let renamed = renameat(here, beside.as_slice(), here, place.name);
            // It stays where it could not be renamed, and where both are names of one file.
            let _gone = unlinkat(here, beside.as_slice(), UnlinkatFlags::NoRemoveDir);
            Ok(renamed.map_err(|errno| (errno, before)))
        });
        match replaced {
            Ok(Ok(())) => {
                self.directories.forget(place.path);
                Err(Created::ByCore)
            }
            Ok(Err((errno, before))) => {
                self.directories.set_times_again(&before);
                self.fail(texts::not_replaced(&item.output, errno))
            }
            Err(errno) => self.not_linked(item, LinkError::Failed(errno)),
        }
    }

    /// The handle of the current directory.
    fn here(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.directories.handle().ok_or(Errno::EBADF)
    }

    /// Makes the parent directory; the inner result is that of opening it, where the error is to be
    /// that of the object.
    fn prepare_parent(&mut self, item: &RestoreItem, parent: &OutputPath) -> Step<Result<(), Errno>> {
        self.directories.make_parent(parent, item.directories(false)).or_else(|error| {
            let shown = item.output.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            self.not_made(item, item.output.get(..shown).unwrap_or_default(), parent, error, true)
        })
    }

    /// Reports why a directory could not be opened or made. `shown` is its name, as messages show
    /// it.
    fn not_made<T>(
        &mut self,
        item: &RestoreItem,
        shown: &[u8],
        path: &OutputPath,
        error: OpenError,
        is_parent: bool,
    ) -> Step<T> {
        let whole = path.as_bytes().len();
        // The stock daemon looks at it up to its last slash, and then at the rest.
        let is_own_name = is_parent || !shown.ends_with(b"/");
        let text = match error {
            OpenError::NotDirectory { end, dangling: false } if is_own_name && end == whole => {
                texts::path_not_directory(shown)
            }
            OpenError::NotDirectory { end, .. } | OpenError::Missing { first_link: Some(end), .. } => {
                texts::component_not_directory(prefix(shown, path, end))
            }
            OpenError::Missing { end, first_link: None } => {
                texts::cannot_create_directory(prefix(shown, path, end), Errno::ENOENT)
            }
            OpenError::Refused { end, why } => texts::link_refused(&item.output, prefix(shown, path, end), why),
            OpenError::System { end, errno } => texts::cannot_create_directory(prefix(shown, path, end), errno),
        };
        self.refuse(&text)
    }

    fn directory(&mut self, item: &RestoreItem, path: &OutputPath) -> Step<Created> {
        // No name is not the daemon's own directory, which would get another owner and mode.
        if item.output.is_empty() {
            return self.refuse(&texts::cannot_create_directory(&item.output, Errno::ENOENT));
        }
        let existing = self.directories.open(path).ok().and_then(|directory| fstat(directory.handle()).ok());
        self.decide(item, path, existing.as_ref(), |here| pin(here, b"."))?;
        if let Err(error) = self.directories.make(path, item.directories(true)) {
            return self.not_made(item, &item.output, path, error, false);
        }
        let owner = (item.stat.uid, item.stat.gid);
        let text = if let Some(found) = self.directories.put_there_by_another(path, owner, item.stat.mtime) {
            texts::directory_refused(&item.output, found, owner)
        } else if let Some(other) = self.directories.other_directory(path) {
            texts::name_taken(&item.output, &other)
        } else {
            return Ok(Created::ByCore);
        };
        self.report.now(MessageType::Error, &text);
        Err(Created::Kept)
    }

    /// Makes a regular file that, as a rule, does not exist.
    fn new_file(&mut self, item: &RestoreItem, place: &Place<'_>, ready: Result<(), Errno>) -> Step<Created> {
        // A long one may be read back for its digest, and any one whose digest is not expected.
        let to_be_read = may_be_read_back(item.stat.size) || !self.can_reopen;
        let open_new = |creator: &mut Self| creator.open_new(place.name, to_be_read, item.is_of_plugin);
        let mut outcome = ready.and_then(|()| open_new(self));
        if outcome.as_ref().err() == Some(&Errno::EEXIST) {
            self.make_room(item, place)?;
            outcome = open_new(self);
        } else if ready.is_ok() && outcome.as_ref().err() == Some(&Errno::ENOENT) {
            // Another process removed the directory while it was held.
            self.directories.leave_all();
            let again = self.prepare_parent(item, &place.parent)?;
            outcome = again.and_then(|()| open_new(self));
        }
        match outcome {
            Ok(file) => Ok(Created::Data(Taker::File(file))),
            Err(errno) => self.fail(texts::could_not_create(&item.output, errno)),
        }
    }

    /// Creates a file that does not exist, for writing and, if permitted, for reading. Patches may
    /// follow those of plugins.
    fn open_new(&mut self, name: &[u8], to_be_read: bool, is_of_plugin: bool) -> Result<OutputFile, Errno> {
        let is_asked = is_of_plugin || self.directories.asks_of_file();
        OutputFile::make(self.directories.for_change()?, name, to_be_read, is_asked)
    }

    /// Opens a file to be patched. An update of attributes needs no open file; if the file does not
    /// exist, an empty one is created, if that is what was saved.
    fn existing_file(&mut self, item: &RestoreItem, place: &Place<'_>, ready: Result<(), Errno>) -> Step<Created> {
        let name = place.name;
        let found = ready.and_then(|()| fstatat(self.here()?, name, AtFlags::AT_SYMLINK_NOFOLLOW));
        if item.is_update {
            return if found.is_ok() { Ok(Created::ByCore) } else { self.new_file(item, place, ready) };
        }
        if found.is_ok_and(|found| found.st_mode & Stat::MODE_TYPE != Stat::MODE_REGULAR) {
            // Some devices act as soon as they are opened.
            return self.fail(texts::could_not_create(&item.output, Errno::EINVAL));
        }
        // Non-blocking, since another process may have put a fifo there.
        let how = if found.is_ok() { OFlag::empty() } else { OFlag::O_CREAT | OFlag::O_EXCL };
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | how;
        let here = self.directories.for_change();
        let outcome = ready.and_then(|()| openat(here?, name, flags, Mode::S_IRUSR | Mode::S_IWUSR));
        let regular = outcome.and_then(|file| match fstat(&file) {
            Ok(stat) if stat.st_mode & Stat::MODE_TYPE == Stat::MODE_REGULAR => Ok((file, stat)),
            Ok(_) => Err(Errno::EINVAL),
            Err(errno) => Err(errno),
        });
        let owner = (item.stat.uid, item.stat.gid);
        match regular {
            Ok((_, stat)) if found.is_ok() && !self.directories.may_update(place.path, &stat, owner) => {
                self.refuse(&texts::patch_refused(&item.output))
            }
            Ok((file, _)) => Ok(Created::Data(Taker::File(OutputFile::existing(file)))),
            Err(errno) => self.fail(texts::could_not_create(&item.output, errno)),
        }
    }

    fn symlink(&mut self, item: &RestoreItem, place: &Place<'_>, ready: Result<(), Errno>) -> Step<Created> {
        let target = &item.link.text;
        match ready.and_then(|()| symlinkat(target.as_slice(), self.directories.for_change()?, place.name)) {
            Ok(()) => {
                self.directories.note_made(place.path, place.name);
                Ok(Created::ByCore)
            }
            // What is there stays, and only its attributes are needed.
            Err(Errno::EEXIST) if item.is_update => Ok(Created::ByCore),
            Err(errno) => self.fail(texts::could_not_symlink(&item.output, target, errno)),
        }
    }

    fn hard_link(&mut self, item: &RestoreItem, name: &[u8], ready: Result<(), Errno>) -> Step<Created> {
        match ready.map_err(LinkError::Failed).and_then(|()| self.link(item, name)) {
            Ok(is_another) => {
                if is_another {
                    self.report.now(MessageType::Warning, &texts::name_of_another(&item.output, &item.link.text));
                }
                Ok(Created::ByCore)
            }
            // The name exists already, and only its attributes are needed.
            Err(LinkError::Failed(Errno::EEXIST)) if item.is_update => Ok(Created::ByCore),
            Err(error) => self.not_linked(item, error),
        }
    }

    fn not_linked<T>(&mut self, item: &RestoreItem, error: LinkError) -> Step<T> {
        match error {
            LinkError::NotYet => Err(Created::Late),
            LinkError::Failed(errno) => self.fail(texts::could_not_link(&item.output, &item.link.text, errno)),
            LinkError::Replaced => self.refuse(&texts::first_name_replaced(&item.output, &item.link.text)),
            LinkError::Changed => self.refuse(&texts::first_name_changed(&item.output, &item.link.text)),
            LinkError::Unfinished => self.refuse(&texts::belongs_to_unfinished(&item.output)),
            LinkError::Refused(link, why) => self.refuse(&texts::link_refused(&item.output, &link, why)),
        }
    }

    /// The first name of a hard link, which was restored before.
    fn first_name(&mut self, item: &RestoreItem) -> Result<FirstName, LinkError> {
        let text = &item.link.text;
        let may_be_late = self.turn == Turn::MayWait && !item.is_update;
        let failed = |errno| match errno {
            Errno::ENOENT if may_be_late => LinkError::NotYet,
            _ => LinkError::Failed(errno),
        };
        let first = item.first_name().map_err(|_| LinkError::Failed(Errno::EXDEV))?;
        let (parent, name) = first.split().ok_or(LinkError::Failed(Errno::EPERM))?;
        let directory = self.directories.open_aside(&parent).map_err(|error| match error {
            OpenError::Refused { end, why } => LinkError::Refused(prefix(text, &parent, end).to_vec(), why),
            other => failed(other.errno()),
        })?;
        let found = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(failed)?;
        if may_be_late && self.may_be_replaced(item, &first, &found) {
            return Err(LinkError::NotYet);
        }
        if is_unfinished(&found, item.stat.mtime) {
            return Err(LinkError::Unfinished);
        }
        if found.st_mode & Stat::MODE_TYPE == Stat::MODE_DIRECTORY {
            return Err(LinkError::Failed(Errno::EPERM));
        }
        if !self.directories.may_link(directory.as_fd(), &first, &found, (item.stat.uid, item.stat.gid)) {
            return Err(LinkError::Replaced);
        }
        let is_another = self.is_another(item, directory.as_fd(), &first, name, &found);
        // A job without an accurate list does not say that the link was gone when the file changed.
        if self.turn == Turn::Late && !is_another && !is_as_saved(item, &found) {
            return Err(LinkError::Changed);
        }
        Ok(FirstName { name: name.to_vec(), directory, found, is_another })
    }

    /// Whether the record of a hard link's first name, if it is still to come, may replace what has
    /// that name. It may have another time than the record of the link: the file may have changed
    /// before the job was resumed.
    fn may_be_replaced(&self, item: &RestoreItem, path: &OutputPath, found: &FileStat) -> bool {
        self.directories.is_untouched(found)
            && !self.directories.stays_for_another(path)
            && !self.directories.was_kept(path)
            && (self.replace != Replace::Never || is_unfinished(found, item.stat.mtime))
    }

    /// Whether the first name of a hard link is that of another file, which was there before the
    /// job, or could not be replaced.
    fn is_another(
        &self,
        item: &RestoreItem,
        directory: BorrowedFd<'_>,
        path: &OutputPath,
        name: &[u8],
        found: &FileStat,
    ) -> bool {
        let is_old = || pin(directory, name).and_then(|object| self.directories.is_old(&File::from(object)));
        !is_as_saved(item, found) && (self.directories.stays_for_another(path) || is_old().unwrap_or(false))
    }

    /// Makes a hard link to a file that was restored before. Returns whether it is another one,
    /// which was there before.
    fn link(&mut self, item: &RestoreItem, name: &[u8]) -> Result<bool, LinkError> {
        let first = self.first_name(item)?;
        let here = self.directories.for_change();
        let linked =
            here.and_then(|here| linkat(&first.directory, first.name.as_slice(), here, name, AtFlags::empty()));
        linked.map(|()| first.is_another).map_err(LinkError::Failed)
    }

    /// A special file, and what its data goes to (reference 05 §6.2). Unlike in the stock daemon,
    /// data is written only to what existed before the job and has the record's type, and only
    /// without `where`: so data on a volume overwrites nothing that the volume itself makes, and no
    /// other file.
    fn special(&mut self, item: &RestoreItem, place: &Place<'_>, ready: Result<(), Errno>) -> Step<Created> {
        let (stat, path, name) = (&item.stat, place.path, place.name);
        let has_data = item.file_type != Some(FileType::Special) && !item.is_update;
        if has_data {
            if !takes_data(stat.mode) {
                return self.no_data(item, &NoData::NotSpecial(stat.mode));
            }
            // Held, so that what is examined is what is opened.
            let there = ready.and_then(|()| pin(self.here()?, name));
            if let Ok(there) = there {
                let found = fstat(&there);
                let owner = (stat.uid, stat.gid);
                if !found.is_ok_and(|found| self.directories.may_update(path, &found, owner)) {
                    return self.no_data(item, &NoData::OfAnother);
                }
                return match open_for_data(self.directories, path, name, stat.mode, &File::from(there), self.cancel) {
                    Ok(file) => Ok(Created::Data(Taker::File(OutputFile::waiting(file, self.cancel)))),
                    Err(NotOpened::Refused(why)) => self.no_data(item, &why),
                    Err(NotOpened::System(errno)) => self.fail(texts::could_not_open(&item.output, errno)),
                };
            }
        }
        if item.file_type == Some(FileType::Special) && stat.mode_type() == Stat::MODE_SOCKET {
            return Ok(Created::ByCore);
        }
        let is_fifo = stat.mode_type() == Stat::MODE_FIFO;
        let made = ready.and_then(|()| make_special(self.directories.for_change()?, name, stat.mode, stat.rdev));
        match made {
            Ok(()) => self.directories.note_made(path, name),
            Err(Errno::EEXIST) if stays(item) => {}
            Err(errno) if is_fifo => return self.fail(texts::cannot_make_fifo(&item.output, errno)),
            Err(errno) => return self.fail(texts::cannot_make_node(&item.output, errno)),
        }
        if has_data {
            self.report.now(MessageType::Error, &texts::no_data(&item.output, &NoData::JustMade));
        }
        Ok(Created::ByCore)
    }

    /// Reports why data is not written to a special file.
    fn no_data<T>(&mut self, item: &RestoreItem, why: &NoData) -> Step<T> {
        self.refuse(&texts::no_data(&item.output, why))
    }
}

/// Whether what exists under the name is not replaced: the record is for it.
const fn stays(item: &RestoreItem) -> bool {
    item.is_update || item.delta_seq != 0 || matches!(item.file_type, Some(FileType::Raw | FileType::Fifo))
}

/// The part of `shown` that corresponds to the first `end` bytes of `path`: messages show names as
/// they were given.
fn prefix<'a>(shown: &'a [u8], path: &OutputPath, end: usize) -> &'a [u8] {
    let wanted = path.as_bytes().get(..end).unwrap_or_default().split(|byte| *byte == b'/').count();
    let mut at = 0;
    let mut found = 0;
    for name in shown.split(|byte| *byte == b'/') {
        at += name.len();
        if !matches!(name, b"" | b".") {
            found += 1;
        }
        if found == wanted {
            return shown.get(..at).unwrap_or(shown);
        }
        at += 1;
    }
    shown
}
