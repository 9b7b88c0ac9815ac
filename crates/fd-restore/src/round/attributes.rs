//! Owner, mode and times of what was made (reference 05 §8).

use std::os::fd::AsFd as _;

use fd_messages::MessageType;
use fd_metadata::{Target, UsualOwner, pin};
use fd_records::{FileType, Stat};

use crate::file::RestoreItem;
use crate::output_file::OutputFile;
use crate::report::Report;
use crate::texts;
use crate::tree::Directories;

use super::named::with_named;

/// Sets the attributes of a file whose data has come.
pub(super) fn set_of_file(report: &mut Report<'_>, file: &OutputFile, item: &RestoreItem, usual: &mut UsualOwner) {
    let failures = match (file.attributes(), file.descriptor().map(Target::Open)) {
        (Some(failures), _) => failures,
        (None, Some(target)) if file.is_new() => target.set_attributes_of_new(&item.stat, usual),
        (None, Some(target)) => target.set_attributes(&item.stat),
        (None, None) => return,
    };
    if let Some(errno) = failures.times {
        report.now(MessageType::Error, &texts::times_not_set(&item.output, errno));
    }
}

/// Sets the attributes of what has no data. Failures are silent, as in the reference (05 §8.4).
pub(super) fn set_without_data(directories: &mut Directories, item: &RestoreItem) {
    let is_socket = item.stat.mode_type() == Stat::MODE_SOCKET;
    if item.file_type == Some(FileType::Special) && is_socket {
        return;
    }
    if item.is_directory() {
        let mut stat = item.stat;
        if item.data_stream.layout().is_win32 && stat.rdev == 5 {
            // A Windows directory whose permissions mean nothing here.
            stat.mode = stat.mode & !0o1000 | 0o7;
        }
        if let Some(target) = directories.current() {
            let _failures = target.set_attributes(&stat);
        }
        directories.note_record();
        return;
    }
    let guarded = directories.is_guarded();
    let (Some(directory), Some(name)) = (directories.handle(), item.last_name()) else { return };
    if guarded {
        let _failures = Target::Named { directory, name }.set_attributes(&item.stat);
    } else if let Ok(pinned) = pin(directory, name) {
        set_of_pinned(&Target::Pinned(pinned.as_fd()), item);
    }
}

/// Sets the attributes of what a plugin has made and left to the daemon, if it is of the record's
/// type. Failures are silent, as those of what has no data.
pub(super) fn set_by_name(directories: &mut Directories, item: &RestoreItem) {
    with_named(directories, item, |target| set_of_pinned(target, item));
}

/// Sets the attributes of what was just made where others can change names: what stands there now
/// may be theirs.
fn set_of_pinned(target: &Target<'_>, item: &RestoreItem) {
    let Ok(found) = target.stat() else { return };
    let stat = &item.stat;
    let same_type = (found.st_mode ^ stat.mode) & Stat::MODE_TYPE == 0;
    let is_device = matches!(stat.mode_type(), Stat::MODE_CHARACTER | Stat::MODE_BLOCK);
    if !same_type || (is_device && found.st_rdev != stat.rdev) {
        return;
    }
    if item.file_type != Some(FileType::HardLink) {
        let _failures = target.set_attributes(stat);
    } else if (found.st_uid, found.st_gid, found.st_mode) == (stat.uid, stat.gid, stat.mode) {
        // The first name has its owner and mode from its own record. Were they different, this
        // would be another file.
        let _times = target.set_times(stat.atime, stat.mtime);
    }
}
