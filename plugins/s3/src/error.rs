//! What goes wrong between the plugin and a server.

use fd_messages::Said;
use hyper::StatusCode;

use crate::texts;

/// Why a request has failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum S3Error {
    /// The server has refused it.
    #[error("{}", texts::refused(*.status, .code.as_str(), .message.as_str()))]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The code in its answer; may be empty.
        code: Said,
        /// What it says.
        message: Said,
    },
    /// It could not be reached, or has hung up.
    #[error("{0}")]
    Connection(Said),
    /// It has not answered in time.
    #[error("{}", texts::late(*.0))]
    Late(u64),
    /// Its answer is nonsense.
    #[error("{0}")]
    Nonsense(Said),
    /// It has sent fewer bytes than it had said.
    #[error("{}", texts::short(*.got, *.wanted))]
    Short {
        /// So many.
        got: u64,
        /// Of these.
        wanted: u64,
    },
    /// Not all bytes of an object came.
    #[error("{}", texts::torn(*.got, *.wanted))]
    Torn {
        /// So many.
        got: u64,
        /// Of these.
        wanted: u64,
    },
    /// It is listed, and is not there.
    #[error("{}", texts::MISSING)]
    Missing,
    /// The object was replaced while it was read.
    #[error("{}", texts::CHANGED)]
    Changed,
    /// The data is not what its checksum says.
    #[error("{}", texts::checksum(.0))]
    Checksum(&'static str),
    /// The job was canceled.
    #[error("canceled")]
    Canceled,
}

impl S3Error {
    /// It could not be reached, or has hung up.
    pub(crate) fn connection(error: &(impl std::fmt::Display + ?Sized)) -> Self {
        Self::Connection(Said::new(error))
    }

    /// It has answered something else, with this status.
    pub(crate) fn other(status: StatusCode) -> Self {
        Self::Refused { status: status.as_u16(), code: Said::default(), message: Said::default() }
    }

    /// Its answer is nonsense; the text may quote it.
    pub(crate) fn nonsense(what: &(impl std::fmt::Display + ?Sized)) -> Self {
        Self::Nonsense(Said::new(what))
    }

    /// Whether another try may help.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, code, .. } => {
                matches!(status, 408 | 429 | 500 | 502..=504)
                    || matches!(code.as_str(), "RequestTimeout" | "SlowDown" | "InternalError" | "ServiceUnavailable")
            }
            Self::Connection(_) | Self::Late(_) | Self::Short { .. } => true,
            Self::Nonsense(_)
            | Self::Torn { .. }
            | Self::Missing
            | Self::Changed
            | Self::Checksum(_)
            | Self::Canceled => false,
        }
    }

    /// Whether the object is not there.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether an upload in parts is none any more: completed, or given up.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code.as_str() == "NoSuchUpload")
    }

    /// Whether the server itself says that the object is no more: what stands before it may answer
    /// 404, too.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self, Self::Refused { status: 404, code, .. } if code.as_str() == "NoSuchKey")
    }
}
