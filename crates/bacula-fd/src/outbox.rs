//! How a job's threads reach the Director: through the session, which alone owns his connection.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use fd_config::Messages;
use fd_messages::{JobLog, MessageType};

use crate::clock;
use crate::job::Job;

/// Messages that may wait for the session. A Director that reads slowly slows the job down instead of filling memory.
const WAITING: usize = 256;

/// A message on its way to the session.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Its type.
    pub kind: MessageType,
    /// When it was said, seconds since 1970.
    pub time: i64,
    /// Its text.
    pub text: Vec<u8>,
}

/// The job's end of the line to the session.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    job: Arc<Job>,
    messages: Messages,
    line: Sender<Outgoing>,
}

impl Outbox {
    /// A line for `job`; the session holds the receiver.
    pub(crate) fn new(job: Arc<Job>, messages: Messages) -> (Self, Receiver<Outgoing>) {
        let (line, session) = bounded(WAITING);
        (Self { job, messages, line }, session)
    }
}

impl JobLog for Outbox {
    fn message(&self, kind: MessageType, text: &[u8]) {
        if self.job.note(kind, &self.messages) {
            let outgoing = Outgoing { kind, time: clock::seconds(), text: text.to_vec() };
            // Without a session nobody is left to read it; what it does to the job is done.
            let _session_gone = self.line.send(outgoing);
        }
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.messages.wants(kind.number())
    }
}
