//! What a worker hands to the sender: encoded frames, and what is to be told and counted along with them.

use fd_bsock::CommCount;
use fd_messages::MessageType;
use fd_metadata::WarningKind;

/// A stretch of the stream. Pieces are taken from a fixed stock and used again and again.
#[derive(Default, Debug)]
pub(crate) struct Piece {
    /// Frames, ready for the wire.
    pub(crate) frames: Vec<u8>,
    /// What the frames count as.
    pub(crate) count: CommCount,
    /// What the job's counters gain when the frames are sent.
    pub(crate) tally: Tally,
    /// What happened, each at its place between the frames.
    pub(crate) notes: Vec<Note>,
    /// The entry worked on, for the status display.
    pub(crate) current: Vec<u8>,
}

/// Gains of the job's counters (reference 04 §14.2).
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) files: u32,
    pub(crate) examined: u64,
    pub(crate) read_bytes: u64,
    pub(crate) job_bytes: u64,
}

/// Something that happened when `at` bytes of the piece's frames were made.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) at: usize,
    pub(crate) event: Event,
}

/// What can happen beside frames.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A message to the operator. With `failed`, `JobErrors` grows by one beside what the message itself does.
    Message { kind: MessageType, text: Vec<u8>, failed: bool },
    /// A read error: the message counts, and the limit of errors is looked at (reference 04 §8.2).
    ReadError { text: Vec<u8> },
    /// A warning about ACLs or extended attributes, of which only the first few are said (reference 04 §10, §11).
    MetadataWarning { kind: WarningKind, text: Vec<u8> },
    /// The job can't go on.
    Fatal { text: Vec<u8> },
}

impl Piece {
    /// Empties the piece for its next use. Memory beyond `usual` bytes, left by an unusually long record, is given back.
    pub(crate) fn recycle(&mut self, usual: usize) {
        self.frames.clear();
        self.frames.shrink_to(usual);
        self.count = CommCount::default();
        self.tally = Tally::default();
        self.notes.clear();
        self.current.clear();
    }

    /// Notes an event at the present end of the frames.
    pub(crate) fn note(&mut self, event: Event) {
        self.notes.push(Note { at: self.frames.len(), event });
    }
}
