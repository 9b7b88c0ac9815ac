//! Owner, mode and times of what was made (reference 05 §8).
//!
//! Whoever may not set them gets no message, as in the reference (05 §8.4): a daemon without root's
//! rights could give no file its owner. What else goes wrong is an error of that file.

use std::os::fd::AsFd as _;

use fd_messages::MessageType;
use fd_metadata::{AttributeFailures, Target, pin};
use fd_records::{FileType, Stat};
use nix::errno::Errno;
use nix::sys::stat::FileStat;

use crate::file::RestoreItem;
use crate::output_file::Identity;
use crate::report::Report;
use crate::texts::{self, AttributeLines};
use crate::tree::Directories;

use super::made::{AclsCome, Made};
use super::named::Named;

/// Reports what of a file's attributes could not be set once its data had come.
pub(super) fn tell_of_file(report: &mut Report<'_>, item: &RestoreItem, failures: AttributeFailures) {
    if let Some(errno) = failures.times {
        report.now(MessageType::Error, &texts::times_not_set(texts::OPEN_LINES, &item.output, errno));
    }
    tell(report, texts::OPEN_LINES, item, AttributeFailures { times: None, ..failures });
}

/// Reports what could not be set although it was permitted.
fn tell(report: &mut Report<'_>, lines: AttributeLines, item: &RestoreItem, failures: AttributeFailures) {
    let path = &item.output;
    let AttributeFailures { owner, mode, times, left_out } = failures;
    // No program is a directory: where there are no owners, there is nothing more to say of it.
    let bits_matter = owner.is_none() || !item.is_directory();
    let told = |errno: Option<Errno>| errno.filter(|errno| !is_silent(*errno));
    let owner = told(owner).map(|errno| texts::owner_not_set(lines, path, errno));
    let mode = told(mode).map(|errno| texts::modes_not_set(lines, path, errno));
    let times = told(times).map(|errno| texts::times_not_set(lines, path, errno));
    let bits = (left_out && bits_matter && owner.is_none() && mode.is_none()).then(|| texts::set_id_left_out(path));
    for text in [owner, mode, bits, times].into_iter().flatten() {
        report.now(MessageType::Error, &text);
    }
}

/// Whether an error says that this process may not do it, that this file system can't or is only
/// read (what could not be made there has its error), or that the object is gone.
fn is_silent(errno: Errno) -> bool {
    use Errno::{EACCES, EINVAL, ELOOP, ENOENT, ENOSYS, ENOTDIR, EOPNOTSUPP, EPERM, EROFS};
    matches!(errno, EPERM | EACCES | EROFS | EOPNOTSUPP | ENOSYS | EINVAL | ENOENT | ENOTDIR | ELOOP)
}

/// All of them have failed.
fn nothing_set(errno: Errno) -> AttributeFailures {
    AttributeFailures { owner: Some(errno), ..AttributeFailures::default() }
}

/// The messages about an object without an open file.
fn lines_of(item: &RestoreItem) -> AttributeLines {
    if item.stat.mode_type() == Stat::MODE_SYMLINK { texts::LINK_LINES } else { texts::NAME_LINES }
}

/// Sets the attributes of what has no data. Returns what metadata that follows is for.
pub(super) fn set_without_data(report: &mut Report<'_>, directories: &mut Directories, item: &RestoreItem) -> Made {
    let is_socket = item.stat.mode_type() == Stat::MODE_SOCKET;
    if item.file_type == Some(FileType::Special) && is_socket {
        return Made::Object;
    }
    if item.is_directory() {
        let mut stat = item.stat;
        if item.data_stream.layout().is_win32 && stat.rdev == 5 {
            // A Windows directory whose permissions mean nothing here.
            stat.mode = stat.mode & !0o1000 | 0o7;
        }
        if let Some(target) = directories.current() {
            tell(report, texts::NAME_LINES, item, target.set_attributes(&stat));
        }
        directories.note_record();
        let is_old = item.path.as_ref().is_ok_and(|path| !directories.was_made(path));
        return Made::Directory(AclsCome { is_old, access: false, default: false });
    }
    if item.is_update {
        return update(report, directories, item);
    }
    let guarded = directories.is_guarded();
    let (Some(directory), Some(name)) = (directories.handle(), item.last_name()) else { return Made::Object };
    let failures = if guarded {
        let target = Target::Named { directory, name };
        if is_the_file(item, || target.stat().ok()) { set_of_name(&target, item) } else { AttributeFailures::default() }
    } else {
        match pin(directory, name) {
            Ok(pinned) => set_of_pinned(&Target::Pinned { object: pinned.as_fd(), directory, name }, item),
            Err(errno) => nothing_set(errno),
        }
    };
    tell(report, lines_of(item), item, failures);
    Made::Object
}

