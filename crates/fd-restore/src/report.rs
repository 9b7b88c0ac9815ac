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

/// How many bytes of messages are held before digests are made for them, and how many are queued.
const MOST_HELD: usize = 64 << 10;

/// The messages of one round.
pub(crate) struct Report<'a> {
    log: &'a dyn JobLog,
    queue: Vec<QueuedMessage>,
    /// Bytes of the texts in it: a target of a link, which a text may show, has up to a megabyte.
    queued_bytes: usize,
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
    /// The place of messages that nobody hears.
    Unheard,
}

impl<'a> Report<'a> {
    pub(crate) fn new(log: &'a dyn JobLog) -> Self {
        Self::going_on(log, Vec::new())
    }

    /// A round that begins with these messages in the queue.
    pub(crate) fn going_on(log: &'a dyn JobLog, queue: Vec<QueuedMessage>) -> Self {
        let queued_bytes = queue.iter().map(|(_, text)| text.len()).sum();
        Self { log, queue, queued_bytes, held: Vec::new(), held_bytes: 0, is_fatal: false }
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

    /// A message of a plugin, which may say any number of them within one call. Behind many that
    /// are held it is delivered at once: nothing can be settled before the call is over.
    pub(crate) fn of_plugin(&mut self, kind: MessageType, text: &[u8]) {
        if self.holds_much() || self.held.len() >= MOST_MESSAGES {
            self.is_fatal |= kind == MessageType::Fatal;
            self.log.message(kind, text);
        } else {
            self.now(kind, text);
        }
    }

    /// A message of this type that nobody hears is due: like any that is not queued, it delivers
    /// those that are.
    pub(crate) fn unheard(&mut self, kind: MessageType) {
        if self.log.has_effect(kind) {
            self.deliver_in_turn();
        }
    }

    /// Delivers what is queued, behind what is held.
    pub(crate) fn deliver_in_turn(&mut self) {
        match self.held.last() {
            None => self.deliver(),
            Some(Held::Unheard) => {}
            Some(_) => self.held.push(Held::Unheard),
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
                Held::Unheard => self.deliver_in_turn(),
            }
        }
    }

    fn tell(&mut self, kind: MessageType, text: &[u8]) {
        self.deliver();
        self.log.message(kind, text);
    }

    fn queue(&mut self, kind: MessageType, text: Vec<u8>) {
        self.queued_bytes = self.queued_bytes.saturating_add(text.len());
        self.queue.push((kind, text));
        if self.queue.len() >= MOST_MESSAGES || self.queued_bytes >= MOST_HELD {
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        self.queued_bytes = 0;
        for (kind, text) in self.queue.drain(..) {
            self.log.message(kind, &text);
        }
    }

    /// What is still queued.
    pub(crate) fn into_queue(self) -> Vec<QueuedMessage> {
        self.queue
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// `all, !restored`, or without that type altogether.
    struct Log {
        has_effect: bool,
        lines: Mutex<Vec<Vec<u8>>>,
    }

    impl JobLog for Log {
        fn message(&self, _kind: MessageType, text: &[u8]) {
            self.lines.lock().unwrap().push(text.to_vec());
        }

        fn wants(&self, kind: MessageType) -> bool {
            kind != MessageType::Restored
        }

        fn has_effect(&self, kind: MessageType) -> bool {
            self.wants(kind) || self.has_effect
        }
    }

    fn lines(log: &Log) -> usize {
        log.lines.lock().unwrap().len()
    }

    #[test]
    fn a_message_that_nobody_hears_delivers_those_that_are_queued() {
        for has_effect in [true, false] {
            let log = Log { has_effect, lines: Mutex::default() };
            let mut report = Report::new(&log);
            report.later(MessageType::Error, b"one".to_vec());
            report.unheard(MessageType::Restored);
            assert_eq!(lines(&log), usize::from(has_effect));
        }
    }

    #[test]
    fn what_a_plugin_says_within_a_call_is_not_held_without_end() {
        for text in ["a message of a plugin\n", ""] {
            let log = Log { has_effect: true, lines: Mutex::default() };
            let mut report = Report::new(&log);
            report.hold_for(Ticket::default());
            for _ in 0..100_000 {
                report.of_plugin(MessageType::Info, text.as_bytes());
            }
            assert!(report.held.len() < 5000 && lines(&log) > 95_000, "{} held", report.held.len());
        }
    }

    #[test]
    fn long_messages_are_not_queued_without_end() {
        let log = Log { has_effect: true, lines: Mutex::default() };
        let mut report = Report::new(&log);
        for _ in 0..10 {
            report.later(MessageType::Error, vec![b'x'; MOST_HELD / 2]);
            assert!(report.queue.len() < 2);
        }
        assert_eq!(lines(&log), 10);
    }

    #[test]
    fn it_keeps_its_place_behind_a_digest_that_is_not_known() {
        let log = Log { has_effect: true, lines: Mutex::default() };
        let mut report = Report::new(&log);
        let ticket = Ticket::default();
        report.hold_for(ticket);
        report.later(MessageType::Error, b"one".to_vec());
        for _ in 0..3 {
            report.unheard(MessageType::Restored);
        }
        report.later(MessageType::Error, b"two".to_vec());
        assert_eq!((lines(&log), report.held.len()), (0, 4));
        report.settle(|_| Some(Vec::new()));
        assert_eq!(lines(&log), 1);
        assert_eq!(report.into_queue().len(), 1);
    }
}
