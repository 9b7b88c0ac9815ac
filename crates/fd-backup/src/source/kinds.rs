//! What the type and the options of an entry mean for its data: whether it is read, digested and
//! encrypted, and the stream that it is sent in (reference 04 §7 to §9).

use fd_fileset::EffectiveOptions;
use fd_records::{Compression, DataLayout, FileType, Packing, Stat, Stream};

/// The stream of the data of an entry with these options. It is defined for each entry, also for
/// those without data, because it is part of the attributes (reference 04 §7).
pub(crate) fn data_stream(options: &EffectiveOptions, is_encrypted: bool) -> Stream {
    Stream::of_data(DataLayout {
        has_address: options.is_sparse(is_encrypted),
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

/// Whether the data of an entry of this type is encrypted in a job with encryption. Data of a fifo
/// is file data, too; the stock daemon sends it in clear.
pub(crate) fn is_encrypted(file_type: FileType) -> bool {
    is_digested(file_type) || file_type == FileType::Fifo
}
