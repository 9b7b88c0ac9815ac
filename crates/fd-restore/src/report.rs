//! Messages to the operator, in the order of the stock daemon.
//!
//! It queues some messages and delivers them before the next one that it does not queue
//! (reference 05 §0.4). Errors count when they are delivered, so the order decides about the
//! status of a job whose last message was queued.
//!
//! While the digest of a file is not known, all later messages are held.

use fd_messages::{JobLog, MessageType};

use crate::digests::Ticket;

/// A message that is queued.
pub type QueuedMessage = (MessageType, Vec<u8>);

/// How many messages may be queued. The stock daemon has no limit, but a restore of a million
/// skipped files needs one.
const MOST_MESSAGES: usize = 1000;

/// How many bytes of messages are held before digests are made for them.
const MOST_HELD: usize = 64 << 10;

/// The messages of one round.
pub(crate) struct Report<'a> {
    log: &'a dyn JobLog,
    queue: Vec<QueuedMessage>,
    held: Vec<Held>,
    /// Bytes of the texts in it.
    held_bytes: usize,
    is_fatal: bool,
}

/// What is held until a digest is known.
enum Held {
    /// The place of the messages about a digest.
    Finding(Ticket),
    Now(MessageType, Vec<u8>),
    Later(MessageType, Vec<u8>),
}

impl<'a> Report<'a> {
    pub(crate) fn new(log: &'a dyn JobLog) -> Self {
        Self::going_on(log, Vec::new())
    }

    /// A round that begins with these messages in the queue.
    pub(crate) fn going_on(log: &'a dyn JobLog, queue: Vec<QueuedMessage>) -> Self {
        Self { log, queue, held: Vec::new(), held_bytes: 0, is_fatal: false }
    }

    /// Whether messages of this type go anywhere.
    pub(crate) fn wants(&self, kind: MessageType) -> bool {
        self.log.wants(kind)
    }

    /// Delivers the queued messages, then this one.
    pub(crate) fn now(&mut self, kind: MessageType, text: &[u8]) {
        self.is_fatal |= kind == MessageType::Fatal;
        if self.held.is_empty() {
            self.tell(kind, text);
        } else {
            self.hold(Held::Now(kind, text.to_vec()), text.len());
        }
    }

    /// Whether there was a fatal message, which ends the job.
    pub(crate) const fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// Queues this until the next [`Self::now`].
    pub(crate) fn later(&mut self, kind: MessageType, text: Vec<u8>) {
        if !self.log.wants(kind) {
            return;
        }
        if self.held.is_empty() {
            self.queue(kind, text);
        } else {
            let len = text.len();
            self.hold(Held::Later(kind, text), len);
        }
    }

    /// The messages about a file's digest, which is not known yet, belong here: later ones are held
    /// until [`Self::settle`].
    pub(crate) fn hold_for(&mut self, ticket: Ticket) {
        self.held.push(Held::Finding(ticket));
    }

    fn hold(&mut self, message: Held, bytes: usize) {
        self.held.push(message);
        self.held_bytes = self.held_bytes.saturating_add(bytes);
    }

    /// Whether so much is held that the digests should be made.
    pub(crate) const fn holds_much(&self) -> bool {
        self.held_bytes >= MOST_HELD
    }

    /// Delivers what is held, up to the first file whose digest is not known. `messages` returns
    /// the messages about the digest of a file, an empty list if it is right; `None` if it is not
    /// known yet.
    pub(crate) fn settle(&mut self, mut messages: impl FnMut(Ticket) -> Option<Vec<QueuedMessage>>) {
        self.held_bytes = 0;
        for message in std::mem::take(&mut self.held) {
            match message {
                Held::Finding(ticket) => match messages(ticket) {
                    None => self.hold_for(ticket),
                    Some(messages) => messages.iter().for_each(|(kind, text)| self.now(*kind, text)),
                },
                Held::Now(kind, text) => self.now(kind, &text),
                Held::Later(kind, text) => self.later(kind, text),
            }
        }
    }

    fn tell(&mut self, kind: MessageType, text: &[u8]) {
        self.deliver();
        self.log.message(kind, text);
    }

    fn queue(&mut self, kind: MessageType, text: Vec<u8>) {
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

    /// What is still queued.
    pub(crate) fn into_queue(self) -> Vec<QueuedMessage> {
        self.queue
    }
}
