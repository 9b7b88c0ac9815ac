//! What a worker passes to the sender: encoded frames, with the messages and counts that go with
//! them.

use fd_bsock::CommCount;
use fd_messages::MessageType;
use fd_metadata::Failures;
use fd_records::MetadataKind;

/// A piece of the stream. Pieces come from a fixed stock and are used again and again.
#[derive(Default, Debug)]
pub(crate) struct Piece {
    /// Frames, ready for the wire.
    pub(crate) frames: Vec<u8>,
    /// Payload bytes of the frames, before and after compression.
    pub(crate) count: CommCount,
    /// What is added to the job's counters when the frames are sent.
    pub(crate) tally: Tally,
    /// Events, each at its position between the frames.
    pub(crate) notes: Vec<Note>,
    /// Path of the last entry in it, for the status display.
    pub(crate) current: Vec<u8>,
    /// It is not of the stock: it has events only.
    pub(crate) is_extra: bool,
}

/// Additions to the job's counters (reference 04 §14.2).
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) files: u32,
    pub(crate) read_bytes: u64,
    pub(crate) job_bytes: u64,
    /// Files whose data was read, all or a part.
    pub(crate) read: u32,
    /// Files with data of which nothing could be read.
    pub(crate) unread: u32,
}

/// An event after the first `at` bytes of the frames.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) at: usize,
    /// What counts if the job ends here.
    pub(crate) tally: Tally,
    pub(crate) event: Event,
}

/// An event in the stream beside its frames.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A message to the operator. With `failed`, `JobErrors` grows by one more than the message
    /// causes.
    Message { kind: MessageType, text: Vec<u8>, failed: bool },
    /// A read error: the message counts, and the limit of errors is checked (reference 04 §8.2).
    ReadError { text: Vec<u8> },
    /// What could not be read of a file's ACLs or extended attributes. Only the first few warnings
    /// of a job are delivered (reference 04 §10, §11).
    MetadataWarnings { kind: MetadataKind, failures: Failures },
    /// A file is saved without data that it may have. As many are named as of the former.
    MayHaveContent { path: Vec<u8> },
    /// A fatal error, which ends the job.
    Fatal { text: Vec<u8> },
    /// Ends the job, which is canceled or has had a fatal message with this text.
    Ended { text: Vec<u8> },
}

impl Event {
    /// A message about a file that is not saved: one more error of the job.
    pub(crate) fn not_saved(text: Vec<u8>) -> Self {
        Self::Message { kind: MessageType::NotSaved, text, failed: true }
    }
}

impl Piece {
    /// One for events only.
    pub(crate) fn extra() -> Self {
        Self { is_extra: true, ..Self::default() }
    }

    /// Empties the piece for its next use. Memory beyond `usual` bytes, left by an unusually long
    /// record, is freed.
    pub(crate) fn recycle(&mut self, usual: usize) {
        self.frames.clear();
        self.frames.shrink_to(usual);
        self.count = CommCount::default();
        self.tally = Tally::default();
        self.notes.clear();
        self.current.clear();
    }

    /// Adds an event at the present end of the frames.
    pub(crate) fn note(&mut self, event: Event) {
        self.notes.push(Note { at: self.frames.len(), tally: self.tally, event });
    }
}
