//! One entry of the walk.

use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_records::{FileType, Stat};

use crate::attributes::Nanoseconds;
use crate::links::LinkSlot;
use crate::names::{RecordNames, record_names};
use crate::root::Root;

/// One thing to be saved, counted or verified.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path as walked, to be used in system calls and messages: a directory's without final slash, but a name of the
    /// FileSet as it was spelled there.
    pub path: Vec<u8>,
    /// Type. Directories are [`FileType::Directory`] whatever kept the walk from entering them.
    pub file_type: FileType,
    /// Attributes from the `lstat` that classified the entry; a directory's from before its contents were read.
    pub stat: Stat,
    /// The parts of the three times below one second.
    pub nanoseconds: Nanoseconds,
    /// Target of a symbolic link, or first name of a hard link; else empty.
    pub link: Vec<u8>,
    /// Role among the names of an inode with several names; `None` if the entry is not tracked.
    pub hard_link: Option<HardLink>,
    /// Options in force.
    pub options: Arc<EffectiveOptions>,
    /// The entry is a name of the FileSet itself.
    pub top_level: bool,
    /// What [`crate::Comparison::Changed`] gave for this entry.
    pub token: Option<u64>,
    /// The directory of the FileSet's name that it was found below, to reach it again.
    pub(crate) root: Option<Arc<Root>>,
}

/// Role of an entry whose inode has several names.
#[derive(Clone, Debug)]
pub enum HardLink {
    /// The first name met. Whoever saves it tells the slot how that went.
    First(LinkSlot),
    /// A further name; the entry's type is [`FileType::HardLink`] and its `link` the first name.
    Later {
        /// What became of the first name.
        slot: LinkSlot,
        /// The type the entry has for itself: it is saved as that if the first name was not saved.
        own_type: FileType,
    },
}

impl Entry {
    /// Name and link for the record: directories with their slash, leading components stripped if the options say so.
    pub fn record_names(&self) -> RecordNames<'_> {
        record_names(&self.path, self.file_type, &self.link, self.options.strip_path)
    }

    /// Name and link as a Verify job tells them: nothing is ever stripped (reference 05 §18.3).
    pub fn whole_names(&self) -> RecordNames<'_> {
        record_names(&self.path, self.file_type, &self.link, 0)
    }
}
