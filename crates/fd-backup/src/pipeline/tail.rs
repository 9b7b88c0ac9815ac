//! The end of an accurate job's stream: records of deleted files, or of files that a base job has
//! (reference 04 §13.6, §13.7).

use fd_bsock::FrameError;
use fd_records::{Attributes, LStat, Stream};

use crate::accurate::TailRecord;
use crate::file::emit::RecordWriter;

/// Encodes the records of the tail.
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
            lstat: LStat { stat: record.stat, link_fi: 0, flags: 0, data_stream: Stream::FILE_DATA },
            link: &[],
            attr_ex: &[],
            delta_seq: 0,
        }
        .encode(&mut self.record);
        self.writer.record(&mut self.frames, file_index, Stream::ATTRIBUTES, &self.record)
    }
}
