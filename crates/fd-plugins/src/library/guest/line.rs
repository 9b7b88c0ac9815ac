//! The plugin host's end of an instance's line.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::library::wire::{self, Assembly, Call, FromHost, Reply, Request, ToHost};

/// So many bytes wait at most to be sent together.
const WAITING: usize = 32 << 10;

/// A line to the daemon. Used by one thread.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    assembly: Assembly,
    waiting: Vec<u8>,
}

impl Line {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, assembly: Assembly::default(), waiting: Vec::new() }
    }

    /// Says something, soon.
    pub(super) fn say(&mut self, message: &FromHost) -> io::Result<()> {
        self.waiting.extend_from_slice(&wire::encode(message).map_err(invalid)?);
        if self.waiting.len() >= WAITING { self.flush() } else { Ok(()) }
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

    /// The next call.
    pub(super) fn next_call(&mut self) -> io::Result<Call> {
        match self.hear()? {
            ToHost::Call(call) => Ok(*call),
            ToHost::Reply(_) | ToHost::Credit(_) | ToHost::Halt => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Asks the daemon for something.
    pub(super) fn ask(&mut self, request: Request) -> io::Result<Reply> {
        self.say(&FromHost::Request(request))?;
        match self.hear()? {
            ToHost::Reply(reply) => Ok(reply),
            ToHost::Call(_) | ToHost::Credit(_) | ToHost::Halt => Err(io::ErrorKind::InvalidData.into()),
        }
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
