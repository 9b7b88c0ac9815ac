//! The type of an entry, second number of the attribute record.

/// Makes the type and the list of its values from one row for each.
macro_rules! file_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What kind of entry an attribute record describes (reference 03 §7, 04 §5).
        ///
        /// Some types are never on a volume: a walk or a Director uses them for an entry that is
        /// not saved.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum FileType {
            $($(#[$doc])* $name = $number,)*
        }

        impl FileType {
            /// Every type, in the order of the numbers.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$name),*];
        }
    };
}

file_types! {
    /// Further name of an inode that is already in the job (`FT_LNKSAVED`).
    HardLink = 1,
    /// Regular file of size 0 that all users may read (`FT_REGE`).
    EmptyFile = 2,
    /// Regular file (`FT_REG`).
    Regular = 3,
    /// Symbolic link (`FT_LNK`).
    Symlink = 4,
    /// Directory, after its contents (`FT_DIREND`).
    Directory = 5,
    /// Device, fifo or socket without data (`FT_SPEC`).
    Special = 6,
    /// Not accessible (`FT_NOACCESS`).
    NoAccess = 7,
    /// The target of a symbolic link could not be read (`FT_NOFOLLOW`).
    NoFollow = 8,
    /// The attributes could not be read (`FT_NOSTAT`).
    NoStat = 9,
    /// Unchanged, not saved (`FT_NOCHG`).
    Unchanged = 10,
    /// Unchanged directory, not saved (`FT_DIRNOCHG`).
    DirectoryUnchanged = 11,
    /// Archive file, not saved (`FT_ISARCH`).
    IsArchive = 12,
    /// Directory that is not descended into because recursion is off (`FT_NORECURSE`).
    NoRecurse = 13,
    /// Directory on another file system that is not descended into (`FT_NOFSCHG`).
    OtherFileSystem = 14,
    /// Directory that could not be opened (`FT_NOOPEN`).
    NoOpen = 15,
    /// Block device with its data (`FT_RAW`).
    Raw = 16,
    /// Fifo with its data (`FT_FIFO`).
    Fifo = 17,
    /// Directory before its contents; never recorded (`FT_DIRBEGIN`).
    DirectoryBegin = 18,
    /// Directory on a file system whose type is not allowed (`FT_INVALIDFS`).
    InvalidFileSystem = 19,
    /// Directory on a drive whose type is not allowed (`FT_INVALIDDT`).
    InvalidDriveType = 20,
    /// Windows reparse point (`FT_REPARSE`).
    Reparse = 21,
    /// Reserved for plugins (`FT_PLUGIN`).
    Plugin = 22,
    /// The file is gone since the last backup (`FT_DELETED`).
    Deleted = 23,
    /// The file is the same as in the base job (`FT_BASE`).
    Base = 24,
    /// Restore object (`FT_RESTORE_FIRST`).
    RestoreFirst = 25,
    /// Windows junction (`FT_JUNCTION`).
    Junction = 26,
    /// Configuration of a plugin (`FT_PLUGIN_CONFIG`).
    PluginConfig = 27,
    /// The same, filled in by the user (`FT_PLUGIN_CONFIG_FILLED`).
    PluginConfigFilled = 28,
    /// Object of a plugin (`FT_PLUGIN_OBJECT`).
    PluginObject = 29,
    /// Security report (`FT_SECURITY_OBJECT`).
    SecurityObject = 30,
}

impl FileType {
    /// The number in the record, 1 to 30.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The type of this number; `None` for 0 and for numbers above 30.
    pub fn from_code(code: u16) -> Option<Self> {
        usize::from(code).checked_sub(1).and_then(|index| Self::ALL.get(index)).copied()
    }

    /// Whether the record's name ends in a `/` (reference 04 §6.1).
    pub const fn has_directory_name(self) -> bool {
        matches!(self, Self::Directory | Self::Reparse | Self::Junction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_type() {
        for (index, file_type) in FileType::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(file_type.code()), index + 1);
            assert_eq!(FileType::from_code(file_type.code()), Some(file_type));
        }
        assert_eq!(FileType::from_code(0), None);
        assert_eq!(FileType::from_code(31), None);
        assert_eq!(FileType::from_code(u16::MAX), None);
    }
}
