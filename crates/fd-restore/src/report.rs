//! What the operator is told, in the order of the stock daemon.
//!
//! It queues some messages and delivers them before the next one that it does not queue (reference 05 §0.4). Errors
//! count when they are delivered, so the order decides about the status of a job whose last message was queued.

use fd_messages::{JobLog, MessageType};

/// A message that waits.
pub type QueuedMessage = (MessageType, Vec<u8>);

/// How much may wait. The stock daemon has no limit, but a restore of a million skipped files must have one.
const MOST_MESSAGES: usize = 1000;

/// The messages of one round.
pub(crate) struct Report<'a> {
    log: &'a dyn JobLog,
    queue: Vec<QueuedMessage>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(log: &'a dyn JobLog) -> Self {
        Self { log, queue: Vec::new() }
    }

    /// Whether anybody takes messages of this type.
    pub(crate) fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }

    /// Delivers what waits, then this.
    pub(crate) fn now(&mut self, kind: MessageType, text: &[u8]) {
        self.deliver();
        self.log.message(kind, text);
    }

    /// Lets this wait for the next [`Self::now`].
    pub(crate) fn later(&mut self, kind: MessageType, text: Vec<u8>) {
        if !self.log.wants(kind) {
            return;
        }
        self.queue.push((kind, text));
        if self.queue.len() >= MOST_MESSAGES {
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        for (kind, text) in self.queue.drain(..) {
            self.log.message(kind, &text);
        }
    }

    /// What still waits.
    pub(crate) fn into_queue(self) -> Vec<QueuedMessage> {
        self.queue
    }
}
