//! Stream numbers, each with its name in messages and the class of its records (reference 04
//! Appendix B, 05 §3.2).

use std::fmt;

use crate::vocabulary::compression::Packing;
use crate::vocabulary::digest::DigestKind;

/// The contents of a stream's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamClass {
    /// The attributes of an entry whose data follows.
    Attributes,
    /// The attributes of an entry that is only updated.
    AttributesUpdate,
    /// Data of a file.
    Data(DataLayout),
    /// Data of a plugin.
    PluginData,
    /// A digest of the data.
    Digest(DigestKind),
    /// A signature over the data.
    SignedDigest,
    /// The keys of encrypted data.
    SessionData,
    /// Metadata in a form of its own.
    Metadata(MetadataKind),
    /// A Mac OS resource fork.
    ResourceFork,
    /// Mac OS Finder information.
    FinderInfo,
    /// The start or end of a plugin's files.
    PluginName,
    /// An object that a restore returns to its plugin.
    RestoreObject,
    /// Another object of a plugin.
    PluginObject,
    /// Metadata of a plugin, between the attributes and the data.
    PluginMetadata,
    /// An ACL or extended attributes of a plugin's file, in the plugin's form.
    PluginXacl(MetadataKind),
    /// Programs of old versions, and events: a restore skips them.
    Ignored,
    /// An unknown stream.
    Unknown,
}

/// Which metadata the records of a stream contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataKind {
    /// An ACL.
    Acl,
    /// Extended attributes.
    Xattr,
}

impl MetadataKind {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acl => "acl",
            Self::Xattr => "xattr",
        }
    }
}

/// The layout of data in a record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DataLayout {
    /// Whether the address in the file precedes the data: [`Self::ADDRESS_LEN`] bytes, big endian.
    pub has_address: bool,
    /// How the data is compressed.
    pub packing: Packing,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// Whether it is in the parts of the Windows function `BackupRead`.
    pub is_win32: bool,
}

impl DataLayout {
    /// Length of the address in bytes.
    pub const ADDRESS_LEN: usize = 8;
}

const fn metadata(kind: MetadataKind) -> StreamClass {
    StreamClass::Metadata(kind)
}

const fn data(packing: Packing) -> StreamClass {
    StreamClass::Data(DataLayout { has_address: false, packing, is_encrypted: false, is_win32: false })
}

const fn sparse(packing: Packing) -> StreamClass {
    StreamClass::Data(DataLayout { has_address: true, packing, is_encrypted: false, is_win32: false })
}

const fn win32(packing: Packing) -> StreamClass {
    StreamClass::Data(DataLayout { has_address: false, packing, is_encrypted: false, is_win32: true })
}

const fn encrypted(packing: Packing) -> StreamClass {
    StreamClass::Data(DataLayout { has_address: false, packing, is_encrypted: true, is_win32: false })
}

const fn encrypted_win32(packing: Packing) -> StreamClass {
    StreamClass::Data(DataLayout { has_address: false, packing, is_encrypted: true, is_win32: true })
}

/// A stream number: the kind in the low 11 bits, flags above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct Stream(u32);

/// Makes the constants, their list and the two tables from one row for each stream.
macro_rules! streams {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:expr, $class:expr;)*) => {
        impl Stream {
            $($(#[$doc])* pub const $constant: Self = Self($number);)*

            /// Every stream that has a constant, in the order of the numbers.
            pub const LISTED: [Self; [$($number),*].len()] = [$(Self::$constant),*];

            /// The contents of the stream's records.
            pub const fn class(self) -> StreamClass {
                match self.kind().0 {
                    $($number => $class,)*
                    // ACLs and extended attributes of other systems.
                    1000..=1022 => metadata(MetadataKind::Acl),
                    1989..=1999 => metadata(MetadataKind::Xattr),
                    _ => StreamClass::Unknown,
                }
            }

            /// The name in messages; `None` where the reference prints the number.
            const fn name(self) -> Option<&'static str> {
                match self.kind().0 {
                    $($number => $name,)*
                    _ => None,
                }
            }
        }
    };
}

