//! What stands under the name of a record that has no open file.

use std::os::fd::AsFd as _;

use fd_metadata::{Target, pin};

use crate::file::RestoreItem;
use crate::tree::Directories;

/// Opens what stands under the name of `item`, without following a link.
pub(super) fn with_named(directories: &mut Directories, item: &RestoreItem, work: impl FnOnce(&Target<'_>)) {
    let (Ok(path), Some(name)) = (&item.path, item.last_name()) else { return };
    let Some((parent, _name)) = path.split() else { return };
    // A second handle, so that the file is not in the way of the next one's directories.
    let Ok(directory) = directories.open_aside(&parent) else { return };
    let Ok(pinned) = pin(directory.as_fd(), name) else { return };
    work(&Target::Pinned { object: pinned.as_fd(), directory: directory.as_fd(), name });
}
