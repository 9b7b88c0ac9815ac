//! What both verify levels take and give back.

use fd_messages::{CancelToken, Progress, SendError};

use crate::plugins::PluginAccess;
use crate::report::QueuedMessage;
use crate::stream::RecordSource;
use crate::stream::{End, SequenceError};

/// What a verify works with.
pub struct VerifyJob<'a> {
    /// Counters.
    pub progress: &'a Progress,
    /// Where messages go.
    pub log: &'a dyn fd_messages::JobLog,
    /// The token that stops it.
    pub cancel: &'a CancelToken,
    /// The records.
    pub source: &'a mut dyn RecordSource,
    /// The plugins of the job, which may look at the data; `None` where there are none.
    pub plugins: Option<&'a PluginAccess>,
}

/// What a verify found that was not fatal.
#[derive(Debug)]
pub struct VerifyOutcome {
    /// How the session ended.
    pub end: End,
    /// Whether differences were found: the job ends with status `D`.
    pub differs: bool,
    /// Whether files of the catalog are missing on the volume: the job ends with status `E`.
    pub missing: bool,
    /// Whether attribute records could not be read, or the records ended too early, so that files
    /// are unknown: status `E`.
    pub damaged: bool,
    /// Messages to deliver before any other of the job.
    pub queued: Vec<QueuedMessage>,
}

/// Why a verify could not be finished. The error has been reported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VerifyError {
    /// The records make no sense.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    /// The Director can't be reached.
    #[error("packet to the Director: {0}")]
    Director(SendError),
    /// Data could not be unpacked; the stock daemon ends here.
    #[error("damaged data of {0:?}")]
    Data(String),
    /// A plugin has ended it.
    #[error("a plugin ended the job at {0:?}")]
    Plugin(String),
}
