//! What the type and the options of an entry mean for its data: whether it is read, digested and encrypted, and which
//! stream it makes (reference 04 §7 to §9).

use fd_fileset::{Compression, EffectiveOptions, Flags};
use fd_records::{FileType, Stat, Stream};

/// Which stream holds the data of an entry with these options. Every entry has an answer, also those without data:
/// it stands in their attributes (reference 04 §7). Encrypted data has no addresses.
pub(crate) fn data_stream(options: &EffectiveOptions, encrypted: bool) -> Stream {
    if encrypted {
        return match options.compression {
            None => Stream::ENCRYPTED_FILE_DATA,
            Some(Compression::Gzip(_)) => Stream::ENCRYPTED_GZIP_DATA,
            Some(Compression::Lzo | Compression::Zstd(_)) => Stream::ENCRYPTED_COMPRESSED_DATA,
        };
    }
    match (options.has(Flags::SPARSE), options.compression) {
        (false, None) => Stream::FILE_DATA,
        (true, None) => Stream::SPARSE_DATA,
        (false, Some(Compression::Gzip(_))) => Stream::GZIP_DATA,
        (true, Some(Compression::Gzip(_))) => Stream::SPARSE_GZIP_DATA,
        (false, Some(Compression::Lzo | Compression::Zstd(_))) => Stream::COMPRESSED_DATA,
        (true, Some(Compression::Lzo | Compression::Zstd(_))) => Stream::SPARSE_COMPRESSED_DATA,
    }
}

/// Whether an entry of this type is digested (reference 04 §9).
pub(crate) fn is_digested(file_type: FileType) -> bool {
    matches!(file_type, FileType::Regular | FileType::EmptyFile | FileType::Raw)
}

/// Whether an entry's data is read (reference 04 §8.2).
pub(crate) fn is_read(file_type: FileType, stat: &Stat) -> bool {
    match file_type {
        FileType::Regular => stat.size > 0,
        FileType::Raw | FileType::Fifo => true,
        _ => false,
    }
}

/// Whether the data of an entry of this type is encrypted where encryption is on. What comes out of a fifo is file data,
/// too: the stock daemon sends it in clear.
pub(crate) fn is_encrypted(file_type: FileType) -> bool {
    is_digested(file_type) || file_type == FileType::Fifo
}