streams! {
    /// Attribute record.
    ATTRIBUTES = 1, Some("Unix attributes"), StreamClass::Attributes;
    /// Plain file data.
    FILE_DATA = 2, Some("File data"), data(Packing::Plain);
    /// MD5 digest, 16 bytes.
    MD5 = 3, Some("MD5 digest"), StreamClass::Digest(DigestKind::Md5);
    /// File data, each record one zlib stream.
    GZIP_DATA = 4, Some("GZIP data"), data(Packing::Zlib);
    /// Attribute record of a Windows client.
    ATTRIBUTES_EX = 5, Some("Extended attributes"), StreamClass::Attributes;
    /// File data with addresses.
    SPARSE_DATA = 6, Some("Sparse data"), sparse(Packing::Plain);
    /// zlib data with addresses.
    SPARSE_GZIP_DATA = 7, Some("GZIP sparse data"), sparse(Packing::Zlib);
    /// Old program names; ignored.
    PROGRAM_NAMES = 8, Some("Program names"), StreamClass::Ignored;
    /// Old program data; ignored.
    PROGRAM_DATA = 9, Some("Program data"), StreamClass::Ignored;
    /// SHA-1 digest, 20 bytes.
    SHA1 = 10, Some("SHA1 digest"), StreamClass::Digest(DigestKind::Sha1);
    /// Windows `BackupRead` data.
    WIN32_DATA = 11, Some("Win32 data"), win32(Packing::Plain);
    /// Windows `BackupRead` data, zlib.
    WIN32_GZIP_DATA = 12, Some("Win32 GZIP data"), win32(Packing::Zlib);
    /// Mac OS resource fork.
    MACOS_FORK_DATA = 13, Some("MacOS Fork data"), StreamClass::ResourceFork;
    /// Mac OS Finder information.
    HFSPLUS_ATTRIBUTES = 14, Some("HFS+ attribs"), StreamClass::FinderInfo;
    /// Old number of the access ACL.
    UNIX_ACCESS_ACL = 15, Some("Standard Unix ACL attribs"), metadata(MetadataKind::Acl);
    /// Old number of the default ACL.
    UNIX_DEFAULT_ACL = 16, Some("Default Unix ACL attribs"), metadata(MetadataKind::Acl);
    /// SHA-256 digest, 32 bytes.
    SHA256 = 17, Some("SHA256 digest"), StreamClass::Digest(DigestKind::Sha256);
    /// SHA-512 digest, 64 bytes.
    SHA512 = 18, Some("SHA512 digest"), StreamClass::Digest(DigestKind::Sha512);
    /// Signature.
    SIGNED_DIGEST = 19, Some("Signed digest"), StreamClass::SignedDigest;
    /// Encrypted file data.
    ENCRYPTED_FILE_DATA = 20, Some("Encrypted File data"), encrypted(Packing::Plain);
    /// Encrypted Windows data.
    ENCRYPTED_WIN32_DATA = 21, Some("Encrypted Win32 data"), encrypted_win32(Packing::Plain);
    /// Encrypted session key.
    ENCRYPTED_SESSION_DATA = 22, Some("Encrypted session data"), StreamClass::SessionData;
    /// Encrypted zlib data.
    ENCRYPTED_GZIP_DATA = 23, Some("Encrypted GZIP data"), encrypted(Packing::Zlib);
    /// Encrypted Windows zlib data.
    ENCRYPTED_WIN32_GZIP_DATA = 24, Some("Encrypted Win32 GZIP data"), encrypted_win32(Packing::Zlib);
    /// Encrypted Mac OS resource fork.
    ENCRYPTED_MACOS_FORK_DATA = 25, Some("Encrypted MacOS fork data"), StreamClass::ResourceFork;
    /// Start and end of a plugin's files.
    PLUGIN_NAME = 26, Some("Plugin Name"), StreamClass::PluginName;
    /// Plugin data.
    PLUGIN_DATA = 27, Some("Plugin Data"), StreamClass::PluginData;
    /// Restore object.
    RESTORE_OBJECT = 28, Some("Restore Object"), StreamClass::RestoreObject;
    /// File data with the 12 byte compression header.
    COMPRESSED_DATA = 29, Some("Compressed data"), data(Packing::WithHeader);
    /// The same with addresses.
    SPARSE_COMPRESSED_DATA = 30, Some("Compressed sparse data"), sparse(Packing::WithHeader);
    /// Windows data with the compression header.
    WIN32_COMPRESSED_DATA = 31, Some("Win32 compressed data"), win32(Packing::WithHeader);
    /// Encrypted data with the compression header.
    ENCRYPTED_COMPRESSED_DATA = 32, Some("Encrypted compressed data"), encrypted(Packing::WithHeader);
    /// Encrypted Windows data with the compression header.
    ENCRYPTED_WIN32_COMPRESSED_DATA =
        33, Some("Encrypted Win32 Compressed data"), encrypted_win32(Packing::WithHeader);
    /// Object of a plugin.
    PLUGIN_OBJECT = 34, Some("Plugin Object"), StreamClass::PluginObject;
    /// Metadata of a plugin.
    PLUGIN_META_BLOB = 35, Some("Plugin Metadata Blob"), StreamClass::PluginMetadata;
    /// Metadata of a plugin for the catalog.
    PLUGIN_META_CATALOG = 36, Some("Plugin Metadata Catalog"), StreamClass::PluginMetadata;
    /// Attribute record of an update without data.
    ATTRIBUTES_UPDATE = 37, Some("Unix attributes update"), StreamClass::AttributesUpdate;
    /// Event about a file.
    FILE_EVENT = 38, Some("FileEvent"), StreamClass::Ignored;
    /// XXH64 digest, 8 bytes.
    XXH64 = 39, Some("XXHASH64 digest"), StreamClass::Digest(DigestKind::Xxh64);
    /// XXH3-64 digest, 8 bytes.
    XXH3_64 = 40, Some("XXH3_64 digest"), StreamClass::Digest(DigestKind::Xxh3_64);
    /// XXH3-128 digest, 16 bytes.
    XXH3_128 = 41, Some("XXH3_128 digest"), StreamClass::Digest(DigestKind::Xxh3_128);
    /// Default ACL of a Linux directory.
    LINUX_DEFAULT_ACL = 1007, Some("Linux Default ACL attribs"), metadata(MetadataKind::Acl);
    /// Access ACL of a Linux file.
    LINUX_ACCESS_ACL = 1008, Some("Linux Access ACL attribs"), metadata(MetadataKind::Acl);
    /// ACL of a plugin's file.
    PLUGIN_ACL = 1020, None, StreamClass::PluginXacl(MetadataKind::Acl);
    /// Extended attributes of a plugin's file.
    PLUGIN_XATTR = 1988, None, StreamClass::PluginXacl(MetadataKind::Xattr);
    /// Extended attributes of a Linux file.
    LINUX_XATTR = 1998, Some("Linux Extended attribs"), metadata(MetadataKind::Xattr);
}

