//! A file of a plugin that is being saved.

use fd_plugins::{MetadataPacket, SavePacket};
use fd_records::{FileType, PluginMetadata, Stat, Stream};
use fd_walk::Entry;

use crate::source::kinds::{data_stream, is_digested};

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
    /// A restore may take it from an earlier job.
    pub(crate) has_earlier: bool,
}

/// The record of a packet of metadata.
pub(crate) fn metadata_record(packet: &MetadataPacket) -> PluginMetadata<'_> {
    PluginMetadata {
        total_size: packet.total_size,
        total_count: packet.total_count,
        kind: packet.kind,
        index: packet.index,
        data: &packet.data,
    }
}

/// What became of opening the data of a plugin's file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// None is read.
    Nothing,
    /// The plugin has it open.
    Open,
    /// It can't be opened; the error's number.
    Failed(i32),
}

impl PluginFile<'_> {
    /// Whether the plugin has set an option of its packet.
    pub(crate) const fn has(&self, flag: u64) -> bool {
        self.packet.flags & flag != 0
    }

    /// Whether it is a file with data, and not an entry whose attributes say most.
    pub(crate) fn is_file(&self) -> bool {
        is_digested(self.entry.file_type)
    }

    /// Whether the job ends behind its attributes, so that it need not be opened.
    pub(crate) fn ends_the_job(&self) -> bool {
        let mut metadata = self.packet.metadata.iter().flatten();
        self.is_encrypted && self.has(SavePacket::OFFSETS)
            || metadata.any(|packet| metadata_record(packet).stream().is_none())
    }

    /// Its attributes for the record. Without a change time, accurate jobs try it again.
    pub(crate) fn stat(&self, opened: Opened) -> Stat {
        match opened {
            Opened::Failed(_) if self.is_file() => Stat { ctime: 0, ..self.entry.stat },
            _ => self.entry.stat,
        }
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
