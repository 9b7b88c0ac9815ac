//! What has become of an object.

use crate::output_file::{Identity, OutputFile};

/// What has become of an object.
#[derive(Debug)]
pub(super) enum Made {
    /// It is not there, its name means another object, or its file is done with.
    Nothing,
    /// It was there before, and is kept as it is.
    Kept,
    /// It was made, or found; or a plugin has it.
    Object,
    /// It is a file, while its data is restored.
    Open(OutputFile),
    /// This object got an update of its attributes.
    Updated(Identity),
    /// A directory that was there before the job got the attributes of its record.
    Existing(AclsCome),
}

impl Made {
    /// Whether the object of the record is there, and may be changed.
    pub(super) const fn is_made(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Kept)
    }

    /// The file, while its data is restored.
    pub(super) const fn file(&self) -> Option<&OutputFile> {
        match self {
            Self::Open(file) => Some(file),
            _ => None,
        }
    }

    /// Takes the file: its data has come, or is given up.
    pub(super) fn take_file(&mut self) -> Option<OutputFile> {
        match std::mem::replace(self, Self::Nothing) {
            Self::Open(file) => Some(file),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Which ACLs of a directory have come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct AclsCome {
    pub(super) access: bool,
    pub(super) default: bool,
}