/// Sets the attributes of an update to what its name means, if that is the object that it is for:
/// one that this job has made under this name, or that has the type and the owner already.
fn update(report: &mut Report<'_>, directories: &mut Directories, item: &RestoreItem) -> Made {
    let (Ok(path), Some(name)) = (&item.path, item.last_name()) else { return Made::Nothing };
    let held = directories.second_handle().and_then(|directory| Ok((pin(directory.as_fd(), name)?, directory)));
    let (pinned, directory) = match held {
        Ok(held) => held,
        Err(errno) => {
            tell(report, lines_of(item), item, nothing_set(errno));
            return Made::Nothing;
        }
    };
    let target = Target::Pinned { object: pinned.as_fd(), directory: directory.as_fd(), name };
    let found = target.stat().ok().filter(|found| is_of_type(item, found));
    let found = found.filter(|found| directories.may_update(path, found, (item.stat.uid, item.stat.gid)));
    let Some(found) = found else {
        report.now(MessageType::Error, &texts::update_refused(&item.output));
        return Made::Nothing;
    };
    tell(report, lines_of(item), item, set_of_name(&target, item));
    Made::Updated(Identity::of(&found))
}

/// Whether what was found has the type of the record.
fn is_of_type(item: &RestoreItem, found: &FileStat) -> bool {
    let stat = &item.stat;
    let is_device = matches!(stat.mode_type(), Stat::MODE_CHARACTER | Stat::MODE_BLOCK);
    (found.st_mode ^ stat.mode) & Stat::MODE_TYPE == 0 && (!is_device || found.st_rdev == stat.rdev)
}

/// Sets the attributes of what a plugin has made and left to the daemon, if it is of the record's
/// type.
pub(super) fn set_by_name(report: &mut Report<'_>, directories: &mut Directories, item: &RestoreItem) -> Made {
    let set = Named::open(directories, item).map(|named| set_of_pinned(&named.target(), item));
    tell(report, lines_of(item), item, set.unwrap_or_else(nothing_set));
    Made::Object
}

/// Sets the attributes of what was just made where others can change names: what stands there now
/// may be theirs.
fn set_of_pinned(target: &Target<'_>, item: &RestoreItem) -> AttributeFailures {
    let found = match target.stat() {
        Ok(found) => found,
        Err(errno) => return nothing_set(errno),
    };
    if is_of_type(item, &found) && is_the_file(item, || Some(found)) {
        set_of_name(target, item)
    } else {
        AttributeFailures::default()
    }
}

/// Sets the attributes of what stands under the name of `item`. A file that has its owner keeps it:
/// the kernel takes capabilities away with the owner. So does another name of a file that is
/// complete.
fn set_of_name(target: &Target<'_>, item: &RestoreItem) -> AttributeFailures {
    let stat = &item.stat;
    if item.is_update {
        target.set_attributes_of_existing(stat)
    } else if item.file_type == Some(FileType::HardLink) {
        let times = target.set_times(stat.atime, stat.mtime).err();
        AttributeFailures { times, ..AttributeFailures::default() }
    } else {
        target.set_attributes(stat)
    }
}

/// Whether a hard link leads to the file of its record, and not to one that was kept in its place.
/// The first name has its attributes from its own record: were they different, this would be
/// another file. An update of a plugin's object is for what the plugin has made.
fn is_the_file(item: &RestoreItem, stat_now: impl FnOnce() -> Option<FileStat>) -> bool {
    let stat = &item.stat;
    let is_it = |found: FileStat| {
        (found.st_uid, found.st_gid, found.st_mode) == (stat.uid, stat.gid, stat.mode)
            && (found.st_size, found.st_mtime) == (stat.size, stat.mtime)
    };
    item.file_type != Some(FileType::HardLink) || item.is_update || stat_now().is_some_and(is_it)
}
