//! What a frame that is no usable command is answered with, and whether the session goes on.

/// Why a frame is refused. The message comes first, then the reply, then the end of data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusal {
    /// Text of the fatal message, if there is one.
    pub fatal: Option<Vec<u8>>,
    /// Reply, if there is one.
    pub reply: Option<Vec<u8>>,
    /// The command's answer is a list, which `EOD` ends.
    pub ends_list: bool,
    /// The command loop takes the next command; otherwise it ends.
    pub goes_on: bool,
    /// Number and full name of a job that a `JobId=` has named before it stopped to scan.
    pub named: Option<(u32, Vec<u8>)>,
}

impl Refusal {
    /// A fatal message.
    pub(super) fn fatal(text: Vec<u8>) -> Self {
        Self { fatal: Some(text), ..Self::default() }
    }

    /// A reply.
    pub(super) fn reply(text: Vec<u8>) -> Self {
        Self { reply: Some(text), ..Self::default() }
    }
}
