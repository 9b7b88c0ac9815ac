//! A file of a plugin that is being saved.

use fd_plugins::SavePacket;
use fd_records::{FileType, Stream};
use fd_walk::Entry;

use crate::source::kinds::data_stream;

/// A file of a plugin that is being saved.
pub(crate) struct PluginFile<'f> {
    /// The plugin command of the FileSet.
    pub(crate) command: &'f [u8],
    /// Name, type, attributes and options.
    pub(crate) entry: &'f Entry,
    pub(crate) packet: &'f SavePacket,
    /// The name that the plugin opens.
    pub(crate) read_name: &'f [u8],
    pub(crate) file_index: i32,
    /// It is on the disk, and its plugin is that of its Options.
    pub(crate) is_walked: bool,
    pub(crate) is_encrypted: bool,
}

impl PluginFile<'_> {
    /// Whether the plugin has set an option of its packet.
    pub(crate) const fn has(&self, flag: u64) -> bool {
        self.packet.flags & flag != 0
    }

    pub(crate) fn has_sparse_data(&self) -> bool {
        self.entry.options.is_sparse(self.is_encrypted)
    }

    /// The stream of its data.
    pub(crate) fn data_stream(&self) -> Stream {
        let stream = data_stream(&self.entry.options, self.is_encrypted);
        if self.has(SavePacket::OFFSETS) { Stream::new(stream.number() | Stream::BIT_OFFSETS) } else { stream }
    }

    /// Whether its data is read. The plugin of a command can only prevent it for files whose data
    /// would not be read if they were on the disk (reference 07 §5.6).
    pub(crate) fn is_read(entry: &Entry, packet: &SavePacket, is_walked: bool) -> bool {
        let on_disk = match entry.file_type {
            FileType::Regular | FileType::EmptyFile => entry.stat.size > 0,
            FileType::Raw | FileType::Fifo => true,
            _ => false,
        };
        match entry.file_type {
            FileType::Deleted => false,
            _ if is_walked => on_disk,
            _ => !packet.no_read || on_disk && !packet.stat_update,
        }
    }
}
