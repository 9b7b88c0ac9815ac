//! What an accurate job sends after its last file: the files that are gone, or those that a base job has
//! (reference 04 §13.6, §13.7).

use fd_bsock::{Encoder, FrameError, Signal};
use fd_records::{Attributes, LStat, Stream, stream_header};

use crate::accurate::TailRecord;

/// Encodes records of the tail.
pub(crate) struct TailEncoder {
    pub(crate) encoder: Encoder,
    pub(crate) frames: Vec<u8>,
    scratch: Vec<u8>,
}

impl TailEncoder {
    pub(crate) fn new(comm_compression: bool) -> Self {
        Self { encoder: Encoder::new(comm_compression), frames: Vec::new(), scratch: Vec::new() }
    }

    /// Appends one record.
    pub(crate) fn push(&mut self, record: &TailRecord<'_>, file_index: i32) -> Result<(), FrameError> {
        self.scratch.clear();
        stream_header(&mut self.scratch, file_index, Stream::ATTRIBUTES, 0);
        self.encoder.data(&mut self.frames, &self.scratch)?;
        self.scratch.clear();
        Attributes {
            file_index,
            file_type: record.file_type,
            name: record.path,
            lstat: LStat { stat: record.stat, link_fi: 0, flags: 0, data_stream: Stream::FILE_DATA.0 },
            link: &[],
            attr_ex: &[],
            delta_seq: 0,
        }
        .encode(&mut self.scratch);
        self.encoder.data(&mut self.frames, &self.scratch)?;
        self.encoder.signal(&mut self.frames, Signal::Eod);
        Ok(())
    }
}
