//! Stream numbers (reference 04 Appendix B) and their names (reference 05 §3.2).

use std::fmt;

/// Names of the kinds 0 to 41; 0 has none.
const NAMES: [&str; 42] = [
    "",
    "Unix attributes",
    "File data",
    "MD5 digest",
    "GZIP data",
    "Extended attributes",
    "Sparse data",
    "GZIP sparse data",
    "Program names",
    "Program data",
    "SHA1 digest",
    "Win32 data",
    "Win32 GZIP data",
    "MacOS Fork data",
    "HFS+ attribs",
    "Standard Unix ACL attribs",
    "Default Unix ACL attribs",
    "SHA256 digest",
    "SHA512 digest",
    "Signed digest",
    "Encrypted File data",
    "Encrypted Win32 data",
    "Encrypted session data",
    "Encrypted GZIP data",
    "Encrypted Win32 GZIP data",
    "Encrypted MacOS fork data",
    "Plugin Name",
    "Plugin Data",
    "Restore Object",
    "Compressed data",
    "Compressed sparse data",
    "Win32 compressed data",
    "Encrypted compressed data",
    "Encrypted Win32 Compressed data",
    "Plugin Object",
    "Plugin Metadata Blob",
    "Plugin Metadata Catalog",
    "Unix attributes update",
    "FileEvent",
    "XXHASH64 digest",
    "XXH3_64 digest",
    "XXH3_128 digest",
];

/// A stream number: the kind in the low 11 bits, flags above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Stream(pub u32);

impl Stream {
    /// The bits that hold the kind.
    pub const KIND_MASK: u32 = 0x7FF;
    /// A data record starts with its 8 byte file address, as in a sparse stream.
    pub const BIT_OFFSETS: u32 = 1 << 26;
    /// Delta data of a plugin.
    pub const BIT_DELTA: u32 = 1 << 27;
    /// Item of a plugin.
    pub const BIT_PLUGIN: u32 = 1 << 28;
    /// Portable data.
    pub const BIT_PORTABLE: u32 = 1 << 25;
    /// Deduplication reference.
    pub const BIT_DEDUP: u32 = 1 << 24;
    /// Not to be deduplicated.
    pub const BIT_NO_DEDUP: u32 = 1 << 23;

    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Attribute record.
    pub const ATTRIBUTES: Self = Self(1);
    /// Plain file data.
    pub const FILE_DATA: Self = Self(2);
    /// MD5 digest, 16 bytes.
    pub const MD5: Self = Self(3);
    /// File data, each record one zlib stream.
    pub const GZIP_DATA: Self = Self(4);
    /// Attribute record of a Windows client.
    pub const ATTRIBUTES_EX: Self = Self(5);
    /// File data with addresses.
    pub const SPARSE_DATA: Self = Self(6);
    /// zlib data with addresses.
    pub const SPARSE_GZIP_DATA: Self = Self(7);
    /// Old program names; ignored.
    pub const PROGRAM_NAMES: Self = Self(8);
    /// Old program data; ignored.
    pub const PROGRAM_DATA: Self = Self(9);
    /// SHA-1 digest, 20 bytes.
    pub const SHA1: Self = Self(10);
    /// Windows `BackupRead` data.
    pub const WIN32_DATA: Self = Self(11);
    /// Windows `BackupRead` data, zlib.
    pub const WIN32_GZIP_DATA: Self = Self(12);
    /// Mac OS resource fork.
    pub const MACOS_FORK_DATA: Self = Self(13);
    /// Mac OS Finder information.
    pub const HFSPLUS_ATTRIBUTES: Self = Self(14);
    /// Old number of the access ACL.
    pub const UNIX_ACCESS_ACL: Self = Self(15);
    /// Old number of the default ACL.
    pub const UNIX_DEFAULT_ACL: Self = Self(16);
    /// SHA-256 digest, 32 bytes.
    pub const SHA256: Self = Self(17);
    /// SHA-512 digest, 64 bytes.
    pub const SHA512: Self = Self(18);
    /// Signature.
    pub const SIGNED_DIGEST: Self = Self(19);
    /// Encrypted file data.
    pub const ENCRYPTED_FILE_DATA: Self = Self(20);
    /// Encrypted Windows data.
    pub const ENCRYPTED_WIN32_DATA: Self = Self(21);
    /// Encrypted session key.
    pub const ENCRYPTED_SESSION_DATA: Self = Self(22);
    /// Encrypted zlib data.
    pub const ENCRYPTED_GZIP_DATA: Self = Self(23);
    /// Encrypted Windows zlib data.
    pub const ENCRYPTED_WIN32_GZIP_DATA: Self = Self(24);
    /// Encrypted Mac OS resource fork.
    pub const ENCRYPTED_MACOS_FORK_DATA: Self = Self(25);
    /// Start and end of a plugin's files.
    pub const PLUGIN_NAME: Self = Self(26);
    /// Plugin data.
    pub const PLUGIN_DATA: Self = Self(27);
    /// Restore object.
    pub const RESTORE_OBJECT: Self = Self(28);
    /// File data with the 12 byte compression header.
    pub const COMPRESSED_DATA: Self = Self(29);
    /// The same with addresses.
    pub const SPARSE_COMPRESSED_DATA: Self = Self(30);
    /// Windows data with the compression header.
    pub const WIN32_COMPRESSED_DATA: Self = Self(31);
    /// Encrypted data with the compression header.
    pub const ENCRYPTED_COMPRESSED_DATA: Self = Self(32);
    /// Encrypted Windows data with the compression header.
    pub const ENCRYPTED_WIN32_COMPRESSED_DATA: Self = Self(33);
    /// Object of a plugin.
    pub const PLUGIN_OBJECT: Self = Self(34);
    /// Metadata of a plugin.
    pub const PLUGIN_META_BLOB: Self = Self(35);
    /// Metadata of a plugin for the catalog.
    pub const PLUGIN_META_CATALOG: Self = Self(36);
    /// Attribute record of an update without data.
    pub const ATTRIBUTES_UPDATE: Self = Self(37);
    /// Event about a file.
    pub const FILE_EVENT: Self = Self(38);
    /// XXH64 digest, 8 bytes.
    pub const XXH64: Self = Self(39);
    /// XXH3-64 digest, 8 bytes.
    pub const XXH3_64: Self = Self(40);
    /// XXH3-128 digest, 16 bytes.
    pub const XXH3_128: Self = Self(41);
    /// Default ACL of a Linux directory.
    pub const LINUX_DEFAULT_ACL: Self = Self(1007);
    /// Access ACL of a Linux file.
    pub const LINUX_ACCESS_ACL: Self = Self(1008);
    /// ACL of a plugin's file.
    pub const PLUGIN_ACL: Self = Self(1020);
    /// Extended attributes of a plugin's file.
    pub const PLUGIN_XATTR: Self = Self(1988);
    /// Extended attributes of a Linux file.
    pub const LINUX_XATTR: Self = Self(1998);

