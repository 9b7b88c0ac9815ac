//! What the type and the options of an entry mean for its data: whether it is read, digested and encrypted, and which
//! stream it makes (reference 04 §7 to §9).

use fd_fileset::{EffectiveOptions, Flags};
use fd_records::{Compression, DataLayout, FileType, Packing, Stat, Stream};

/// Which stream holds the data of an entry with these options. Every entry has an answer, also those without data:
/// it stands in their attributes (reference 04 §7). Encrypted data has no addresses.
pub(crate) fn data_stream(options: &EffectiveOptions, is_encrypted: bool) -> Stream {
    Stream::of_data(DataLayout {
        has_address: options.has(Flags::SPARSE) && !is_encrypted,
        packing: options.compression.map_or(Packing::Plain, Compression::packing),
        is_encrypted,
        is_win32: false,
    })
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
