//! The plugin host's end of an instance's line.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::mapping::Mapping;
use crate::library::wire::{self, Assembly, Call, FromHost, Note, Reply, Request, SLOTS_AHEAD, ToHost};

/// So many bytes wait at most to be sent together.
const WAITING: usize = 32 << 10;

/// A line to the daemon. Used by one thread.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    assembly: Assembly,
    waiting: Vec<u8>,
    /// So many slots may be filled.
    credit: u32,
    /// The daemon wants nothing called ahead any more.
    halted: bool,
}

impl Line {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, assembly: Assembly::default(), waiting: Vec::new(), credit: 0, halted: false }
    }

    /// Says something, soon. A message for the job's log goes at once: the call after it may hang.
    pub(super) fn say(&mut self, message: &FromHost) -> io::Result<()> {
        self.waiting.extend_from_slice(&wire::encode(message).map_err(invalid)?);
        let is_for_the_log = matches!(message, FromHost::Note(Note::Message(..)));
        if is_for_the_log || self.waiting.len() >= WAITING { self.flush() } else { Ok(()) }
    }

    /// Says what waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.stream.write_all(&self.waiting)?;
            self.waiting.clear();
            self.waiting.shrink_to(WAITING);
        }
        Ok(())
    }

    fn hear(&mut self) -> io::Result<ToHost> {
        self.flush()?;
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(bytes) = self.assembly.next().map_err(invalid)? {
                return wire::decode(bytes).map_err(invalid);
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.assembly.push(buffer.get(..count).unwrap_or_default()),
            }
        }
    }

    /// The next call. Before it is made, nothing is called ahead any more, and all slots are free.
    pub(super) fn next_call(&mut self, memory: &Mapping) -> io::Result<Call> {
        loop {
            if std::mem::take(&mut self.halted) {
                memory.take_halt();
                self.say(&FromHost::Halted)?;
            }
            match self.hear()? {
                ToHost::Call(call) => {
                    self.credit = SLOTS_AHEAD;
                    return Ok(*call);
                }
                ToHost::Credit(_) => {}
                ToHost::Halt => self.halted = true,
                ToHost::Reply(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Asks the daemon for something.
    pub(super) fn ask(&mut self, request: Request) -> io::Result<Reply> {
        self.say(&FromHost::Request(request))?;
        loop {
            match self.hear()? {
                ToHost::Reply(reply) => return Ok(reply),
                ToHost::Credit(count) => self.credit = self.credit.saturating_add(count),
                ToHost::Halt => self.halted = true,
                ToHost::Call(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Waits until a slot is free. `false` if nothing is to be called ahead any more.
    pub(super) fn wait_for_slot(&mut self) -> io::Result<bool> {
        while self.credit == 0 && !self.halted {
            match self.hear()? {
                ToHost::Credit(count) => self.credit = self.credit.saturating_add(count),
                ToHost::Halt => self.halted = true,
                ToHost::Call(_) | ToHost::Reply(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(!self.halted)
    }

    /// A slot was filled.
    pub(super) fn fill_slot(&mut self) {
        self.credit = self.credit.saturating_sub(1);
    }

    /// Whether the daemon wants nothing called ahead any more.
    pub(super) fn is_halted(&self) -> bool {
        self.halted
    }
}

fn invalid(error: wire::Nonsense) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Says something on standard error, which the daemon reads.
pub(super) fn print(text: &[u8]) {
    // There is nobody else to tell.
    let _gone = io::stderr().write_all(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::wire::{Answer, Bytes};

    #[test]
    fn a_message_for_the_log_is_said_at_once_and_in_its_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut line = Line::new(ours);
        let mut heard = Assembly::default();
        let mut hear = || {
            let mut buffer = [0; 1 << 10];
            heard.push(theirs.read(&mut buffer).map(|count| &buffer[..count]).unwrap_or_default());
            std::iter::from_fn(|| heard.next().unwrap().map(|bytes| wire::decode::<FromHost>(bytes).unwrap()))
                .collect::<Vec<_>>()
        };
        line.say(&FromHost::Answer(Answer::Status(7))).unwrap();
        assert_eq!(hear(), []);
        line.say(&FromHost::Note(Note::Message(3, Bytes(b"text".to_vec())))).unwrap();
        let [FromHost::Answer(_), FromHost::Note(Note::Message(3, text))] = &hear()[..] else {
            panic!("another order")
        };
        assert_eq!(text.0, b"text");
    }
}
