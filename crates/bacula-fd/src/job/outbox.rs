//! How a job's threads reach the Director: through the session, which alone owns the connection.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use fd_config::Messages;
use fd_messages::{JobLog, MessageType, PacketSink, SendError};

use crate::clock;
use crate::shared::job::Job;

/// Messages that may wait for the session. A Director that reads slowly makes the job slow and
/// doesn't fill memory.
const WAITING: usize = 256;
/// How often a cancel is looked for while the Director is to answer.
const STEP: Duration = Duration::from_millis(100);

/// A message or packet on its way to the session.
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
    /// A packet that the Director answers with another one.
    Question {
        /// The packet.
        packet: Vec<u8>,
        /// For the answer; dropped without one when there is none.
        answer: Sender<Vec<u8>>,
    },
}

/// Why the Director can't be reached any more, once that is so.
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
        if self.job.note(kind, &self.messages) && self.is_heard(kind) {
            let outgoing = Outgoing::Message { kind, time: clock::seconds(), text: text.to_vec() };
            // Without a session it is dropped; its effect on the job stays.
            let _session_gone = self.line.send(outgoing);
        }
    }

    fn wants(&self, kind: MessageType) -> bool {
        self.has_effect(kind) && (Self::job_counts(kind) || self.is_heard(kind))
    }

    fn has_effect(&self, kind: MessageType) -> bool {
        self.messages.wants(kind.number())
    }
}

impl Outbox {
    /// Whether a message of this type has an effect on the job, even without a destination.
    const fn job_counts(kind: MessageType) -> bool {
        !matches!(kind, MessageType::Saved | MessageType::Skipped | MessageType::Restored | MessageType::Verified)
    }

    /// Whether it has a destination. `all, !restored` has an effect on the type and no destination
    /// for it: without this check a line would be made for each file, sent to the session, and
    /// dropped there.
    fn is_heard(&self, kind: MessageType) -> bool {
        self.messages.destinations_of(kind.number()).next().is_some()
    }
}

impl Outbox {
    /// Asks the Director; `None` if it is lost, or if the job is canceled before it answers.
    pub(crate) fn ask(&self, packet: Vec<u8>) -> Option<Vec<u8>> {
        let (answer, answered) = bounded(1);
        self.line.send(Outgoing::Question { packet, answer }).ok()?;
        loop {
            match answered.recv_timeout(STEP) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if !self.job.cancel.is_canceled() => {}
                Err(_) => return None,
            }
        }
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

#[cfg(test)]
mod tests {
    use fd_config::{Destination, DestinationKind, TypeSet};

    use super::*;
    use crate::shared::job::Identity;

    /// `Director = x = all, !skipped` and the like.
    fn outbox(named: &[MessageType], taken: &[MessageType]) -> (Outbox, Receiver<Outgoing>) {
        let set = |types: &[MessageType]| types.iter().map(|kind| kind.number()).collect::<TypeSet>();
        let kind = DestinationKind::Director;
        let destination = Destination { kind, place: b"x".to_vec(), types: set(taken), command: None };
        let messages = Messages { destinations: vec![destination], union: set(named), ..Messages::default() };
        Outbox::new(Arc::new(Job::new(Identity::default(), 0)), messages, Loss::default())
    }

    #[test]
    fn a_message_without_a_destination_is_not_built() {
        let named = [MessageType::Info, MessageType::Skipped, MessageType::Error];
        let (outbox, said) = outbox(&named, &[MessageType::Info]);
        assert!(outbox.wants(MessageType::Info) && !outbox.wants(MessageType::Skipped));
        for kind in [MessageType::Skipped, MessageType::Error, MessageType::Warning] {
            outbox.message(kind, b"no reader\n");
        }
        assert!(said.is_empty());
        outbox.message(MessageType::Info, b"text\n");
        assert!(matches!(said.try_recv(), Ok(Outgoing::Message { kind: MessageType::Info, .. })));
    }

    #[test]
    fn an_error_without_a_reader_still_counts() {
        let (outbox, said) = outbox(&[MessageType::Info, MessageType::Error], &[MessageType::Info]);
        assert!(outbox.wants(MessageType::Error));
        outbox.message(MessageType::Error, b"no reader\n");
        assert!(said.is_empty());
        assert_eq!(outbox.job.progress.errors(), 1);
    }
}
