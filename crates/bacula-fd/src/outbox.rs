//! How a job's threads reach the Director: through the session, which alone owns his connection.

use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender, bounded};
use fd_config::Messages;
use fd_messages::{JobLog, MessageType, PacketSink, SendError};

use crate::clock;
use crate::job::Job;

/// Messages that may wait for the session. A Director that reads slowly slows the job down instead of filling memory.
const WAITING: usize = 256;

/// What is on its way to the session, in order.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A message.
    Message {
        /// Its type.
        kind: MessageType,
        /// When it was said, seconds since 1970.
        time: i64,
        /// Its text.
        text: Vec<u8>,
    },
    /// A packet of a Verify job.
    Packet(Vec<u8>),
}

/// Why the Director can't be reached any more, once he can't.
pub(crate) type Loss = Arc<OnceLock<String>>;

/// The job's end of the line to the session.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    job: Arc<Job>,
    messages: Messages,
    line: Sender<Outgoing>,
    loss: Loss,
}

impl Outbox {
    /// A line for `job`; the session holds the receiver and says so if it loses the Director.
    pub(crate) fn new(job: Arc<Job>, messages: Messages, loss: Loss) -> (Self, Receiver<Outgoing>) {
        let (line, session) = bounded(WAITING);
        (Self { job, messages, line, loss }, session)
    }
}

impl JobLog for Outbox {
    fn message(&self, kind: MessageType, text: &[u8]) {
        if self.job.note(kind, &self.messages) {
            let outgoing = Outgoing::Message { kind, time: clock::seconds(), text: text.to_vec() };
            // Without a session nobody is left to read it; what it does to the job is done.
            let _session_gone = self.line.send(outgoing);
        }
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.messages.wants(kind.number()) && (Self::job_counts(kind) || self.is_heard(kind))
    }
}

impl Outbox {
    /// Whether a message of this type does something to the job, whoever reads it.
    const fn job_counts(kind: MessageType) -> bool {
        !matches!(kind, MessageType::Saved | MessageType::Skipped | MessageType::Restored | MessageType::Verified)
    }

    /// Whether anybody gets it. `all, !restored` has an effect on the type and no destination for it: without this look
    /// a line would be made for each file, sent to the session, and dropped there.
    fn is_heard(&self, kind: MessageType) -> bool {
        self.messages.destinations_of(kind.number()).next().is_some()
    }
}

impl PacketSink for Outbox {
    fn send(&mut self, packet: Vec<u8>) -> Result<(), SendError> {
        if let Some(reason) = self.loss.get() {
            return Err(SendError(reason.clone()));
        }
        self.line.send(Outgoing::Packet(packet)).map_err(|gone| SendError(gone.to_string()))
    }
}
