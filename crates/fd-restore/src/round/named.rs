//! What stands under the name of a record that has no open file.

use std::os::fd::AsFd as _;

use fd_metadata::{Target, pin};

use crate::file::RestoreItem;
use crate::output_file::Identity;
use crate::tree::Directories;

/// What has become of an object without data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Made {
    /// It is not there, or its name means another object.
    Nothing,
    /// It was made, or found.
    Object,
    /// This object got an update of its attributes.
    Updated(Identity),
    /// A directory that was there before the job got the attributes of its record.
    Existing(AclsCome),
}

/// Which ACLs of a directory have come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct AclsCome {
    pub(super) access: bool,
    pub(super) default: bool,
}

/// Opens what stands under the name of `item`, without following a link.
pub(super) fn with_named(directories: &mut Directories, item: &RestoreItem, work: impl FnOnce(&Target<'_>)) {
    let (Ok(path), Some(name)) = (&item.path, item.last_name()) else { return };
    let Some((parent, _name)) = path.split() else { return };
    // A second handle, so that the file is not in the way of the next one's directories.
    let Ok(directory) = directories.open_aside(&parent) else { return };
    let Ok(pinned) = pin(directory.as_fd(), name) else { return };
    work(&Target::Pinned { object: pinned.as_fd(), directory: directory.as_fd(), name });
}
