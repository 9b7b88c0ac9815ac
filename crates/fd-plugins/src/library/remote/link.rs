//! A line to a plugin host: what is said and heard on it. The plugin is served meanwhile.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::limits::{Failure, Limits};
use super::service::{Asker, message, reply};
use crate::api::host::Host;
use crate::library::conversation::Conversation;
use crate::library::process::Process;
use crate::library::wire::{self, Answer, Call, FromHost, Note, ToHost};

/// A line to a plugin host: that of an instance, or of its cancel event.
pub(super) struct Link {
    stream: UnixStream,
    conversation: Conversation,
    pub(super) process: Arc<Process>,
    asker: Arc<Asker>,
    /// The plugin has registered for data that is verified.
    pub(super) verifies: bool,
}

impl Link {
    pub(super) fn new(stream: UnixStream, process: Arc<Process>, asker: Arc<Asker>) -> Self {
        Self { stream, conversation: Conversation::default(), process, asker, verifies: false }
    }

    /// Sends a message, however long the other side takes within its limits.
    pub(super) fn send(&self, host: &mut dyn Host, message: &ToHost, limits: &mut Limits) -> Result<(), Failure> {
        let message = wire::encode(message)?;
        let mut bytes = message.as_slice();
        while !bytes.is_empty() {
            match (&self.stream).write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if is_step(&error) => limits.look(host, &self.process)?,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(Failure::Closed),
                Err(error) => return Err(Failure::System(error)),
            }
        }
        Ok(())
    }

    /// The next answer, which is to this call; `None` if nothing is called ahead any more. Serves
    /// the plugin meanwhile.
    pub(super) fn heard(
        &mut self,
        host: &mut dyn Host,
        awaited: Option<&Call>,
        limits: &mut Limits,
    ) -> Result<Option<Answer>, Failure> {
        loop {
            while let Some(heard) = self.conversation.next(awaited)? {
                match heard {
                    FromHost::Answer(answer) => return Ok(Some(answer)),
                    FromHost::Halted => return Ok(None),
                    FromHost::Note(Note::Message(kind, text)) => message(host, kind, &text.0),
                    FromHost::Note(Note::Debug(level, text)) => host.debug(level, &text.0),
                    FromHost::Note(Note::Verifies) => self.verifies = true,
                    FromHost::Request(request) => {
                        let reply = reply(host, &self.asker, request);
                        self.send(host, &ToHost::Reply(reply), limits)?;
                    }
                }
                limits.look(host, &self.process)?;
            }
            if !self.read()? {
                host.call_goes_on();
            }
            limits.look(host, &self.process)?;
        }
    }

    /// Reads once; whether there was something.
    fn read(&mut self) -> Result<bool, Failure> {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Failure::Closed),
            Ok(count) => {
                self.conversation.push(buffer.get(..count).unwrap_or_default());
                Ok(true)
            }
            Err(error) if is_step(&error) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Failure::Closed),
            Err(error) => Err(Failure::System(error)),
        }
    }
}

fn is_step(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