impl Stream {
    /// The bits that hold the kind.
    pub(crate) const KIND_MASK: u32 = 0x7FF;
    /// A data record starts with its 8 byte file address, as in a sparse stream.
    pub const BIT_OFFSETS: u32 = 1 << 26;

    /// Nothing.
    pub const NONE: Self = Self(0);

    /// The stream of a number from a peer or a volume.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number with its flag bits, as in a header.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The stream without its flag bits.
    #[must_use]
    pub const fn kind(self) -> Self {
        Self(self.0 & Self::KIND_MASK)
    }

    /// Whether all of `bits` are set.
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// The layout of the data in its records, with the flag bits; records of other classes count as
    /// plain.
    pub const fn layout(self) -> DataLayout {
        let mut layout = match self.class() {
            StreamClass::Data(layout) => layout,
            _ => DataLayout { has_address: false, packing: Packing::Plain, is_encrypted: false, is_win32: false },
        };
        layout.has_address |= self.has(Self::BIT_OFFSETS);
        layout
    }

    /// The stream for data of this layout; [`Self::NONE`] if there is none.
    pub fn of_data(layout: DataLayout) -> Self {
        let has_it = |stream: &Self| stream.class() == StreamClass::Data(layout);
        Self::LISTED.into_iter().find(has_it).unwrap_or(Self::NONE)
    }

    /// Whether the stock daemon restores entries whose attributes contain this as the stream of
    /// their data (reference 05 §3.3). Old attributes contain none; the list ends with the
    /// compressed streams.
    pub const fn is_restorable_data(self) -> bool {
        self.0 <= Self::ENCRYPTED_WIN32_COMPRESSED_DATA.0
            && !matches!(
                self.class(),
                StreamClass::ResourceFork
                    | StreamClass::FinderInfo
                    | StreamClass::Metadata(_)
                    | StreamClass::SessionData
                    | StreamClass::PluginName
                    | StreamClass::PluginData
                    | StreamClass::RestoreObject
            )
    }

    /// The kind of digest in its records, if they contain digests.
    pub const fn digest_kind(self) -> Option<DigestKind> {
        match self.class() {
            StreamClass::Digest(kind) => Some(kind),
            _ => None,
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

impl DigestKind {
    /// The stream of its records, which also has the name that messages use (`MD5 digest`).
    pub fn stream(self) -> Stream {
        let holds_it = |stream: &Stream| stream.digest_kind() == Some(self);
        Stream::LISTED.into_iter().find(holds_it).unwrap_or(Stream::NONE)
    }
}

#[cfg(test)]
mod tests;
