//! One entry of the walk.

use std::borrow::Cow;
use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_records::{FileType, Stat};

use crate::attributes::Nanoseconds;
use crate::links::LinkSlot;
use crate::names::{RecordNames, record_names, stripped};
use crate::root::Root;
use crate::snapshots::ReadAt;

/// An entry to be saved, counted or verified.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path for records and messages: a directory's without a final slash, but a name of the
    /// FileSet as it is written there.
    pub path: Vec<u8>,
    /// Type. Directories are [`FileType::Directory`], also those that the walk did not enter.
    pub file_type: FileType,
    /// Attributes of the `lstat` that classified the entry; a directory's from before its contents
    /// were read.
    pub stat: Stat,
    /// The parts of the three times below one second.
    pub nanoseconds: Nanoseconds,
    /// Target of a symbolic link, or first name of a hard link; else empty.
    pub link: Vec<u8>,
    /// Role among the names of an inode with several names; `None` if the entry is not tracked.
    pub hard_link: Option<HardLink>,
    /// Options that apply to it.
    pub options: Arc<EffectiveOptions>,
    /// The entry is a name of the FileSet itself: data of a device or FIFO is read.
    pub top_level: bool,
    /// The token of [`crate::Comparison::Changed`].
    pub token: Option<u64>,
    /// It is a directory that is saved but not entered.
    pub barred: bool,
    /// The directory of the FileSet's name that it was found below, to open it later.
    pub(crate) root: Option<Arc<Root>>,
    /// Where the FileSet's name is read.
    pub(crate) read_at: ReadAt,
}

/// Role of an entry whose inode has several names.
#[derive(Clone, Debug)]
pub enum HardLink {
    /// The first name of the inode. The state of its slot is set when it was saved or not.
    First(LinkSlot),
    /// A later name. The entry's type is [`FileType::HardLink`], its `link` the first name.
    Later {
        /// The slot of the first name.
        slot: LinkSlot,
        /// The type of the entry if it is saved as a file of its own, because the first name was
        /// not saved.
        own_type: FileType,
    },
}

impl Entry {
    /// A file of a plugin: it is not on the disk.
    pub fn of_plugin(path: Vec<u8>, file_type: FileType, stat: Stat, options: Arc<EffectiveOptions>) -> Self {
        Self {
            path,
            file_type,
            stat,
            nanoseconds: Nanoseconds::default(),
            link: Vec::new(),
            hard_link: None,
            options,
            top_level: true,
            token: None,
            barred: false,
            root: None,
            read_at: ReadAt::default(),
        }
    }

    /// Path for system calls, and for messages about its contents: in a snapshot of the file
    /// system, if there is one.
    pub fn read_path(&self) -> Cow<'_, [u8]> {
        self.read_at.of(&self.path)
    }

    /// Name and link for the record: a directory with its slash, leading components stripped if the
    /// options ask for that. The first name of a hard link is stripped as its own options ask.
    pub fn record_names(&self) -> RecordNames<'_> {
        let strip = self.options.strip_path;
        match self.hard_link.as_ref() {
            Some(HardLink::Later { slot, .. }) if slot.strip_path() != strip => {
                RecordNames { name: stripped(&self.path, strip), link: stripped(&self.link, slot.strip_path()) }
            }
            _ => record_names(&self.path, self.file_type, &self.link, strip),
        }
    }

    /// Makes a later name of an inode a file of its own: the first name is not saved.
    pub fn become_own_file(&mut self) {
        if let Some(HardLink::Later { own_type, .. }) = self.hard_link.take() {
            self.file_type = own_type;
            self.link.clear();
        }
    }

    /// To be called for the first name of an inode that has changed since the walk, before its
    /// state is set: its later names have the same attributes.
    pub fn tell_later_names(&self) {
        if let Some(HardLink::First(slot)) = &self.hard_link {
            slot.set_attributes((self.stat, self.nanoseconds));
        }
    }

    /// Gives a later name of an inode the attributes with which the first name was saved, if those
    /// are not older than its own.
    pub fn follow_first_name(&mut self) {
        let Some(HardLink::Later { slot, .. }) = &self.hard_link else { return };
        let Some((stat, nanoseconds)) = slot.attributes() else { return };
        let is_inode = (stat.dev, stat.ino) == (self.stat.dev, self.stat.ino);
        if is_inode && (stat.ctime, nanoseconds.ctime) >= (self.stat.ctime, self.nanoseconds.ctime) {
            (self.stat, self.nanoseconds) = (stat, nanoseconds);
        }
    }

    /// Name and link for a Verify job: not stripped (reference 05 §18.3).
    pub fn whole_names(&self) -> RecordNames<'_> {
        record_names(&self.path, self.file_type, &self.link, 0)
    }
}
