//! What stands under the name of a record that has no open file.

use std::os::fd::{AsFd as _, OwnedFd};

use fd_metadata::{Target, pin};
use nix::errno::Errno;

use crate::file::RestoreItem;
use crate::tree::{Directories, OpenError};

/// What stands under a name.
pub(super) struct Named<'i> {
    directory: OwnedFd,
    object: OwnedFd,
    name: &'i [u8],
}

impl<'i> Named<'i> {
    /// Opens what stands under the name of `item`, without following a link.
    pub(super) fn open(directories: &Directories, item: &'i RestoreItem) -> Result<Self, Errno> {
        let (Ok(path), Some(name)) = (&item.path, item.last_name()) else { return Err(Errno::ENOENT) };
        let (parent, _name) = path.split().ok_or(Errno::ENOENT)?;
        // A second handle, so that the file is not in the way of the next one's directories.
        let directory = directories.open_aside(&parent).map_err(OpenError::errno)?;
        let object = pin(directory.as_fd(), name)?;
        Ok(Self { directory, object, name })
    }

    /// It, to be changed.
    pub(super) fn target(&self) -> Target<'_> {
        Target::Pinned { object: self.object.as_fd(), directory: self.directory.as_fd(), name: self.name }
    }
}
