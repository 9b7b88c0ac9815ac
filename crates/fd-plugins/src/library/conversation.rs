//! What a plugin host may say on the line of an instance, and when.

use super::wire::{Answer, Assembly, Call, FromHost, Nonsense, Note, Request};

/// The daemon's end of an instance's line, without the line. All that a plugin host says passes
/// through it.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    assembly: Assembly,
}

/// Something that a plugin host may say while it works for a call.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It needs no answer.
    Note(Note),
    /// It waits for a reply.
    Request(Request),
    /// The call has returned.
    Answer(Answer),
    /// What was begun ahead has stopped.
    Halted,
}

impl Conversation {
    /// Takes bytes of the line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.assembly.push(bytes);
    }

    /// The next thing that was said, while this call is awaited.
    ///
    /// # Errors
    /// It may not be said now, or is nonsense. The line is of no more use.
    pub(crate) fn next(&mut self, awaited: &Call) -> Result<Option<Heard>, Nonsense> {
        let Some(bytes) = self.assembly.next()? else { return Ok(None) };
        Ok(Some(match FromHost::decode(bytes)? {
            FromHost::Note(note) => Heard::Note(note),
            FromHost::Request(request) => Heard::Request(request),
            FromHost::Answer(answer) if answer.answers(awaited) => Heard::Answer(answer),
            FromHost::Halted => Heard::Halted,
            FromHost::Answer(_) => return Err(Nonsense::Order),
        }))
    }
}
