//! What a plugin host may say on the line of an instance, and when.

use super::wire::{Assembly, Call, FromHost, Nonsense};

/// The daemon's end of an instance's line, without the line. All that a plugin host says passes
/// through it.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    assembly: Assembly,
}

impl Conversation {
    /// Takes bytes of the line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.assembly.push(bytes);
    }

    /// The next thing that was said, while the answer to this call is awaited, if there is one.
    ///
    /// # Errors
    /// It may not be said now, or is nonsense. The line is of no more use.
    pub(crate) fn next(&mut self, awaited: Option<&Call>) -> Result<Option<FromHost>, Nonsense> {
        let Some(bytes) = self.assembly.next()? else { return Ok(None) };
        match FromHost::decode(bytes)? {
            FromHost::Answer(answer) if !awaited.is_some_and(|call| answer.answers(call)) => Err(Nonsense::Order),
            said => Ok(Some(said)),
        }
    }
}

#[cfg(test)]
mod tests;