    /// The stream without its flag bits.
    #[must_use]
    pub const fn kind(self) -> Self {
        Self(self.0 & Self::KIND_MASK)
    }

    /// Whether all of `bits` are set.
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// Whether this is one of the seven digests.
    pub const fn is_digest(self) -> bool {
        matches!(self.kind().0, 3 | 10 | 17 | 18 | 39 | 40 | 41)
    }

    /// Whether this is an attribute record (1, 5 or 37).
    pub const fn is_attributes(self) -> bool {
        matches!(self.kind().0, 1 | 5 | 37)
    }

    /// The reference's name; `None` where it prints the number.
    fn name(self) -> Option<&'static str> {
        match self.kind() {
            Self::LINUX_DEFAULT_ACL => Some("Linux Default ACL attribs"),
            Self::LINUX_ACCESS_ACL => Some("Linux Access ACL attribs"),
            Self::LINUX_XATTR => Some("Linux Extended attribs"),
            Self(kind) => NAMES.get(usize::try_from(kind).ok()?).copied().filter(|name| !name.is_empty()),
        }
    }
}

impl fmt::Display for Stream {
    /// The name that the reference's messages use: that of the kind, or its number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.pad(name),
            None => fmt::Display::fmt(&self.kind().0, formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_stands_in_the_low_eleven_bits() {
        let stream = Stream(Stream::BIT_OFFSETS | 2);
        assert_eq!(stream.kind(), Stream::FILE_DATA);
        assert!(stream.has(Stream::BIT_OFFSETS));
        assert!(!Stream::FILE_DATA.has(Stream::BIT_OFFSETS));
        assert_eq!(Stream(0x7FF).kind(), Stream(2047));
    }

    #[test]
    fn names_are_those_of_the_messages() {
        assert_eq!(Stream::MD5.to_string(), "MD5 digest");
        assert_eq!(Stream::XXH3_128.to_string(), "XXH3_128 digest");
        assert_eq!(Stream(2000).to_string(), "2000");
        assert_eq!(Stream(42).to_string(), "42");
        assert_eq!(Stream::NONE.to_string(), "0");
        assert_eq!(Stream::ATTRIBUTES.to_string(), "Unix attributes");
        assert_eq!(Stream::FILE_EVENT.to_string(), "FileEvent");
        assert_eq!(Stream(Stream::BIT_OFFSETS | 6).to_string(), "Sparse data");
        assert_eq!(Stream::LINUX_XATTR.to_string(), "Linux Extended attribs");
    }

    #[test]
    fn seven_streams_are_digests() {
        let digests: Vec<u32> = (0..2048).filter(|kind| Stream(*kind).is_digest()).collect();
        assert_eq!(digests, [3, 10, 17, 18, 39, 40, 41]);
    }
}
