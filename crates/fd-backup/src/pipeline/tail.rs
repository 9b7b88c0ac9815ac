//! What an accurate job sends after its last file: the files that are gone, or those that a base job has
//! (reference 04 §13.6, §13.7).

use fd_bsock::FrameError;
use fd_metadata::NameCache;
use fd_os::local_time::local_time;
use fd_records::{Attributes, FileType, LStat, Stream, listing};

use crate::accurate::TailRecord;
use crate::file::emit::RecordWriter;

/// Encodes records of the tail.
pub(crate) struct TailEncoder {
    pub(crate) writer: RecordWriter,
    pub(crate) frames: Vec<u8>,
    record: Vec<u8>,
}

impl TailEncoder {
    pub(crate) fn new(comm_compression: bool) -> Self {
        Self { writer: RecordWriter::new(comm_compression), frames: Vec::new(), record: Vec::new() }
    }

    /// Appends one record.
    pub(crate) fn push(&mut self, record: &TailRecord<'_>, file_index: i32) -> Result<(), FrameError> {
        self.record.clear();
        Attributes {
            file_index,
            file_type: record.file_type,
            name: record.path,
            lstat: LStat { stat: record.stat, link_fi: 0, flags: 0, data_stream: Stream::FILE_DATA.0 },
            link: &[],
            attr_ex: &[],
            delta_seq: 0,
        }
        .encode(&mut self.record);
        self.writer.record(&mut self.frames, file_index, Stream::ATTRIBUTES, &self.record)
    }
}

/// What the message about a saved file says of a record of the tail: its name as in the list, so with the slash of a
/// directory, and never a target.
pub(crate) fn saved_line_of_tail(record: &TailRecord<'_>, names: &mut NameCache) -> Vec<u8> {
    let mut line = Vec::new();
    if record.file_type == FileType::Deleted {
        listing::push_deleted_line(&mut line, record.path);
    } else {
        let modified = local_time(record.stat.mtime);
        listing::push_line(&mut line, &record.stat, modified, names, record.path, None);
    }
    line
}

#[cfg(test)]
mod tests {
    use fd_records::Stat;

    use super::*;

    #[test]
    fn a_base_file_is_told_like_a_saved_one_and_a_deleted_one_as_deleted() {
        let stat = Stat { mode: 0o40_755, nlink: 2, size: 4096, ..Stat::default() };
        let told = |file_type| {
            let record = TailRecord { path: b"/srv/d/", stat, file_type };
            String::from_utf8(saved_line_of_tail(&record, &mut NameCache::new())).unwrap()
        };
        let base = told(FileType::Base);
        assert!(base.starts_with("drwxr-xr-x   2 root     root                   4096 "), "{base}");
        assert!(base.ends_with("  /srv/d/\n"), "{base}");
        assert!(told(FileType::Deleted).starts_with("-*DELETED-"));
    }
}
