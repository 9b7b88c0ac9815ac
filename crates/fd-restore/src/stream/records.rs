//! The sequence of a read session: header, data, header, data (reference 05 §2.2, §2.5).

use fd_messages::{CancelToken, Progress};
use fd_os::local_time::now;
use fd_records::RecordHeader;

use super::source::{RecordSource, SourceError};

/// How a read session ended that was not fatal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// With the end of the data.
    EndOfData,
    /// The job was canceled.
    Canceled,
    /// The connection was lost between two records. The stock daemon takes this for the end of the
    /// data.
    ConnectionLost(SourceError),
}

/// Why the sequence makes no sense any more. The error has been reported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SequenceError {
    /// What should be a record header is none.
    #[error("no record header")]
    Header(Vec<u8>),
    /// The data of a record did not come.
    #[error("record header without data")]
    NoData(Option<SourceError>),
    /// A record has another length than its header says.
    #[error("record of {actual} bytes, announced as {announced}")]
    Size {
        /// Length of the record.
        actual: usize,
        /// Length in the header.
        announced: i64,
    },
    /// A plugin has ended the restore.
    #[error("a plugin has ended the restore")]
    Plugin,
}

/// What comes next.
pub(crate) enum Next<'a> {
    /// A record.
    Record(RecordHeader, &'a [u8]),
    /// Nothing.
    End(End),
}

/// Takes the next record.
pub(crate) fn next_record<'a>(
    source: &'a mut dyn RecordSource,
    progress: &Progress,
    cancel: &CancelToken,
) -> Result<Next<'a>, SequenceError> {
    let header = match source.next_frame() {
        _ if cancel.is_canceled() => return Ok(Next::End(End::Canceled)),
        Ok(Some(header)) => RecordHeader::parse(header).ok_or_else(|| SequenceError::Header(header.to_vec()))?,
        Ok(None) => return Ok(Next::End(End::EndOfData)),
        Err(error) => return Ok(Next::End(End::ConnectionLost(error))),
    };
    match source.next_frame() {
        Ok(Some(record)) if i64::try_from(record.len()) == Ok(header.size) => {
            progress.touch(now());
            Ok(Next::Record(header, record))
        }
        Ok(Some(record)) => Err(SequenceError::Size { actual: record.len(), announced: header.size }),
        _ if cancel.is_canceled() => Ok(Next::End(End::Canceled)),
        failed => Err(SequenceError::NoData(failed.err())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One record.
    struct One(std::vec::IntoIter<&'static [u8]>);

    impl RecordSource for One {
        fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
            Ok(self.0.next())
        }
    }

    #[test]
    fn a_record_that_comes_is_progress() {
        let (progress, cancel) = (Progress::default(), CancelToken::new());
        let mut source = One(vec![&b"rechdr 1 1795226230 3 2 4"[..], b"data"].into_iter());
        assert!(matches!(next_record(&mut source, &progress, &cancel), Ok(Next::Record(_, b"data"))));
        assert!(progress.last_activity() > 0);
        progress.touch(0);
        assert!(matches!(next_record(&mut source, &progress, &cancel), Ok(Next::End(End::EndOfData))));
        assert_eq!(progress.last_activity(), 0, "nothing has come");
    }
}
