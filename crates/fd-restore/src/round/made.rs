//! What has become of an object.

use fd_records::DigestValue;

use crate::created::Taker;
use crate::output_file::Identity;
use crate::report::QueuedMessage;

/// What has become of an object.
#[derive(Debug)]
pub(super) enum Made {
    /// It is not there, its name means another object, or its file is done with.
    Nothing,
    /// It was there before, and is kept as it is.
    Kept,
    /// Another one was there before, which stays until data of this one comes.
    Waiting,
    /// It was made, or found; or a plugin has it.
    Object,
    /// Its data is restored.
    Open(Open),
    /// This object got an update of its attributes.
    Updated(Identity),
    /// A directory got the attributes of its record.
    Directory(AclsCome),
}

impl Made {
    /// The data of an object comes.
    pub(super) const fn open(to: Taker) -> Self {
        Self::Open(Open { to, digest: DigestRecord::NotCome })
    }

    /// Whether the object of the record is there, and may be changed.
    pub(super) const fn is_made(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Kept | Self::Waiting)
    }

    /// The data has come, or is given up: takes what has taken it. What a plugin has made is still
    /// there.
    pub(super) fn end_data(&mut self) -> Option<Open> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Open(open) => {
                if matches!(open.to, Taker::Plugin { .. }) {
                    *self = Self::Object;
                }
                Some(open)
            }
            other => {
                *self = other;
                None
            }
        }
    }
}

/// An object while its data is restored.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) to: Taker,
    pub(super) digest: DigestRecord,
}

/// The digest record of the data. It is the last one of a file, so behind it nothing is missing.
#[derive(Default, Debug)]
pub(super) enum DigestRecord {
    #[default]
    NotCome,
    /// It has come, and nothing is to be compared any more.
    Done,
    /// It has come, and is compared when the file is complete.
    Waits(DigestValue),
    /// It is not that of the data, or can't be compared, as this message says, which waits for the
    /// length.
    Wrong(QueuedMessage),
}

impl DigestRecord {
    /// Whether it has come, and is right as far as that is known.
    pub(super) const fn has_come(&self) -> bool {
        matches!(self, Self::Done | Self::Waits(_))
    }
}

/// Which ACLs of a directory have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AclsCome {
    /// Whether the directory was there before the job.
    pub(super) is_old: bool,
    pub(super) access: bool,
    pub(super) default: bool,
}
